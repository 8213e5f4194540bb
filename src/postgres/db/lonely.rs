//! Detection of statements that each take a round trip, although they could share round trips.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tracing::debug;

/// The number of consecutive lonely statements after which advice is logged.
const MANY: u32 = 32;
/// The maximum time in which these statements must be sent. Slower statements are not a loop.
const LOOP: Duration = Duration::from_secs(2);
/// The minimum time between two pieces of advice from the same [`Db`](crate::Db).
const QUIET: Duration = Duration::from_secs(60);

/// The time when advice was last logged. All [`LonelyTrips`] of a [`Db`](crate::Db) share it.
#[derive(Debug, Default)]
pub(crate) struct LonelyAdvice(Mutex<Option<Instant>>);

impl LonelyAdvice {
    /// Returns true if advice is due, and then starts the pause until the next advice.
    fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= QUIET);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// A counter of statements that were each sent alone, after the reply to the previous statement.
#[derive(Debug, Default)]
pub(crate) struct LonelyTrips {
    row: AtomicU32,
    began: Mutex<Option<Instant>>,
}

impl LonelyTrips {
    /// Counts a statement whose caller waits for its reply. `is_alone` is true if no other
    /// statement is running. Logs advice if this statement completes a fast series of `MANY`
    /// statements.
    pub fn count(&self, is_alone: bool, advice: &LonelyAdvice) {
        if self.is_loop(is_alone) && advice.is_due() {
            debug!(
                "{MANY} statements in a row took a round trip each: run_many, insert_many or Transaction::send share one"
            );
        }
    }

    /// Returns true if this statement completes a series that looks like a loop. Concurrent calls
    /// may miscount, which is acceptable because the result is only a hint.
    fn is_loop(&self, is_alone: bool) -> bool {
        if !is_alone {
            if self.row.load(Ordering::Relaxed) != 0 {
                self.row.store(0, Ordering::Relaxed);
            }
            return false;
        }
        match self.row.fetch_add(1, Ordering::Relaxed) + 1 {
            1 => *self.began() = Some(Instant::now()),
            MANY.. => {
                self.row.store(0, Ordering::Relaxed);
                return self.began().is_some_and(|began| began.elapsed() <= LOOP);
            }
            _ => {}
        }
        false
    }

    fn began(&self) -> MutexGuard<'_, Option<Instant>> {
        self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_quick_row_of_lonely_statements_is_a_loop() {
        let trips = LonelyTrips::default();
        let row = |many: u32| (0..many).filter(|_| trips.is_loop(true)).count();
        assert_eq!(row(MANY - 1), 0);
        assert_eq!(row(1), 1);
        assert_eq!(row(2 * MANY), 2);
        assert_eq!(row(MANY - 1), 0);
        tokio::time::advance(LOOP + Duration::from_millis(1)).await;
        assert_eq!(row(1), 0, "it took too long");
        assert_eq!(row(MANY - 1), 0);
        assert!(!trips.is_loop(false), "another statement was under way");
        assert_eq!((row(MANY - 1), row(1)), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn advice_is_due_once_a_minute() {
        let advice = LonelyAdvice::default();
        assert!(advice.is_due());
        assert!(!advice.is_due());
        tokio::time::advance(QUIET).await;
        assert!(advice.is_due());
        assert!(!advice.is_due());
    }
}
