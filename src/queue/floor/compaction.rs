//! Decides when to return the disk space of deleted rows.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The pause after the first compaction that freed nothing, and the maximum pause.
const EVERY: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));

/// The time of the next compaction. Each compaction that frees nothing doubles the pause.
#[derive(Debug, Default)]
pub(crate) struct Compaction(Mutex<Next>);

#[derive(Debug, Default)]
struct Next {
    at: Option<Instant>,
    in_vain: u32,
}

impl Compaction {
    /// Returns true if a compaction is due. The caller must then compact, because no other caller
    /// will.
    pub fn claim(&self, now: Instant) -> bool {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = next.at.is_none_or(|at| now >= at);
        if is_due {
            // Until its outcome is known, this compaction counts as one that frees nothing.
            let every = EVERY.0.saturating_mul(1 << next.in_vain.min(10)).min(EVERY.1);
            *next = Next { at: Some(now + every), in_vain: next.in_vain.saturating_add(1) };
        }
        is_due
    }

    pub fn was_worth_it(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Next::default();
    }
}

#[cfg(test)]
#[path = "../../../tests/models/compaction.rs"]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compaction_in_vain_doubles_the_time_until_the_next() {
        let (compaction, mut now) = (Compaction::default(), Instant::now());
        for every in [10, 20, 40, 60, 60] {
            assert!(compaction.claim(now) && !compaction.claim(now), "one at a time");
            now += Duration::from_secs(every - 1);
            assert!(!compaction.claim(now));
            now += Duration::from_secs(1);
        }
        compaction.was_worth_it();
        assert!(compaction.claim(now));
        assert!(compaction.claim(now + EVERY.0));
    }
}
