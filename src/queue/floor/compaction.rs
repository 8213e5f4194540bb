//! Decides when to give the disk space of deleted rows back.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The time until the next try, after the first one in vain and at most. A try costs little if a
/// session holds it up.
const EVERY: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));
/// The time for which producers and consumers may have to wait, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// The next try. Each one in vain doubles the time until the next, and the pause that is accepted
/// then: what could not be freed in good time takes longer.
#[derive(Debug, Default)]
pub(crate) struct Compaction(Mutex<Next>);

#[derive(Debug, Default)]
struct Next {
    at: Option<Instant>,
    in_vain: u32,
}

impl Compaction {
    /// Returns the longest pause that is accepted, if it is time to compact. The caller then does
    /// so, and no other caller does in the meantime.
    pub fn claim(&self, now: Instant) -> Option<Duration> {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if next.at.is_some_and(|at| now < at) {
            return None;
        }
        let doubled = |(first, most): (Duration, Duration)| first.saturating_mul(1 << next.in_vain.min(10)).min(most);
        let (every, pause) = (doubled(EVERY), doubled(PAUSE));
        // It counts as in vain until the outcome is known.
        *next = Next { at: Some(now + every), in_vain: next.in_vain.saturating_add(1) };
        Some(pause)
    }

    pub fn was_worth_it(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Next::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compaction_in_vain_doubles_the_time_and_the_pause() {
        let (compaction, mut now) = (Compaction::default(), Instant::now());
        for (every, pause) in [(10, 250), (20, 500), (40, 1000), (60, 2000), (60, 2000)] {
            assert_eq!(compaction.claim(now), Some(Duration::from_millis(pause)));
            assert_eq!(compaction.claim(now), None, "one at a time");
            now += Duration::from_secs(every - 1);
            assert_eq!(compaction.claim(now), None);
            now += Duration::from_secs(1);
        }
        compaction.was_worth_it();
        assert_eq!(compaction.claim(now), Some(PAUSE.0));
        assert_eq!(compaction.claim(now + EVERY.0), Some(2 * PAUSE.0));
    }
}
