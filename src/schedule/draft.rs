//! A schedule as a program declares it.

use std::time::SystemTime;

use jiff::Timestamp;

use super::expression::Expression;
use crate::{
    error::{Error, Kind, Result},
    queue::message::metadata::Metadata,
};

/// A rule by which a message is enqueued repeatedly. [`Queue::schedule`](crate::Queue::schedule)
/// stores it in the database.
///
/// The expression has one of these forms:
/// - five fields of cron: minute, hour, day of the month, month, day of the week (`0 9 * *
///   mon-fri`). Besides `*`, ranges, lists and steps, `L` is the last day of a month, `15W` the
///   weekday nearest to the 15th, and `fri#2` the second Friday. If both days are given, one match
///   is enough, as in cron. With `+` before the day of the week (`0 0 1 * +mon`), both must match;
/// - six fields, with seconds first (`*/10 * * * * *`);
/// - `@hourly`, `@daily` (or `@midnight`), `@weekly`, `@monthly`, `@yearly` (or `@annually`);
/// - `every 90 seconds`, or minutes, hours, days, from 1 second to 365 days. The ticks are
///   multiples of the interval since 1970-01-01 UTC, so all processes agree.
///
/// The fields refer to the clock of a time zone, which is UTC by default. An expression that names
/// hours ticks once for each named time. If the clock skips that time, the tick is at the moment of
/// the jump. If the clock is set back and shows that time twice, the tick is at the first of the
/// two. An expression that ticks every hour, or more often, ticks whenever the clock shows a
/// matching time.
///
/// ```
/// # use std::time::{Duration, SystemTime};
/// # use trunkline::Schedule;
/// # fn main() -> trunkline::Result<()> {
/// let nightly = Schedule::new("nightly", "0 3 * * *").zone("Europe/Berlin");
/// // 2025-12-01, 01:00 in Berlin.
/// let winter = SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_547_200);
/// assert_eq!(nightly.next_after(winter)?, Some(winter + Duration::from_secs(2 * 3600)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub(super) name: String,
    pub(super) expression: String,
    pub(super) zone: String,
    pub(super) missed: Missed,
    pub(super) metadata: Metadata,
    pub(super) priority: u8,
    pub(super) key: Option<String>,
}

/// The treatment of ticks that passed while no process was running the schedules, so that several
/// are due together or the last one is old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Missed {
    /// Enqueues a message for the last due tick, unless the tick is older than a minute.
    Skip,
    /// Enqueues a message for the last due tick, in place of all of them.
    #[default]
    Once,
    /// Enqueues a message for every due tick, but for at most the last 1,000.
    Each,
}

impl Missed {
    /// Returns the name that SQL and the command line use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Once => "once",
            Self::Each => "each",
        }
    }

    pub(super) fn of(name: &str) -> Result<Self> {
        let missed = [Self::Skip, Self::Once, Self::Each].into_iter().find(|missed| missed.name() == name);
        missed.ok_or_else(|| Error::new(Kind::Answer(format!("ticks that are missed are made {name:?}").into())))
    }
}

impl Schedule {
    /// Creates a schedule with a name that is unique in the database: 1 to 48 characters, a
    /// lower-case letter, then a-z, 0-9, `_`, `.` or `-`.
    #[must_use]
    pub fn new(name: impl Into<String>, expression: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            expression: expression.into(),
            zone: "UTC".to_owned(),
            missed: Missed::default(),
            metadata: Metadata::new(),
            priority: 0,
            key: None,
        }
    }

    /// Sets the time zone of the fields by its IANA name (`Europe/Berlin`); UTC by default.
    #[must_use]
    pub fn zone(self, zone: impl Into<String>) -> Self {
        Self { zone: zone.into(), ..self }
    }

    /// Sets the treatment of missed ticks; [`Missed::Once`] by default.
    #[must_use]
    pub fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// Sets the metadata of each message. Two names are added: `schedule` with the schedule's name,
    /// and `tick` with the time of the tick in UTC.
    #[must_use]
    pub fn metadata(self, metadata: Metadata) -> Self {
        Self { metadata, ..self }
    }

    /// Sets the priority of each message, if the queue has priorities. Priority 0 is the lowest and
    /// the default. See [`Draft::priority`](crate::Draft::priority).
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// Sets the key of each message, 1 to 1,024 bytes. A queue whose messages have keys requires a
    /// key. See [`Draft::key`](crate::Draft::key).
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Returns the first tick after a time. Returns `None` if there is no tick for years, as with
    /// `0 0 30 2 *`.
    ///
    /// # Errors
    /// The expression or the zone is not valid.
    pub fn next_after(&self, time: SystemTime) -> Result<Option<SystemTime>> {
        let expression = Expression::parse(&self.expression, &self.zone)?;
        let time =
            Timestamp::try_from(time).map_err(|error| Error::invalid(format!("a time out of bounds: {error}")))?;
        Ok(expression.next(time).map(SystemTime::from))
    }
}
