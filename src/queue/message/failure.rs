//! A handler's failure.

use std::{error::Error, fmt, fmt::Write, sync::Arc, time::Duration};

use crate::{
    error::{caught, first_of},
    queue::message::reason::reason_of,
};

/// The reason why a handler failed, and the decision whether and when its message is tried again.
///
/// `?` turns every error into a failure, whose reason consists of the error's text and the texts of
/// its sources. The worker's [`RetryPolicy`](crate::RetryPolicy) then decides about retries, and
/// can inspect the error itself ([`Failure::downcast_ref`]). `Failure` does not implement
/// [`Error`], because that conversion would then be ambiguous.
///
/// ```
/// # use std::time::Duration;
/// # use trunkline::Failure;
/// fn charge(card: &str) -> Result<(), Failure> {
///     let number: u64 = card.parse()?; // tried again by the policy
///     match number % 3 {
///         0 => Err(Failure::dead("the card was stolen")),
///         1 => Err(Failure::retry_after(Duration::from_secs(600), "the bank is asleep")),
///         _ => Ok(()),
///     }
/// }
/// # assert!(charge("x").is_err_and(|failure| failure.reason().contains("invalid digit")));
/// ```
#[derive(Debug, Clone)]
pub struct Failure {
    pub(crate) verdict: Verdict,
    reason: String,
    error: Option<Arc<dyn Error + Send + Sync>>,
}

/// Compares the decision and the reason, not the error itself.
impl PartialEq for Failure {
    fn eq(&self, other: &Self) -> bool {
        (self.verdict, &self.reason) == (other.verdict, &other.reason)
    }
}

impl Eq for Failure {}

/// The maximum delay that a queue accepts.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// The handler's decision about a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The retry policy decides.
    ByPolicy,
    After(Duration),
    Dead,
    /// The message has been released.
    Released,
    /// The lease was lost, as a release has found.
    Lost,
}

impl Failure {
    /// Creates a failure after which the worker's retry policy decides when the message is tried
    /// again.
    #[must_use]
    pub fn retry(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::ByPolicy, reason: reason_of(reason), error: None }
    }

    /// Creates a failure after which the message is tried again after this delay, at most 365 days.
    /// After the last attempt that the queue allows, the message still becomes a dead letter.
    #[must_use]
    pub fn retry_after(delay: Duration, reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::After(delay), reason: reason_of(reason), error: None }
    }

    /// Creates a failure that makes the message a dead letter at once.
    #[must_use]
    pub fn dead(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Dead, reason: reason_of(reason), error: None }
    }

    /// Creates the answer for a message that was released before its handler began or ended. The
    /// worker counts the release, and does not settle the message.
    #[doc(hidden)]
    #[must_use]
    pub fn released(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Released, ..Self::retry(reason) }
    }

    /// Creates the answer for a message that could not be released, because its lease was lost.
    #[doc(hidden)]
    #[must_use]
    pub fn lease_lost(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Lost, ..Self::retry(reason) }
    }

    /// Returns the reason, which is stored with the message and with its dead letter. A reason of
    /// more than 16,384 characters keeps its first 8,000 and its last 8,000.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the error that the failure was created from, if any.
    #[must_use]
    pub fn error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.error.as_deref()
    }

    /// Searches the original error and its sources, and returns the first `E`.
    ///
    /// ```
    /// # use std::{io, time::Duration};
    /// # use trunkline::RetryPolicy;
    /// // I/O errors are retried. All other failures make the message a dead letter.
    /// let policy = RetryPolicy::custom(|attempt, failure| {
    ///     failure.downcast_ref::<io::Error>().map(|_| Duration::from_secs(10) * attempt)
    /// });
    /// ```
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        first_of(self.error.as_deref()?)
    }

    /// Converts an error of the user's code. If the conversion panics, the panic message is the
    /// reason.
    pub(crate) fn of(error: impl Into<Self>) -> Self {
        caught(|| error.into())
            .unwrap_or_else(|panic| Self::retry(format!("it failed, and its error panicked: {panic}")))
    }

    /// Returns the error of a call whose work has failed permanently.
    pub(crate) fn of_work(self, queue: &str, id: i64) -> crate::Error {
        crate::Error::of_work(queue, id, self.reason, self.error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let reason = caught(|| chain_of(&error));
        let reason = reason.unwrap_or_else(|panic| format!("it failed, and the text of its error panicked: {panic}"));
        Self { error: Some(Arc::new(error)), ..Self::retry(reason) }
    }
}

/// Returns an error's text with the texts of its sources.
fn chain_of(error: &dyn Error) -> String {
    let mut reason = error.to_string();
    let mut source = error.source();
    for _ in 0..SOURCES {
        let Some(cause) = source else { break };
        let text = cause.to_string();
        if !reason.ends_with(&text) {
            let _ = write!(reason, ": {text}"); // writing to a string cannot fail
        }
        source = cause.source();
    }
    reason
}

/// The maximum number of sources whose texts are kept.
const SOURCES: usize = 64;

#[cfg(test)]
mod tests {
    use super::Failure;

    #[derive(Debug, thiserror::Error)]
    #[error("the mail was not sent")]
    struct Outer(#[source] Middle);

    #[derive(Debug, thiserror::Error)]
    #[error("no answer: {0}")]
    struct Middle(#[source] std::fmt::Error);

    #[test]
    fn the_reason_is_the_chain_of_sources_each_told_once() {
        let failure = Failure::from(Outer(Middle(std::fmt::Error)));
        let end = std::fmt::Error.to_string();
        assert_eq!(failure.reason(), format!("the mail was not sent: no answer: {end}"));
    }

    #[derive(Debug)]
    struct Mute;

    impl std::fmt::Display for Mute {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("no words")
        }
    }

    impl std::error::Error for Mute {}

    #[test]
    fn an_error_whose_text_panics_is_a_plain_failure() {
        let failure = Failure::from(Mute);
        assert_eq!(failure.reason(), "it failed, and the text of its error panicked: no words");
        assert!(failure.downcast_ref::<Mute>().is_some());
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{}", "long".repeat(1 << 20))]
    struct Long;

    #[test]
    fn a_long_reason_is_bounded_at_once() {
        for failure in [Failure::from(Long), Failure::retry("x".repeat(1 << 20)), Failure::dead("x".repeat(1 << 20))] {
            assert!(failure.reason().len() < 17_000);
        }
    }

    #[test]
    fn the_error_and_its_sources_can_be_asked_for() {
        let failure = Failure::from(Outer(Middle(std::fmt::Error)));
        assert!(failure.error().and_then(|error| error.downcast_ref::<Outer>()).is_some());
        assert!(failure.downcast_ref::<Outer>().is_some() && failure.downcast_ref::<std::fmt::Error>().is_some());
        assert!(failure.downcast_ref::<std::io::Error>().is_none());
        assert!(Failure::dead("x").error().is_none() && Failure::dead("x").downcast_ref::<Outer>().is_none());
    }
}
