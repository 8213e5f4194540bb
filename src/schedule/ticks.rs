//! Which ticks are to be made now, and when the next one is.

use std::time::Duration;

use jiff::Timestamp;

use super::{draft::Missed, expression::Expression};

/// A tick that is no older is made, and not made up for.
const IN_TIME: Duration = Duration::from_secs(60);
/// As many are made at a time, where each is wanted.
const MOST: usize = 1000;

/// What is to be done with a schedule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    pub now: Vec<Timestamp>,
    /// There were more than can be made.
    pub has_dropped: bool,
    pub next: Option<Timestamp>,
}

impl Expression {
    /// The ticks from `first`, which has come, until now.
    pub fn ticks(&self, missed: Missed, first: Timestamp, now: Timestamp) -> Ticks {
        let most = if missed == Missed::Each { MOST } else { 1 };
        #[cfg(trunkline_mutant)]
        let most = if crate::error::mutant::is("leaves-ticks-out") { 1 } else { most };
        // One more, because backwards none is found where a clock jumped ahead.
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

    /// The first tick, or a later one that is `ticks` before now: years of seconds are not gone
    /// through one by one.
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
