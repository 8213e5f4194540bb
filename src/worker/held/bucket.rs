//! The token bucket of a key with a rate: how many messages may start, and when.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::queue::message::keys::Rate;

/// The token bucket of a key. Each message that starts takes the amount that the rate refills
/// between two messages. Therefore a single time describes the bucket: the time when it is full
/// again.
pub(super) struct Bucket {
    rate: Arc<Rate>,
    full_at: Instant,
    /// The number of messages that may start but have not started yet.
    promised: u32,
}

impl Bucket {
    /// Creates an empty bucket, because another worker may just have owned the key's partition and
    /// used up the tokens.
    pub fn new(rate: Arc<Rate>, now: Instant) -> Self {
        let full_at = now + rate.full_in;
        Self { rate, full_at, promised: 0 }
    }

    /// Adopts the rate and the fill level of a later lease. The rate may have changed, and another
    /// worker may have used tokens since the last lease.
    pub fn told(&mut self, rate: &Arc<Rate>, now: Instant) {
        self.full_at = self.full_at.max(now + rate.full_in);
        self.rate = rate.clone();
    }

    /// Returns the time at which a message may start, if `behind` other messages wait before it.
    pub fn opens(&self, behind: usize, now: Instant) -> Instant {
        let ahead = u32::try_from(behind).unwrap_or(u32::MAX).saturating_add(self.promised).saturating_add(1);
        let full_at = self.full_at.max(now);
        (full_at + self.rate.each.saturating_mul(ahead).min(LONGEST)).checked_sub(self.rate.whole).unwrap_or(full_at)
    }

    /// Returns how long a key may rest if `behind` of its messages are waiting. After the rest, the
    /// worker has the time `margin` to lease half a bucket of messages before they may start.
    pub fn rest(&self, behind: usize, now: Instant, margin: Duration) -> Duration {
        let half = (self.rate.whole.as_secs_f64() / self.rate.each.as_secs_f64().max(1e-9) / 2.0) as usize;
        self.opens(behind + half.saturating_sub(1), now).saturating_duration_since(now + margin)
    }

    pub fn promise(&mut self) {
        self.promised += 1;
    }

    /// Returns the token of a promised message that will not start.
    pub fn take_back(&mut self) {
        self.promised = self.promised.saturating_sub(1);
    }

    /// Records that a promised message starts.
    pub fn begin(&mut self, now: Instant) {
        self.take_back();
        self.full_at = self.full_at.max(now) + self.rate.each;
    }

    pub fn is_full(&self, now: Instant) -> bool {
        self.promised == 0 && self.full_at <= now
    }
}

/// The maximum delay. It prevents overflow when times are added.
const LONGEST: Duration = Duration::from_secs(1 << 32);

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Duration = Duration::from_millis(100);

    fn bucket(burst: u32, full_in: Duration, now: Instant) -> Bucket {
        Bucket::new(Arc::new(Rate { each: EACH, whole: EACH * burst, full_in }), now)
    }

    #[test]
    fn burst_begins_at_once_and_the_rest_one_by_one() {
        let now = Instant::now();
        let mut bucket = bucket(3, Duration::ZERO, now);
        for _ in 0..3 {
            assert!(bucket.opens(0, now) <= now);
            bucket.promise();
        }
        assert_eq!(bucket.opens(0, now), now + EACH);
        assert_eq!(bucket.opens(2, now), now + EACH * 3);
        (0..3).for_each(|_| bucket.begin(now));
        assert_eq!(bucket.opens(0, now + EACH / 2), now + EACH);
    }

    #[test]
    fn bucket_of_a_moved_partition_fills_from_the_move_on() {
        let now = Instant::now();
        let mut bucket = bucket(4, EACH * 3, now);
        assert_eq!(bucket.opens(0, now), now);
        assert_eq!(bucket.opens(1, now), now + EACH);
        bucket.told(&Arc::new(Rate { each: EACH, whole: EACH * 4, full_in: EACH * 4 }), now);
        assert_eq!(bucket.opens(0, now), now + EACH);
    }

    #[test]
    fn starts_never_exceed_burst_plus_refill() {
        let began = Instant::now();
        let mut bucket = bucket(5, EACH * 5, began);
        let mut times: Vec<Instant> = Vec::new();
        // Messages arrive at irregular times, and start later than they could.
        for nr in 0..2000_u32 {
            let now = began + Duration::from_millis(u64::from(nr * 7));
            if nr % 29 > 20 {
                while bucket.opens(0, now) <= now {
                    bucket.promise();
                }
            }
            if nr % 13 == 0 {
                while bucket.promised > 0 {
                    bucket.begin(now);
                    times.push(now);
                }
            }
        }
        assert!(times.len() > 120, "{}", times.len());
        for (at, first) in times.iter().enumerate() {
            for (more, last) in times[at..].iter().enumerate() {
                let time = last.duration_since(*first).as_secs_f64();
                assert!((more + 1) as f64 <= 5.0 + time / EACH.as_secs_f64() + 1e-6, "{} in {time} s", more + 1);
            }
        }
    }
}
