//! Outages of the database: increasing pauses between attempts, and a single warning.

use std::time::{Duration, Instant};

use crate::{
    error::{Error, is_unanswered},
    print,
};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// An outage: the time from the first failed statement to the next successful one.
#[derive(Debug, Default)]
pub struct Outage {
    since: Option<Instant>,
    tries: u32,
}

impl Outage {
    /// Records that a statement failed. Returns how long to wait before the next attempt, or the
    /// error if waiting does not help.
    pub fn pause(&mut self, error: Error) -> Result<Duration, Error> {
        let Error::Database(cause) = &error else { return Err(error) };
        if !passes(cause) {
            return Err(error);
        }
        if self.since.is_none() {
            self.since = Some(Instant::now());
            print::note(format!("warning: {}; trying again until the database answers", error.told().0));
        }
        let pause = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(self.tries).unwrap_or(u32::MAX));
        self.tries += 1;
        Ok(pause.min(LONGEST_PAUSE))
    }

    /// Returns how long the outage has lasted, if there is one.
    pub fn lasted(&self) -> Option<Duration> {
        self.since.map(|since| since.elapsed())
    }

    /// Records that a statement succeeded.
    pub fn over(&mut self) {
        *self = Self::default();
    }
}

/// Returns true if the server's state caused the error, and not the statement. The state can change
/// without any action.
fn passes(error: &trunkline::Error) -> bool {
    if error.is_outcome_unknown() && error.is_closed() {
        return true;
    }
    match error.sqlstate() {
        // These classes cover connections, a standby that is not promoted yet, conflicts,
        // resources, locks, shutdowns, timeouts, and disks.
        Some(code) => {
            ["08", "40", "53", "57", "58"].iter().any(|class| code.code().starts_with(class))
                || ["25006", "55P03"].contains(&code.code())
        }
        None => is_unanswered(error),
    }
}
