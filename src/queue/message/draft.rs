//! A draft: a payload with options, before it is enqueued.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use self::sealed::DraftOptions;
use crate::{
    error::{Error, Result},
    queue::message::{metadata::Metadata, unique::Unique},
};

/// The maximum delay.
const MAX_DELAY: Duration = Duration::from_secs(36_500 * 86_400);
/// The options of a message without options, as most are.
static NONE: DraftOptions = DraftOptions {
    due: Due::After(Duration::ZERO),
    metadata: Metadata::new(),
    priority: 0,
    unique: None,
    key: None,
    columns: BTreeMap::new(),
};

/// A message to enqueue, with options beyond its payload: a delay or a due time, metadata, a
/// priority, a key, a unique key.
///
/// Every method that enqueues takes a `T`, a `&T`, or a draft of either. Without options, a message
/// is due at once.
///
/// ```
/// # use std::time::Duration;
/// # use trunkline::{Draft, Queue, Result};
/// # async fn example(mails: Queue<String>) -> Result<()> {
/// mails.enqueue("ada@example.org: hello".to_owned()).await?;
/// let reminder = Draft::new("ada@example.org: still there?".to_owned());
/// mails.enqueue(reminder.after(Duration::from_secs(3600)).with("tenant", "acme")).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Draft<P> {
    payload: P,
    options: DraftOptions,
}

/// The due time of a message, by the server's clock.
/// [`Queue::reschedule`](crate::Queue::reschedule) takes a `Due`, a [`Duration`] or a
/// [`SystemTime`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The message is due after this delay, at most 36,500 days; at once for [`Duration::ZERO`].
    After(Duration),
    /// The message is due at this time, to the microsecond, at most 36,500 days from now. It is due
    /// at once if the time has passed.
    At(SystemTime),
}

impl From<Duration> for Due {
    fn from(delay: Duration) -> Self {
        Self::After(delay)
    }
}

impl From<SystemTime> for Due {
    fn from(time: SystemTime) -> Self {
        Self::At(time)
    }
}

impl<P> Draft<P> {
    /// Creates a draft of a message with this payload: a `T` or a `&T` of the queue's type.
    #[must_use]
    pub fn new(payload: P) -> Self {
        Self { payload, options: NONE.clone() }
    }

    /// Creates a draft that borrows from another one, for a call that may need the original again.
    pub(crate) fn lent<T>(message: &impl sealed::Parts<T>) -> Draft<&T> {
        Draft { payload: message.payload(), options: message.options().clone() }
    }

    /// Delays the message by this duration, by the server's clock; at most 36,500 days.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.options.due = Due::After(delay);
        self
    }

    /// Makes the message due at this time by the server's clock, to the microsecond; at most 36,500
    /// days from now. A message with a past time is due at once.
    #[must_use]
    pub fn at(mut self, time: SystemTime) -> Self {
        self.options.due = Due::At(time);
        self
    }

    /// Adds a name and its value to the metadata, or replaces the value of the name.
    #[must_use]
    pub fn with(mut self, name: impl Into<Box<str>>, text: impl Into<Box<str>>) -> Self {
        self.options.metadata = self.options.metadata.with(name, text);
        self
    }

    /// Replaces the whole metadata; at most [`MAX_METADATA`](crate::MAX_METADATA) bytes.
    #[must_use]
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.options.metadata = metadata;
        self
    }

    /// Sets the priority, if the queue has priorities. Priority 0 is the lowest and the default.
    /// See [`Settings::aging`](crate::Settings::aging).
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.options.priority = priority;
        self
    }

    /// Sets a key that no other message of the queue may have, until this message has ended or for
    /// a certain time: see [`Unique`]. If another message already has the key, this message is not
    /// enqueued, or replaces it. The queue needs
    /// [`Settings::uniqueness`](crate::Settings::uniqueness).
    #[must_use]
    pub fn unique(mut self, key: impl Into<Unique>) -> Self {
        self.options.unique = Some(Box::new(key.into()));
        self
    }

    /// Sets the key, 1 to 1,024 bytes, in a queue whose messages have keys
    /// ([`Settings::partitions`](crate::Settings::partitions)). Messages with the same key are
    /// handled one after another, in the order of their due times, even across failures, crashes
    /// and shutdowns.
    #[must_use]
    pub fn key(mut self, key: impl Into<Box<str>>) -> Self {
        self.options.key = Some(key.into());
        self
    }

    /// Sets the value of a column that you added to the queue's table, as text in Postgres'
    /// notation: dates in ISO format, times in UTC. A column without a value gets its default. All
    /// messages of a row share these values. Messages with different values are therefore stored in
    /// different rows, each inserted by its own statement.
    /// [`Queue::columns`](crate::Queue::columns) reads the values.
    ///
    /// An enqueue fails if there is no such column, or if the queue or Postgres fills the column.
    /// It also fails if any message in the same call has a unique key. A producer needs the right
    /// to insert into the column.
    #[must_use]
    pub fn column(mut self, name: impl Into<Box<str>>, text: impl Into<Box<str>>) -> Self {
        self.options.columns.insert(name.into(), text.into());
        self
    }
}

impl Due {
    /// Returns the due time as a number for statements: seconds from now or, if negative, a time in
    /// seconds since 1970.
    pub(crate) fn number(self) -> Result<f64> {
        match self {
            Self::After(delay) if delay > MAX_DELAY => Err(Error::invalid(format!(
                "a delay of {} days is out of bounds: at most 36,500",
                delay.as_secs() / 86_400
            ))),
            Self::After(delay) => Ok(delay.as_secs_f64()),
            Self::At(time) if time.duration_since(SystemTime::now()).is_ok_and(|ahead| ahead > MAX_DELAY) => {
                Err(Error::invalid("a due time is out of bounds: at most 36,500 days from now"))
            }
            Self::At(time) => match time.duration_since(SystemTime::UNIX_EPOCH) {
                Ok(since) => Ok(-since.as_secs_f64()),
                Err(_) => Ok(0.0), // the time has passed
            },
        }
    }
}

/// A message for a queue of `T`s: a `T`, a `&T`, or a [`Draft`] of either.
pub trait IntoDraft<T>: sealed::Parts<T> {}

impl<T, M: sealed::Parts<T>> IntoDraft<T> for M {}

pub(crate) mod sealed {
    use std::collections::BTreeMap;

    use super::{Draft, Due, Metadata, NONE, Unique};

    /// Everything that a draft has besides its payload.
    #[derive(Debug, Clone)]
    pub struct DraftOptions {
        pub due: Due,
        pub metadata: Metadata,
        pub priority: u8,
        pub unique: Option<Box<Unique>>,
        pub key: Option<Box<str>>,
        pub columns: BTreeMap<Box<str>, Box<str>>,
    }

    pub trait Parts<T> {
        fn payload(&self) -> &T;

        fn options(&self) -> &DraftOptions {
            &NONE
        }

        fn due(&self) -> Due {
            self.options().due
        }

        fn metadata(&self) -> &Metadata {
            &self.options().metadata
        }

        fn priority(&self) -> u8 {
            self.options().priority
        }

        fn unique(&self) -> Option<&Unique> {
            self.options().unique.as_deref()
        }

        fn key(&self) -> Option<&str> {
            self.options().key.as_deref()
        }

        /// Returns the values of columns that users added, if there are any.
        fn columns(&self) -> Option<&BTreeMap<Box<str>, Box<str>>> {
            Some(&self.options().columns).filter(|columns| !columns.is_empty())
        }
    }

    impl<T> Parts<T> for T {
        fn payload(&self) -> &T {
            self
        }
    }

    impl<T> Parts<T> for &T {
        fn payload(&self) -> &T {
            self
        }
    }

    impl<T> Parts<T> for Draft<T> {
        fn payload(&self) -> &T {
            &self.payload
        }

        fn options(&self) -> &DraftOptions {
            &self.options
        }
    }

    impl<T> Parts<T> for Draft<&T> {
        fn payload(&self) -> &T {
            self.payload
        }

        fn options(&self) -> &DraftOptions {
            &self.options
        }
    }

    impl<T> Parts<T> for &Draft<T> {
        fn payload(&self) -> &T {
            &self.payload
        }

        fn options(&self) -> &DraftOptions {
            &self.options
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_time_is_a_delay_or_a_negative_time() {
        let is = |draft: Draft<()>, number: f64| {
            assert_eq!(
                draft.options.due.number().map(f64::to_bits).expect("within bounds"),
                number.to_bits(),
                "{draft:?}"
            );
        };
        let draft = || Draft::new(());
        is(draft(), 0.0);
        is(draft().after(Duration::from_millis(1500)), 1.5);
        let time = SystemTime::UNIX_EPOCH + Duration::from_micros(1_763_737_440_000_001);
        is(draft().at(time), -1_763_737_440.000_001);
        is(draft().at(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), 0.0);
        for late in [
            draft().after(MAX_DELAY + Duration::from_secs(1)),
            draft().at(SystemTime::UNIX_EPOCH + Duration::from_secs(260_000_000_000)),
        ] {
            assert!(late.options.due.number().is_err(), "{late:?}");
        }
    }
}
