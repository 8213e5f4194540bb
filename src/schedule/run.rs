//! The loop that runs schedules, in every process whose role has the right.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::{
    sync::{Mutex, Notify},
    time::{Instant, sleep},
};
use tracing::{debug, warn};

use super::fire::{DueIn, Made};
use crate::{
    error::{Error, Result, text_of},
    postgres::{
        db::{Class, Db},
        time::Time,
    },
    queue::consumer::hearing,
};

/// The interval at which the loop reads all schedules again. The loop may have missed a schedule
/// that was committed long after its clock reading, or a step of the clock.
const OVERLOOKED: Duration = Duration::from_secs(60);
/// The same interval in a worker. A worker does not listen for new schedules, because the server
/// would wake it for every other notification too.
const UNHEARD: Duration = Duration::from_secs(30);
/// The first and the longest pause before the loop checks the ticks that another process is about
/// to run, in case that process fails.
const OTHERS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// The time within which a statement usually ends. The loop therefore knows every tick that became
/// due earlier than this time ago.
const SETTLED: Duration = Duration::from_secs(5);
/// The first and the longest pause after an error.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// The maximum number of schedules that one transaction claims. Many ticks are due at the same
/// time, on the full minute.
const MOST: usize = 500;

/// The pause of a worker whose role lacks the right, before it checks the right again.
const NOT_YET: Duration = Duration::from_secs(300);

/// The state that allows only one loop per database in a process.
#[derive(Debug, Default)]
struct Ticking {
    alone: Mutex<()>,
    /// Notified when this process changes a schedule.
    changed: Notify,
}

impl Db {
    /// Runs all schedules until `shutdown` completes: enqueues the message of each schedule at its
    /// ticks. Use this method in a process without other work; a worker runs schedules in addition
    /// to its work. Any number of processes can run schedules, because each tick enqueues once.
    ///
    /// While the database is unreachable, the call waits for it.
    ///
    /// # Errors
    /// A permanent error: the role may not run schedules, or this library does not support the
    /// version of the schema.
    pub async fn run_schedules(&self, shutdown: impl Future<Output = ()>) -> Result<()> {
        self.check_schema("tick").await?;
        let ticking = async {
            // Without a due tick, the loop only reads, and would never notice.
            if let Ok(session) = self.session(Class::Main).await
                && let Ok(true) = session.is_read_only().await
            {
                warn!("this server accepts no writes, as a standby does: no ticks are made here until it accepts them");
            }
            self.keep_ticking(true).await
        };
        tokio::select! {
            outcome = ticking => outcome,
            () = shutdown => Ok(()),
        }
    }

    /// Runs schedules as soon as the role has the right, until this future is dropped. Continues
    /// after a panic, because the worker's messages do not depend on schedules.
    pub(crate) async fn tick_beside_work(self) {
        loop {
            let pause = match AssertUnwindSafe(self.keep_ticking(false)).catch_unwind().await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => {
                    debug!(%error, "this process runs no schedules");
                    NOT_YET
                }
                Err(panic) => {
                    let panic = text_of(panic);
                    warn!(panic, "running schedules panicked; trying again");
                    PAUSE.1
                }
            };
            sleep(pause).await;
        }
    }

    /// Wakes the loop after this process has changed a schedule.
    pub(super) fn schedule_changed(&self) {
        self.attached::<Ticking>().changed.notify_one();
    }

    /// Runs schedules until a permanent error. If `listens` is set, new schedules wake the loop at
    /// once.
    async fn keep_ticking(&self, listens: bool) -> Result<()> {
        let ticking: Arc<Ticking> = self.attached();
        let _alone = ticking.alone.lock().await;
        let channel = format!("{}._schedules", self.schema().name());
        let mut subscription = listens.then(|| self.subscribe(&channel));
        let mut round = Round::default();
        loop {
            let rings = hearing::heard(&mut subscription);
            let since = round.since(rings, Instant::now());
            let step = match self.schedules_due_in(since).await {
                Ok(look) if look.is_due() => self.fire(since, round.most).await.map(|made| round.made(made)),
                Ok(look) => {
                    if round.looked(&look, rings) {
                        continue;
                    }
                    let longest = if hearing::hears(subscription.as_ref()) { OVERLOOKED } else { UNHEARD };
                    tokio::select! {
                        () = hearing::sleep(&mut subscription, look.pause(longest), rings) => {}
                        () = ticking.changed.notified() => round.whole = None,
                    }
                    continue;
                }
                Err(error) => Err(error),
            };
            match step {
                Ok(pause) => sleep(pause).await,
                Err(error) if error.is_final() || error.lacks_right() => return Err(error),
                Err(error) => sleep(round.failed(&error)).await,
            }
        }
    }
}

/// The state that the loop keeps between rounds.
#[derive(Debug)]
struct Round {
    /// The time before which no schedule is due, as far as this loop knows.
    since: Time,
    /// The time when all schedules were last read.
    whole: Option<Instant>,
    rings: Option<u64>,
    /// The number of schedules to claim in the next round.
    most: usize,
    others: Duration,
    failed: Duration,
}

impl Default for Round {
    fn default() -> Self {
        Self { since: Time::EARLIEST, whole: None, rings: None, most: MOST, others: OTHERS.0, failed: PAUSE.0 }
    }
}

impl Round {
    /// Returns the earliest due time to search from.
    fn since(&mut self, rings: Option<u64>, now: Instant) -> Time {
        if rings != self.rings || self.whole.is_none_or(|whole| now.duration_since(whole) >= OVERLOOKED) {
            self.since = Time::EARLIEST;
        }
        if self.since == Time::EARLIEST {
            self.whole = Some(now);
        }
        self.since
    }

    /// Records that nothing is due. Returns true if the server's clock has been set back since the
    /// last round: the loop then reads all schedules at once.
    fn looked(&mut self, look: &DueIn, rings: Option<u64>) -> bool {
        let since = look.clock.before(SETTLED);
        let is_set_back = since < self.since;
        self.since = if is_set_back { Time::EARLIEST } else { since };
        self.rings = rings;
        (self.others, self.failed) = (OTHERS.0, PAUSE.0);
        is_set_back
    }

    /// Records the processed schedules, and returns the pause before the next round. If no schedule
    /// was processed, another process is about to process the due ones. If many ticks were missed,
    /// the next round claims only about as many schedules as it can process. Other processes can
    /// then process the rest at the same time.
    fn made(&mut self, made: Made) -> Duration {
        self.failed = PAUSE.0;
        self.most = (if made.has_left { made.schedules * 2 } else { self.most * 2 }).min(MOST);
        if made.schedules > 0 {
            self.others = OTHERS.0;
            return Duration::ZERO;
        }
        let pause = self.others;
        self.others = (self.others * 2).min(OTHERS.1);
        pause
    }

    fn failed(&mut self, error: &Error) -> Duration {
        if self.failed == PAUSE.0 {
            warn!(%error, "cannot run schedules; retrying with backoff");
        } else {
            debug!(%error, "still cannot run schedules");
        }
        let pause = self.failed;
        self.failed = (self.failed * 2).min(PAUSE.1);
        pause
    }
}

#[cfg(test)]
mod tests;
