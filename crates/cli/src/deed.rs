//! Changes that a signal can interrupt. The first signal asks the servers to cancel the change. The
//! program then reports whether the change was made, because a statement whose program has ended
//! would take effect all the same. The second signal ends the program at once.

use std::{
    pin::pin,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use trunkline::Db;

use crate::{
    error::{Error, Result},
    print,
    stop::Stop,
};

/// The time for which the program waits for the outcome of a change after the first signal.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between requests to cancel. A request between two statements has no effect.
const PAUSE: Duration = Duration::from_millis(500);

/// The first signal since the program's first change.
static STOP: OnceLock<Stop> = OnceLock::new();
/// True while a change is under way.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);

/// The part of a change that is undone if the server cancels one of its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    /// The whole change, which is one transaction.
    All,
    /// A part, because the change consists of several transactions, or concerns several servers.
    Part,
}

/// Runs a change of one database, which is one transaction.
pub fn on<T, E: Into<Error>>(db: &Db, change: impl Future<Output = Result<T, E>>) -> impl Future<Output = Result<T>> {
    undertake(vec![db.clone()], Undone::All, change)
}

/// Runs a change. Signals that arrive before the program's first change have their default action.
pub fn undertake<T, E: Into<Error>>(
    dbs: Vec<Db>,
    undone: Undone,
    change: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T>> {
    // Boxed, because every copy of the future would take as much room again.
    let change = Box::pin(async move { change.await.map_err(Into::<Error>::into) });
    async move {
        let stop = watched()?;
        UNDER_WAY.store(true, Ordering::Relaxed);
        let outcome = attended(stop, move || cancel(dbs.clone()), undone, change).await;
        UNDER_WAY.store(false, Ordering::Relaxed);
        outcome
    }
}

/// Returns true if a signal arrived during a change or after it.
pub fn is_interrupted() -> bool {
    STOP.get().is_some_and(Stop::is_asked)
}

fn watched() -> Result<Stop> {
    if let Some(stop) = STOP.get() {
        return Ok(stop.clone());
    }
    let stop = Stop::on_signals_and_then(|| {
        if UNDER_WAY.load(Ordering::Relaxed) {
            print::note("error: ended by a second signal; the command may still take effect");
        }
    })?;
    Ok(STOP.get_or_init(|| stop).clone())
}

/// Requests at the same time, because one server may not answer.
async fn cancel(dbs: Vec<Db>) {
    let mut requests: JoinSet<()> = dbs.into_iter().map(|db| async move { db.cancel_running().await }).collect();
    while requests.join_next().await.is_some() {}
}

/// Waits for the outcome of a change. After a signal, requests with `cancel` that it end.
async fn attended<T, F: Future<Output = ()>>(
    mut stop: Stop,
    cancel: impl Fn() -> F,
    undone: Undone,
    change: impl Future<Output = Result<T>>,
) -> Result<T> {
    if stop.is_asked() {
        return Err(Error::interrupted("nothing was changed here"));
    }
    let mut change = pin!(change);
    tokio::select! {
        biased;
        outcome = &mut change => return outcome,
        () = stop.asked() => {}
    }
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let request = async {
            cancel().await;
            sleep(PAUSE).await;
        };
        tokio::select! {
            biased;
            outcome = &mut change => return told(outcome, undone),
            () = request => {}
            () = sleep_until(deadline) => {}
        }
    }
    let told = "the server has not answered the request to cancel, and the command may still take effect";
    Err(Error::interrupted(told).hint("check whether it took effect before you repeat it"))
}

/// Describes the outcome of a change after a request to cancel it. Every other error than that of
/// the request describes itself.
fn told<T>(outcome: Result<T>, undone: Undone) -> Result<T> {
    outcome.map_err(|error| match (error, undone) {
        (Error::Database(error), Undone::All) if is_cancelled(&error) => {
            Error::interrupted("the server has cancelled the command, and nothing was changed")
        }
        (Error::Database(error), Undone::Part) if is_cancelled(&error) => {
            let told = "the server has cancelled the command, and a part of it may have been done";
            Error::interrupted(told).hint("check what was done, and run the command again for the rest")
        }
        (error, _) => error,
    })
}

/// Returns true if the server has cancelled a statement, and has answered all others.
pub fn is_cancelled(error: &trunkline::Error) -> bool {
    !error.is_outcome_unknown() && error.sqlstate().is_some_and(|state| state.code() == "57014")
}

#[cfg(test)]
mod tests {
    use tokio::sync::{Notify, watch};

    use super::*;

    #[tokio::test]
    async fn change_that_is_done_after_a_request_is_not_called_cancelled() {
        let (signal, asked) = watch::channel(false);
        let cancelled = Notify::new();
        let change = async {
            signal.send_replace(true);
            cancelled.notified().await;
            Ok(7)
        };
        let request = || async { cancelled.notify_one() };
        let outcome = attended(Stop::of(asked), request, Undone::All, change).await;
        assert_eq!(outcome.expect("done"), 7);
    }

    #[tokio::test]
    async fn change_after_a_signal_is_not_begun() {
        let (_signal, asked) = watch::channel(true);
        let mut is_begun = false;
        let change = async {
            is_begun = true;
            Ok(())
        };
        let outcome = attended(Stop::of(asked), || async {}, Undone::All, change).await;
        assert_eq!(outcome.expect_err("interrupted").code(), 130);
        assert!(!is_begun);
    }
}
