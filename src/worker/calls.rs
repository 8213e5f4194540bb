//! Statistics about the calls of a worker's handler, for its reports: the number of messages, the
//! number of failures, and the durations of the calls.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::worker::groups::Decision;

/// The number of buckets in the histogram: four for each power of two, from a microsecond to about
/// two weeks. Durations in the same bucket differ by less than a quarter.
const PLACES: usize = 4 * 41;

pub(super) struct Calls {
    handled: AtomicU64,
    failed: AtomicU64,
    by_time: [AtomicU64; PLACES],
}

/// A snapshot of the counters.
#[derive(Clone)]
pub(super) struct Counted {
    pub handled: u64,
    pub failed: u64,
    by_time: [u64; PLACES],
}

impl Default for Calls {
    fn default() -> Self {
        let by_time = std::array::from_fn(|_| AtomicU64::new(0));
        Self { handled: AtomicU64::new(0), failed: AtomicU64::new(0), by_time }
    }
}

impl Default for Counted {
    fn default() -> Self {
        Self { handled: 0, failed: 0, by_time: [0; PLACES] }
    }
}

impl Calls {
    /// Counts a call. Messages that were given back unhandled, or lost, are not counted.
    pub fn ended(&self, answers: &[Decision], took: Duration) {
        let failed = answers.iter().filter(|answer| matches!(answer, Decision::Retry(..) | Decision::Bury(_))).count();
        let released = answers.iter().filter(|answer| matches!(answer, Decision::Released | Decision::Lost)).count();
        self.handled.fetch_add((answers.len() - released) as u64, Relaxed);
        self.failed.fetch_add(failed as u64, Relaxed);
        self.by_time[place(took)].fetch_add(1, Relaxed);
    }

    pub fn counted(&self) -> Counted {
        Counted {
            handled: self.handled.load(Relaxed),
            failed: self.failed.load(Relaxed),
            by_time: std::array::from_fn(|place| self.by_time[place].load(Relaxed)),
        }
    }
}

impl Counted {
    pub fn since(&self, before: &Self) -> Self {
        Self {
            handled: self.handled - before.handled,
            failed: self.failed - before.failed,
            by_time: std::array::from_fn(|place| self.by_time[place] - before.by_time[place]),
        }
    }

    /// Returns the duration in seconds that the fraction `share` of the calls did not exceed, or
    /// `None` if there were no calls. The result is up to a quarter longer than the exact duration.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let calls: u64 = self.by_time.iter().sum();
        let wanted = (calls as f64 * share).ceil().max(1.0) as u64;
        let mut passed = 0;
        let place = self.by_time.iter().position(|count| {
            passed += count;
            passed >= wanted
        })?;
        Some(longest(place))
    }
}

/// Returns the histogram bucket of a duration. Four buckets cover each power of two of
/// microseconds: the two bits below the highest bit choose between them.
fn place(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    let power = micros.ilog2();
    let quarter = ((u128::from(micros) << 2) >> power) as usize & 3;
    (4 * power as usize + quarter).min(PLACES - 1)
}

/// Returns the upper bound of a histogram bucket, in seconds.
fn longest(place: usize) -> f64 {
    let (power, quarter) = (place / 4, place % 4);
    2_f64.powi(power as i32) * (5 + quarter) as f64 / 4.0 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_is_never_short_and_at_most_a_quarter_long() {
        for micros in [1_u64, 2, 3, 7, 100, 999, 12_345, 1_000_000, 3_599_999_999, 86_400_000_000] {
            let calls = Calls::default();
            calls.ended(&[Decision::Done], Duration::from_micros(micros));
            let (is, told) = (micros as f64 / 1e6, calls.counted().quantile(0.99).expect("a call"));
            assert!(told > is && told <= is * 1.25 + 1e-6, "{told} of {is}");
        }
        assert!(place(Duration::MAX) < PLACES && place(Duration::ZERO) == 0);
    }

    #[test]
    fn quantiles_are_of_the_time_between() {
        let calls = Calls::default();
        calls.ended(&[Decision::Done], Duration::from_secs(9));
        let before = calls.counted();
        for millis in 1..=100 {
            let answer = if millis % 10 == 0 { Decision::Bury("no".to_owned()) } else { Decision::Done };
            calls.ended(&[answer, Decision::Released], Duration::from_millis(millis));
        }
        let since = calls.counted().since(&before);
        assert_eq!((since.handled, since.failed), (100, 10));
        let (half, most) = (since.quantile(0.5).expect("calls"), since.quantile(0.99).expect("calls"));
        assert!((0.05..0.063).contains(&half) && (0.099..0.125).contains(&most), "{half} {most}");
        assert_eq!(before.since(&before).quantile(0.5), None);
    }
}
