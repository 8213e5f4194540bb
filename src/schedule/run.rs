//! The loop that makes ticks, in every process that may.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, Notify},
    time::{Instant, sleep},
};
use tokio_postgres::error::SqlState;
use tracing::{debug, warn};

use super::fire::{Look, Made};
use crate::{
    error::{Error, Result},
    postgres::{db::Db, time::Time},
    queue::consumer::hearing,
};

/// How often the loop looks for what it may have overlooked: a schedule that was committed long
/// after its clock reading, a clock that stepped.
const OVERLOOKED: Duration = Duration::from_secs(60);
/// The same in a worker, which does not listen for new schedules: the server would wake it for
/// every other notification, too.
const UNHEARD: Duration = Duration::from_secs(30);
/// The pauses, first and later, before the loop looks again for ticks that another process is about
/// to make, in case it does not.
const OTHERS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// A statement that began this long ago has mostly ended: what is due earlier has been seen.
const SETTLED: Duration = Duration::from_secs(5);
/// After an error, the first time and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Schedules that are claimed by one transaction: as many ticks come at the same time, on the full
/// minute.
const MOST: usize = 500;

/// The pause before a worker whose role may make no ticks asks again.
const NOT_YET: Duration = Duration::from_secs(300);

/// The one loop for a database in a process.
#[derive(Debug, Default)]
struct Ticking {
    alone: Mutex<()>,
    /// This process changed a schedule.
    changed: Notify,
}

impl Db {
    /// Makes the ticks of all schedules until `shutdown` is ready, as a worker does beside its
    /// work: for a process that does only that. Run any number of them; each tick is made once.
    ///
    /// While the database is away it waits for it.
    ///
    /// # Errors
    /// What does not pass: the role may not make ticks, or the schema is not this library's
    /// version.
    pub async fn run_schedules(&self, shutdown: impl Future<Output = ()>) -> Result<()> {
        self.check_schema().await?;
        tokio::select! {
            outcome = self.keep_ticking(true) => outcome,
            () = shutdown => Ok(()),
        }
    }

    /// Makes ticks for as long as it is polled, once the role may.
    pub(crate) async fn tick_beside_work(self) {
        while let Err(error) = self.keep_ticking(false).await {
            debug!(%error, "this process makes no ticks of schedules");
            sleep(NOT_YET).await;
        }
    }

    /// A schedule was changed here.
    pub(super) fn schedule_changed(&self) {
        self.attached::<Ticking>().changed.notify_one();
    }

    /// Makes ticks until an error that does not pass. With `listens` it hears of new schedules at
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
                Err(error) if error.is_final() || may_not(&error) => return Err(error),
                Err(error) => sleep(round.failed(&error)).await,
            }
        }
    }
}

/// Whether rights are missing.
fn may_not(error: &Error) -> bool {
    error.sqlstate() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}

/// What the loop remembers from one look to the next.
#[derive(Debug)]
struct Round {
    /// Before it nothing is to be done, as far as was seen.
    since: Time,
    /// When all was last looked at.
    whole: Option<Instant>,
    rings: Option<u64>,
    /// Schedules to claim with the next turn.
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
    /// From when on to look.
    fn since(&mut self, rings: Option<u64>, now: Instant) -> Time {
        if rings != self.rings || self.whole.is_none_or(|whole| now.duration_since(whole) >= OVERLOOKED) {
            self.since = Time::EARLIEST;
        }
        if self.since == Time::EARLIEST {
            self.whole = Some(now);
        }
        self.since
    }

    /// Nothing is due. Returns whether the server's clock was set back meanwhile: then all is
    /// looked at at once.
    fn looked(&mut self, look: &Look, rings: Option<u64>) -> bool {
        let since = look.clock.before(SETTLED);
        let is_set_back = since < self.since;
        self.since = if is_set_back { Time::EARLIEST } else { since };
        self.rings = rings;
        (self.others, self.failed) = (OTHERS.0, PAUSE.0);
        is_set_back
    }

    /// Schedules were done with; returns how long to wait until the next look. None were, where
    /// others are about to. Where many ticks were missed, no more are claimed than the next turn
    /// will do, give or take: others can do the rest at the same time.
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
            warn!(%error, "schedules make no ticks; retrying with backoff");
        } else {
            debug!(%error, "schedules still make no ticks");
        }
        let pause = self.failed;
        self.failed = (self.failed * 2).min(PAUSE.1);
        pause
    }
}

#[cfg(test)]
mod tests;
