//! Handles an unreachable database: pauses grow, and only the first failure is a warning.

use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use crate::{error::Error, worker::retry_policy};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Outage {
    since: Option<Instant>,
    tries: u32,
}

impl Outage {
    /// Records a failed try. Returns the pause before the next try.
    pub fn pause(&mut self, queue: &str, error: &Error) -> Duration {
        self.tries += 1;
        if self.since.is_none() {
            self.since = Some(Instant::now());
            if error.is_closed() {
                warn!(queue, %error, "worker lost the database; retrying with backoff");
            } else {
                warn!(queue, %error, "the database refused a statement of a worker; retrying with backoff");
            }
        } else {
            debug!(queue, %error, tries = self.tries, "worker still cannot use the database");
        }
        retry_policy::exponential(FIRST_PAUSE, LONGEST_PAUSE, self.tries, retry_policy::random())
    }

    pub fn over(&mut self, queue: &str) {
        if let Some(since) = self.since.take() {
            info!(queue, after = ?since.elapsed(), "worker can use the database again");
            self.tries = 0;
        }
    }
}
