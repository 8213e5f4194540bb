//! Runs due ticks. One transaction locks schedules, enqueues their messages and stores their next
//! ticks.

use std::{collections::HashMap, time::Duration};

use tokio_postgres::error::SqlState;
use tracing::{Instrument, Span, debug_span, field::Empty, warn};

use super::claim::{Claimed, claim, fitting, time_of};
use crate::{
    error::{Error, Result},
    postgres::{
        db::{Class, Db},
        time::Time,
        transaction::Transaction,
        wire::only,
    },
    queue::observe::metric::{self, ShardName},
};

/// The result of one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Made {
    /// The number of schedules that were processed. A schedule that this process cannot read does
    /// not count, because it stays due for a moment.
    pub schedules: usize,
    /// True if more schedules were claimed than processed, because one transaction could not insert
    /// more messages. The next round processes the rest.
    pub has_left: bool,
}

impl Db {
    /// Processes up to `most` schedules that became due at or after `since`. If the server refuses
    /// a tick, the reason is stored in the schedule's row, and other schedules are not delayed.
    pub(super) async fn fire(&self, since: Time, most: usize) -> Result<Made> {
        let span = debug_span!("tick", schedules = Empty, ticks = Empty);
        let outcome = self.fire_some(since, most).instrument(span).await;
        match outcome {
            Err(error) if is_of_a_tick(&error) => {}
            outcome => return outcome,
        }
        let (mut schedules, mut locked) = (0, HashMap::new());
        while schedules < most && self.fire_one(since, &mut locked).await? {
            schedules += 1;
        }
        Ok(Made { schedules, has_left: false })
    }

    async fn fire_some(&self, since: Time, most: usize) -> Result<Made> {
        let transaction = self.begin().await?;
        let rows = claim(&transaction, self, since, most).await?;
        let found = rows.len();
        let claimed = fitting(rows.into_iter().map(Claimed::of));
        if claimed.is_empty() {
            transaction.rollback().await?;
            return Ok(Made { schedules: 0, has_left: false });
        }
        self.make(transaction, &claimed).await?;
        told(self, &claimed);
        let schedules = claimed.iter().filter(|one| one.is_read).count();
        Ok(Made { schedules, has_left: claimed.len() < found })
    }

    /// Processes the first due schedule alone, so that its error ends only its own transaction. A
    /// deferred trigger may raise the error as late as at the commit. A queue whose lock was not
    /// free is not tried again, because each of its schedules would wait for the lock for a second.
    async fn fire_one(&self, since: Time, locked: &mut HashMap<String, Error>) -> Result<bool> {
        let transaction = self.begin().await?;
        let claimed = fitting(claim(&transaction, self, since, 1).await?.into_iter().map(Claimed::of));
        let [one] = &claimed[..] else {
            transaction.rollback().await?;
            return Ok(false);
        };
        if !one.is_read {
            transaction.rollback().await?;
            self.record(one, None, one.problem.as_deref().unwrap_or_default()).await?;
            return Ok(true);
        }
        if let Some(error) = locked.get(&one.queue) {
            transaction.rollback().await?;
            self.fail(one, error).await?;
            return Ok(true);
        }
        match self.make(transaction, &claimed).await {
            Ok(()) => told(self, &claimed),
            Err(error) if is_of_a_tick(&error) => {
                self.fail(one, &error).await?;
                if error.sqlstate() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
                    locked.insert(one.queue.clone(), error);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    async fn make(&self, transaction: Transaction, claimed: &[Claimed]) -> Result<()> {
        self.enqueue_ticks(&transaction, claimed).await?;
        self.place(&transaction, claimed).await?;
        transaction.commit().await
    }

    /// Stores the reason for a failed tick in its schedule's row. The tick is tried again, after
    /// growing pauses. If the message itself was refused, the schedule continues with its next tick
    /// instead.
    async fn fail(&self, one: &Claimed, error: &Error) -> Result<()> {
        warn!(schedule = one.name, queue = one.queue, %error, "cannot enqueue the message of a tick");
        self.record(one, is_refused(error).then_some(one.next), &error.to_string()).await
    }

    async fn record(&self, one: &Claimed, next: Option<Time>, problem: &str) -> Result<()> {
        let sql = self.statement("fail_schedule", include_str!("../../sql/statements/fail_schedule.sql"));
        self.query(Class::Main, &sql, &[&one.name, &one.first, &next, &problem]).await.map(drop)
    }

    async fn enqueue_ticks(&self, transaction: &Transaction, claimed: &[Claimed]) -> Result<()> {
        let each = claimed.iter().flat_map(|one| one.ticks.iter().map(|tick| (&*one.tid, time_of(*tick))));
        let (tids, ticks): (Vec<&str>, Vec<Time>) = each.unzip();
        if ticks.is_empty() {
            return Ok(());
        }
        let sql = self.statement("tick", include_str!("../../sql/statements/tick.sql"));
        let sent = transaction.send_text::<Vec<(i64,)>>(&sql.text, &[&tids, &ticks]).await?;
        sent.await.map(drop)
    }

    /// Stores the next ticks; null for a schedule that this process cannot read. The statement is
    /// sent together with the commit.
    async fn place(&self, transaction: &Transaction, claimed: &[Claimed]) -> Result<()> {
        let tids: Vec<&str> = claimed.iter().map(|one| &*one.tid).collect();
        let nexts: Vec<Option<Time>> = claimed.iter().map(|one| one.is_read.then_some(one.next)).collect();
        let lasts: Vec<Option<Time>> = claimed.iter().map(|one| one.ticks.last().copied().map(time_of)).collect();
        let problems: Vec<Option<&str>> = claimed.iter().map(|one| one.problem.as_deref()).collect();
        let sql = self.statement("place_schedules", include_str!("../../sql/statements/place_schedules.sql"));
        transaction.send_text::<u64>(&sql.text, &[&tids, &nexts, &lasts, &problems]).await.map(drop)
    }

    /// Returns the time until the next schedule is due. Considers only schedules that become due at
    /// or after `since`.
    pub(super) async fn schedules_due_in(&self, since: Time) -> Result<DueIn> {
        let sql = self.statement("schedules_due_in", include_str!("../../sql/statements/schedules_due_in.sql"));
        let rows = self.query_again(Class::Main, &sql, &[&since]).await?;
        let row = only(&rows)?;
        Ok(DueIn { due_in: row.read(0)?, clock: row.read(1)? })
    }
}

/// The result of a query for the next due schedule.
#[derive(Debug)]
pub(super) struct DueIn {
    /// The number of seconds until the next schedule is due, or `None` if no schedule will become
    /// due. Other processes may be waiting for the same schedule.
    due_in: Option<f64>,
    /// The current time of the server's clock.
    pub clock: Time,
}

impl DueIn {
    #[cfg(test)]
    pub fn at(due_in: Option<f64>, clock: Time) -> Self {
        Self { due_in, clock }
    }

    pub fn is_due(&self) -> bool {
        self.due_in.is_some_and(|seconds| seconds <= 0.0)
    }

    /// Returns the time until a schedule is due, at most `longest`.
    pub fn pause(&self, longest: Duration) -> Duration {
        let due_in = self.due_in.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        due_in.unwrap_or(longest).min(longest)
    }
}

/// Returns true if the server refused a statement without ending the session or shutting down.
/// Another tick may then still succeed.
fn is_of_a_tick(error: &Error) -> bool {
    let is_of = |code: &SqlState| !is_of_class(code, &["08", "57"]) || code == &SqlState::QUERY_CANCELED;
    error.sqlstate().is_some_and(is_of)
}

/// Returns true if the server refused the message itself: because of its type, a constraint, a
/// trigger or a missing right. All other errors may be temporary, like a full disk or a drain that
/// is undone later, and must not skip a tick.
fn is_refused(error: &Error) -> bool {
    let is_of = |code: &SqlState| is_of_class(code, &["22", "23", "42", "54", "P0"]);
    error.sqlstate().is_some_and(is_of) && !error.is_drained()
}

/// Returns true if the code begins with one of the classes. A pooler or a proxy may send any text.
fn is_of_class(code: &SqlState, classes: &[&str]) -> bool {
    classes.iter().any(|class| code.code().starts_with(class))
}

fn told(db: &Db, claimed: &[Claimed]) {
    let span = Span::current();
    span.record("schedules", claimed.len());
    span.record("ticks", claimed.iter().map(|one| one.ticks.len()).sum::<usize>());
    let shard = db.attached::<ShardName>();
    for one in claimed.iter().filter(|one| !one.ticks.is_empty()) {
        metric::ticked(&one.queue, &shard, one.ticks.len(), one.late);
    }
    for one in claimed.iter().filter(|one| one.has_dropped) {
        warn!(schedule = one.name, "too many ticks were missed; the earliest are left out");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{is_of_a_tick, is_refused};
    use crate::error::{Error, server::ServerError};

    #[test]
    fn code_of_any_length_has_a_class() {
        let error = |code: &str| {
            let fields = format!("C{code}\0");
            Error::of_server("tick", Arc::new(ServerError::parse(fields.as_bytes())))
        };
        for (code, is_of, refused) in
            [("", true, false), ("5", true, false), ("é", true, false), ("23505", true, true), ("57P01", false, false)]
        {
            let error = error(code);
            assert_eq!((is_of_a_tick(&error), is_refused(&error)), (is_of, refused), "{code:?}");
        }
    }
}
