//! The delay before a failed message is tried again. It depends only on the attempt, the failure
//! and a random number.

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::Duration,
};

use tracing::warn;

use crate::{
    error::caught,
    queue::message::failure::{Failure, LONGEST, Verdict},
};

/// The rule that decides whether and when a failed message is tried again.
///
/// The default is [`RetryPolicy::exponential`] from 1 second to 1 hour. The queue's maximum number
/// of attempts also applies: the lower of the two limits makes the message a dead letter.
#[derive(Clone)]
pub struct RetryPolicy {
    delay: Delay,
    attempts: u32,
}

/// A user's function, which receives the number of the attempt and its failure.
type Custom = dyn Fn(u32, &Failure) -> Option<Duration> + Send + Sync;

#[derive(Clone)]
enum Delay {
    Exponential { first: Duration, most: Duration },
    Fixed(Duration),
    Custom(Arc<Custom>),
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::exponential(Duration::from_secs(1), Duration::from_secs(3600))
    }
}

impl RetryPolicy {
    /// Waits `first` after the first attempt, then twice as long each time, up to `most`. Each
    /// delay is random, between half of that time and all of it, so that messages that failed
    /// together do not all become due together.
    #[must_use]
    pub fn exponential(first: Duration, most: Duration) -> Self {
        Self { delay: Delay::Exponential { first, most }, attempts: u32::MAX }
    }

    /// Waits for the same time after each attempt.
    #[must_use]
    pub fn fixed(delay: Duration) -> Self {
        Self { delay: Delay::Fixed(delay), attempts: u32::MAX }
    }

    /// Calls a function that decides. It receives the number of the failed attempt (1 for the
    /// first) and the failure, which contains the handler's error ([`Failure::downcast_ref`]). If
    /// it returns `None`, the message becomes a dead letter at once. If it panics, the default
    /// policy decides.
    ///
    /// Attempts that were given back, for example by a shutdown, do not count.
    #[must_use]
    pub fn custom(delay: impl Fn(u32, &Failure) -> Option<Duration> + Send + Sync + 'static) -> Self {
        Self { delay: Delay::Custom(Arc::new(delay)), attempts: u32::MAX }
    }

    /// Limits the number of attempts, including the first. Attempts that were given back, for
    /// example by a shutdown, count neither here nor towards the queue's maximum.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// Returns the delay after a failed attempt, or `None` if the message becomes a dead letter.
    /// `random` is at least 0 and less than 1.
    pub(crate) fn decide(&self, attempt: u32, failure: &Failure, random: f64) -> Option<Duration> {
        let delay = match failure.verdict {
            Verdict::Dead => None,
            _ if attempt >= self.attempts => None,
            Verdict::After(delay) => Some(delay),
            // The worker itself decides about messages without a lease.
            Verdict::ByPolicy | Verdict::Released | Verdict::Lost => match &self.delay {
                Delay::Exponential { first, most } => Some(exponential(*first, *most, attempt, random)),
                Delay::Fixed(delay) => Some(*delay),
                Delay::Custom(delay) => caught(|| delay(attempt, failure)).unwrap_or_else(|panic| {
                    warn!(attempt, reason = failure.reason(), panic, "the retry policy panicked; the default decides");
                    Self::default().decide(attempt, failure, random)
                }),
            },
        };
        delay.map(|delay| delay.min(LONGEST))
    }
}

/// Returns a random delay between half and all of the full delay. The full delay is `first`,
/// doubled with each further attempt, at most `most`.
pub(crate) fn exponential(first: Duration, most: Duration, attempt: u32, random: f64) -> Duration {
    let doubled = first.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
    doubled.min(most).min(LONGEST).mul_f64(0.5 + random / 2.0)
}

/// Returns a random number from 0 up to, but excluding, 1. It only spreads delays; security does
/// not depend on it.
pub(crate) fn random() -> f64 {
    (RandomState::new().build_hasher().finish() >> 11) as f64 / (1_u64 << 53) as f64
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("RetryPolicy");
        match &self.delay {
            Delay::Exponential { first, most } => out.field("first", first).field("most", most),
            Delay::Fixed(delay) => out.field("fixed", delay),
            Delay::Custom(_) => out.field("custom", &()),
        };
        out.field("attempts", &self.attempts).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn delays_double_up_to_the_longest_and_are_spread() {
        let policy = RetryPolicy::default();
        let delays =
            |random| [1, 2, 3, 12, 13, 40, 4000].map(|attempt| policy.decide(attempt, &Failure::retry("x"), random));
        assert_eq!(
            delays(0.0),
            [500, 1000, 2000, 1_024_000, 1_800_000, 1_800_000, 1_800_000]
                .map(|delay| Some(Duration::from_millis(delay)))
        );
        let almost_all = delays(1.0 - f64::EPSILON);
        for (delay, most) in almost_all.iter().zip([1, 2, 4, 2048, 3600, 3600, 3600]) {
            let (delay, most) = (delay.expect("tried again"), Duration::from_secs(most));
            assert!(delay <= most && delay > most.mul_f64(0.999), "{delay:?} of {most:?}");
        }
    }

    #[test]
    fn failure_overrides_the_policy_and_the_bound_overrides_both() {
        let policy = RetryPolicy::fixed(SECOND).attempts(3);
        let decide = |attempt, failure: Failure| policy.decide(attempt, &failure, 0.5);
        assert_eq!(decide(2, Failure::retry("x")), Some(SECOND));
        assert_eq!(decide(2, Failure::retry_after(SECOND * 9, "x")), Some(SECOND * 9));
        assert_eq!(decide(2, Failure::dead("x")), None);
        assert_eq!(decide(3, Failure::retry_after(SECOND, "x")), None);
        assert_eq!(decide(1, Failure::retry_after(Duration::MAX, "x")), Some(LONGEST));
    }

    #[test]
    fn custom_policy_sees_attempt_and_reason_and_may_give_up() {
        let policy = RetryPolicy::custom(|attempt, failure| (failure.reason() != "hopeless").then(|| SECOND * attempt));
        assert_eq!(policy.decide(3, &Failure::retry("x"), 0.0), Some(SECOND * 3));
        assert_eq!(policy.decide(3, &Failure::retry("hopeless"), 0.0), None);
    }

    #[test]
    fn delays_without_bounds_are_bounded() {
        let policy = RetryPolicy::exponential(Duration::MAX, Duration::MAX);
        let delay = policy.decide(4000, &Failure::retry("x"), 1.0 - f64::EPSILON);
        assert!(delay.is_some_and(|delay| delay <= LONGEST), "{delay:?}");
        assert_eq!(RetryPolicy::fixed(Duration::MAX).decide(1, &Failure::retry("x"), 0.0), Some(LONGEST));
    }

    #[test]
    fn default_policy_decides_when_a_custom_one_panics() {
        let policy = RetryPolicy::custom(|_, _| panic!("the policy's")).attempts(4);
        assert_eq!(policy.decide(2, &Failure::retry("x"), 0.0), Some(SECOND));
        assert_eq!(policy.decide(4, &Failure::retry("x"), 0.0), None);
    }

    #[test]
    fn random_numbers_differ_and_stay_in_bounds() {
        let numbers = [(); 100].map(|()| random());
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(numbers.windows(2).all(|two| two[0].to_bits() != two[1].to_bits()));
    }
}
