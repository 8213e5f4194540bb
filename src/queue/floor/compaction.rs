//! Decides when to give the disk space of deleted rows back.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The longest pause between compactions that do nothing.
const SELDOM: Duration = Duration::from_secs(600);
/// The pause after the first of them.
const SOON: Duration = Duration::from_secs(10);

/// The pause before the next compaction: each one in vain doubles it.
#[derive(Debug, Default)]
pub(crate) struct Compaction(Mutex<Pause>);

#[derive(Debug, Default)]
struct Pause {
    until: Option<Instant>,
    length: Duration,
}

impl Compaction {
    /// Returns true if it is time to compact. The caller then does so, and no other caller does in
    /// the meantime.
    pub fn claim(&self, now: Instant) -> bool {
        let mut pause = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = pause.until.is_none_or(|until| now >= until);
        if is_due {
            // Counts as one in vain, until the outcome is known.
            pause.length = (pause.length * 2).clamp(SOON, SELDOM);
            pause.until = Some(now + pause.length);
        }
        is_due
    }

    pub fn was_worth_it(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Pause::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compaction_in_vain_doubles_the_pause() {
        let (compaction, mut now) = (Compaction::default(), Instant::now());
        for pause in [10, 20, 40, 80, 160, 320, 600, 600] {
            assert!(compaction.claim(now) && !compaction.claim(now), "one at a time");
            now += Duration::from_secs(pause - 1);
            assert!(!compaction.claim(now));
            now += Duration::from_secs(1);
        }
        assert!(compaction.claim(now));
        compaction.was_worth_it();
        assert!(compaction.claim(now));
        assert!(compaction.claim(now + SOON));
    }
}
