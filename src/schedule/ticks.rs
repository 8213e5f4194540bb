//! Computes the ticks that are due now, and the time of the next tick.

use std::time::Duration;

use jiff::Timestamp;

use super::{draft::Missed, expression::Expression};

/// The maximum age of a tick that is not counted as missed.
const IN_TIME: Duration = Duration::from_secs(60);
/// The maximum number of ticks to run at once with [`Missed::Each`].
const MOST: usize = 1000;

/// The ticks of a schedule to run now, and the next tick.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    pub now: Vec<Timestamp>,
    /// True if ticks were dropped because there were too many.
    pub has_dropped: bool,
    pub next: Option<Timestamp>,
}

impl Expression {
    /// Returns the ticks from `first`, which is due, to now, and the next tick.
    pub fn ticks(&self, missed: Missed, first: Timestamp, now: Timestamp) -> Ticks {
        let most = if missed == Missed::Each { MOST } else { 1 };
        #[cfg(trunkline_mutant)]
        let most = if crate::error::mutant::is("leaves-ticks-out") { 1 } else { most };
        // Starts one tick earlier, because the backward search misses a tick at a time that the
        // local clock skipped.
        let start = self.not_far_behind(now, first, most + 1);
        let (mut ticks, mut next) = (vec![start], self.next(start));
        while let Some(tick) = next.filter(|tick| *tick <= now) {
            ticks.push(tick);
            next = self.next(tick);
        }
        let behind = ticks.len().saturating_sub(most);
        let has_dropped = missed == Missed::Each && (start != first || behind > 0);
        ticks.drain(..behind);
        if missed == Missed::Skip {
            ticks.retain(|tick| now.duration_since(*tick).unsigned_abs() <= IN_TIME);
        }
        Ticks { now: ticks, has_dropped, next }
    }

    /// Returns `first`, or the tick that is `ticks` ticks before now if that tick is later. This
    /// avoids a search through years of missed ticks.
    fn not_far_behind(&self, now: Timestamp, first: Timestamp, ticks: usize) -> Timestamp {
        let mut at = now;
        for _ in 0..ticks {
            match self.previous(at).filter(|tick| *tick > first) {
                Some(tick) => at = tick,
                None => return first,
            }
        }
        at
    }
}

#[cfg(test)]
mod tests;
