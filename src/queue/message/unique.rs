//! Unique keys: a queue keeps at most one message per key.

use std::time::Duration;

use crate::error::{Error, Result};

/// The maximum length of a key, in bytes.
const MAX_KEY: usize = 1024;
const MAX_WITHIN: Duration = Duration::from_secs(36_500 * 86_400);

/// A key that no other message in the queue may have, and the time for which the queue keeps the
/// key. The queue needs [`Settings::uniqueness`](crate::Settings::uniqueness).
///
/// The key is kept until the message has ended, unless [`Unique::within`] is set. A message ends
/// when it is acknowledged, archived, taken, cancelled or purged, or becomes a dead letter. The key
/// is free once that change commits. A lease, a retry, or any other change that keeps the message
/// in the queue does not free the key. A replayed dead letter returns without its key, because
/// another message may have the key by then. The same is true of a taken message that is put back
/// because its caller is gone.
///
/// ```
/// # use std::time::Duration;
/// # use trunkline::{Draft, Enqueued, Queue, Result, Unique};
/// # async fn example(reports: Queue<String>) -> Result<()> {
/// let report = || Draft::new("of acme".to_owned());
/// // The id of the new message, or of the message that is already waiting.
/// let id = reports.enqueue(report().unique("acme")).await?.id();
/// let hourly = Unique::key("acme, hourly").within(Duration::from_secs(3600));
/// if let Enqueued::Duplicate(first) = reports.enqueue(report().unique(hourly)).await? {
///     println!("{first} was enqueued within the last hour");
/// }
/// // Runs ten seconds after the last call.
/// let on_demand = Unique::key("acme, on demand").replacing();
/// let debounced = report().unique(on_demand).after(Duration::from_secs(10));
/// reports.enqueue(debounced).await?;
/// # let _ = id; Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    pub(crate) key: Box<str>,
    within: Option<Duration>,
    replaces: bool,
}

impl Unique {
    /// Creates a key of 1 to 1,024 bytes, kept until the message has ended.
    #[must_use]
    pub fn key(key: impl Into<Box<str>>) -> Self {
        Self { key: key.into(), within: None, replaces: false }
    }

    /// Keeps the key for this time after the message is enqueued, even if the message ends earlier.
    /// The time is more than zero, at most 36,500 days, to the microsecond.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { within: Some(time), ..self }
    }

    /// Replaces the payload, the metadata and the due time of a waiting message that has the key.
    /// That message keeps its id, its attempts, its priority and the time for which its key is
    /// kept. A leased message is not replaced, nor is a message that another transaction keeps
    /// locked for more than a tenth of a second.
    ///
    /// This option needs the rights of a consumer ([`Right::Consumer`](crate::Right)).
    #[must_use]
    pub fn replacing(self) -> Self {
        Self { replaces: true, ..self }
    }

    /// # Errors
    /// The key or the time is out of bounds.
    pub(crate) fn check(&self) -> Result<()> {
        match (self.key.len(), self.within) {
            (0, _) => Err(Error::invalid(
                "a unique key is empty: it has 1 to 1,024 bytes; for a message without one, leave it out",
            )),
            (bytes, _) if bytes > MAX_KEY => Err(Error::invalid(format!(
                "a unique key of {bytes} bytes is out of bounds: it has 1 to 1,024; hash longer keys"
            ))),
            _ if self.key.contains('\0') => {
                Err(Error::invalid("a unique key has a zero byte in it, which Postgres cannot store in text"))
            }
            (_, Some(within)) if within < Duration::from_micros(1) || within > MAX_WITHIN => Err(Error::invalid(
                format!("a unique key cannot be kept for {within:?}: more than zero, and at most 36,500 days"),
            )),
            _ => Ok(()),
        }
    }
}

impl From<&str> for Unique {
    fn from(key: &str) -> Self {
        Self::key(key)
    }
}

impl From<String> for Unique {
    fn from(key: String) -> Self {
        Self::key(key)
    }
}

/// The outcome of an enqueue, with the id of the message in the queue. It is always
/// [`Enqueued::New`] for a message without a unique key ([`Unique`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// The message is stored under this id.
    New(i64),
    /// The message is not stored: the message with this id already has its unique key.
    Duplicate(i64),
    /// The waiting message with this id, which has the unique key, now has the new payload,
    /// metadata and due time.
    Replaced(i64),
}

impl Enqueued {
    /// Returns the id of the message that is in the queue.
    #[must_use]
    pub fn id(self) -> i64 {
        match self {
            Self::New(id) | Self::Duplicate(id) | Self::Replaced(id) => id,
        }
    }

    /// Returns true if the enqueue added a message to the queue.
    #[must_use]
    pub fn is_new(self) -> bool {
        matches!(self, Self::New(_))
    }

    pub(crate) fn of(id: i64, outcome: i32) -> Self {
        match outcome {
            0 => Self::New(id),
            1 => Self::Duplicate(id),
            _ => Self::Replaced(id),
        }
    }
}

/// The unique keys of many messages, as parameters of a statement; null for messages without a
/// unique key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims {
    pub keys: Vec<Option<Box<str>>>,
    /// The number of seconds for which each key is kept; null for a key that is kept until its
    /// message ends.
    pub terms: Vec<Option<f64>>,
    pub replace: Vec<bool>,
}

impl Claims {
    pub fn push(&mut self, unique: Option<&Unique>) {
        self.keys.push(unique.map(|unique| unique.key.clone()));
        self.terms.push(unique.and_then(|unique| unique.within).map(|within| within.as_secs_f64()));
        self.replace.push(unique.is_some_and(|unique| unique.replaces));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_times_out_of_bounds_are_told() {
        let said = |unique: Unique| unique.check().expect_err("refused").to_string();
        assert!(said("".into()).contains("empty"));
        assert!(said("k".repeat(1025).into()).contains("1025 bytes"));
        assert!(said("a\0b".into()).contains("zero byte"));
        assert!(said(Unique::key("k").within(Duration::ZERO)).contains("0ns"));
        assert!(said(Unique::key("k").within(Duration::MAX)).contains("36,500 days"));
        for fine in ["k".repeat(1024).into(), Unique::key("é").within(MAX_WITHIN).replacing()] {
            fine.check().expect("within bounds");
        }
    }
}
