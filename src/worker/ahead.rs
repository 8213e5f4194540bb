//! Estimates how many messages to prefetch, so that each of them starts soon. Does no I/O.

use std::time::Duration;

/// The time within which prefetched messages should start; a tenth of the lease if that is shorter.
const HORIZON: Duration = Duration::from_millis(100);
/// The maximum number of prefetched messages.
const MOST: usize = 8 << 10;
/// The weight of a new duration in the moving average.
const WEIGHT: f64 = 1.0 / 16.0;

/// Estimates of the handlers' and the database's speed.
#[derive(Debug)]
pub(super) struct Ahead {
    horizon: f64,
    /// The mean time in seconds that a task needs for one message; `None` until the first message
    /// is handled.
    mean: Option<f64>,
    /// The maximum number of prefetched messages. A quick lease doubles it, and a slow lease halves
    /// it.
    limit: usize,
}

impl Ahead {
    pub fn new(lease: Duration) -> Self {
        Self { horizon: HORIZON.min(lease / 10).as_secs_f64(), mean: None, limit: 64 }
    }

    pub fn horizon(&self) -> Duration {
        Duration::from_secs_f64(self.horizon)
    }

    /// Records that a task handled `messages` messages in the time `took`.
    pub fn handled(&mut self, took: Duration, messages: usize) {
        let each = took.as_secs_f64() / messages.max(1) as f64;
        let mean = self.mean.get_or_insert(each);
        *mean += (each - *mean) * WEIGHT;
    }

    pub fn mean(&self) -> Option<Duration> {
        self.mean.and_then(|mean| Duration::try_from_secs_f64(mean).ok())
    }

    /// Raises the estimated mean, because messages are waiting and none has started for the time
    /// `since`.
    pub fn stalled(&mut self, hands: usize, since: Duration) {
        self.mean = Some(self.mean.unwrap_or(0.0).max(since.as_secs_f64() * hands as f64));
    }

    /// Records that a lease of `asked` messages returned `got` messages after the time `took`. The
    /// lease is slow if that exceeds the horizon: it was too large, or the server is far away.
    pub fn leased(&mut self, asked: usize, got: usize, took: Duration) {
        if took > self.horizon() {
            self.limit = (self.limit / 2).max(64);
        } else if got * 2 > asked && asked >= self.limit / 2 {
            self.limit = (self.limit * 2).min(MOST);
        }
    }

    /// Returns the number of messages to prefetch, in addition to those that are running.
    pub fn target(&self, hands: usize) -> usize {
        match self.mean {
            None => 0,
            Some(mean) => ((self.horizon * hands as f64 / mean.max(1e-9)) as usize).min(self.limit),
        }
    }

    /// Returns the number of messages to lease now: `each` for each free task, plus the prefetch.
    /// Returns zero if enough messages are waiting.
    pub fn room(&self, hands: usize, free: usize, each: usize, waiting: usize) -> usize {
        let target = self.target(hands);
        if waiting > target / 2 {
            return 0;
        }
        let room = free.saturating_mul(each).saturating_add(target - waiting);
        // Rounds large numbers down to whole batches, because splitting a batch costs time.
        if room > 1024 { room - room % 1024 } else { room }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn after(took: Duration) -> Ahead {
        let mut ahead = Ahead::new(SECOND * 30);
        for _ in 0..20 {
            ahead.handled(took, 1);
            ahead.leased(MOST, MOST, Duration::from_millis(1));
        }
        ahead
    }

    #[test]
    fn slow_jobs_are_leased_for_free_hands_only() {
        let ahead = after(SECOND * 10);
        assert_eq!([ahead.room(64, 64, 1, 0), ahead.room(64, 1, 1, 0), ahead.room(64, 0, 1, 0)], [64, 1, 0]);
    }

    #[test]
    fn before_anything_is_known_nothing_is_leased_ahead() {
        let ahead = Ahead::new(SECOND);
        assert_eq!(ahead.room(64, 64, 1, 0), 64);
        assert_eq!(ahead.room(64, 0, 1, 0), 0);
    }

    #[test]
    fn quick_jobs_are_prefetched_by_the_thousand_in_whole_batches() {
        let ahead = after(Duration::from_nanos(300));
        assert_eq!(ahead.target(64), MOST);
        assert_eq!(ahead.room(64, 0, 1, 5000), 0, "more than half is there");
        assert_eq!(ahead.room(64, 2, 1, 4000), 4096);
    }

    #[test]
    fn no_number_of_hands_or_messages_is_too_large() {
        let ahead = after(Duration::from_nanos(300));
        assert_eq!(ahead.room(2, 2, usize::MAX, 7), usize::MAX - 1023, "whole batches");
        assert_eq!(ahead.room(usize::MAX, usize::MAX, usize::MAX, 0), usize::MAX - 1023);
    }

    #[test]
    fn prefetched_messages_start_within_the_horizon() {
        assert_eq!(after(Duration::from_millis(10)).target(64), 640);
        let mut short = Ahead::new(Duration::from_millis(100));
        short.handled(Duration::from_millis(10), 1);
        assert_eq!(short.target(10), 10, "a tenth of the lease");
    }

    #[test]
    fn a_lease_that_takes_long_makes_the_next_smaller() {
        let mut ahead = after(Duration::from_nanos(300));
        for _ in 0..20 {
            ahead.leased(MOST, MOST, SECOND);
        }
        assert_eq!(ahead.target(64), 64);
    }

    #[test]
    fn a_stall_is_noticed_before_a_slow_handler_has_ended() {
        let mut ahead = after(Duration::from_nanos(300));
        ahead.stalled(64, SECOND);
        assert!(ahead.target(64) <= 6);
    }
}
