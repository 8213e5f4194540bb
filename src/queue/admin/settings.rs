//! Queues and their settings.

use std::time::Duration;

use tokio_postgres::{error::SqlState, types::ToSql};

use crate::{
    error::{Error, Kind, Result},
    postgres::{
        db::{Class, Db},
        wire::Row,
    },
    queue::{admin::description::Description, message::payload::ColumnType},
};

/// The maximum number of retries of a change that ends in a deadlock.
const ALTERS: usize = 4;

/// The settings of a new queue.
///
/// ```
/// # use std::time::Duration;
/// // Slow jobs: one per row, so that they spread over all workers.
/// // Three attempts of at most ten minutes.
/// let settings = trunkline::Settings::new("jsonb").max_batch(1);
/// let settings = settings.max_attempts(3).lease(Duration::from_secs(600));
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    payload: String,
    max_attempts: u32,
    lease: Duration,
    max_batch: u32,
    priorities: u32,
    aging: Duration,
    uniqueness: bool,
    partitions: u32,
    per_key: u32,
}

impl Settings {
    /// Creates settings for payloads of any type of PostgreSQL: `bytea`, `text`, `jsonb`,
    /// `int8`, `uuid`, a composite type, an array. A modifier, as in `numeric(10,2)`, is refused:
    /// create a domain and pass its name. The defaults are 10 attempts, leases of 30
    /// seconds, up to 1,024 messages per batch, no priorities, and no uniqueness.
    #[must_use]
    pub fn new(payload: impl Into<String>) -> Self {
        Self {
            payload: payload.into(),
            max_attempts: 10,
            lease: Duration::from_secs(30),
            max_batch: 1024,
            priorities: 1,
            aging: Duration::from_secs(60),
            uniqueness: false,
            partitions: 0,
            per_key: 1,
        }
    }

    /// Creates settings for payloads of this Rust type, with the matching column type: `jsonb` for
    /// [`Json`](crate::Json), `text` for `String`, and the [`ColumnType`] of any other type.
    ///
    /// ```
    /// # use trunkline::{Db, Json, Queue, Result, Settings};
    /// # struct Mail;
    /// # async fn example(db: Db) -> Result<()> {
    /// db.create_queue("mails", &Settings::of::<Json<Mail>>().max_attempts(5)).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn of<T: ColumnType>() -> Self {
        Self::new(T::NAME)
    }

    /// Sets the number of deliveries before a message becomes a dead letter, from 1 to
    /// 2,147,483,647.
    #[must_use]
    pub fn max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }

    /// Sets the duration of a lease, unless a consumer requests another duration: more than zero,
    /// at most 365 days.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets the maximum number of messages in one row, from 1 to 1,024. With 1, slow jobs spread
    /// over all workers.
    #[must_use]
    pub fn max_batch(self, max_batch: u32) -> Self {
        Self { max_batch, ..self }
    }

    /// Sets the number of priorities, from 1 to 10, which cannot be changed later. Priorities are
    /// numbered from 0, the lowest. [`Settings::aging`] describes their effect, and
    /// [`Draft::priority`](crate::Draft::priority) sets the priority of a message.
    #[must_use]
    pub fn priorities(self, priorities: u32) -> Self {
        Self { priorities, ..self }
    }

    /// Sets the aging, the time that each level of priority adds to a message's age: more than
    /// zero, at most 36,500 days; a minute by default.
    ///
    /// The due message with the highest resulting age leaves first, to within a sixteenth of the
    /// aging. A message overtakes one whose priority is one level lower only if it is enqueued
    /// at most the aging later. For two levels, that time doubles, and so on. Therefore
    /// no message starves, except with [`Duration::MAX`]: the highest priority then always leaves
    /// first.
    #[must_use]
    pub fn aging(self, aging: Duration) -> Self {
        Self { aging, ..self }
    }

    /// Sets whether messages may have unique keys ([`Draft::unique`](crate::Draft::unique)). This
    /// cannot be changed later. In a queue with unique keys, ending a message costs slightly more.
    /// Cannot be combined with [`Settings::partitions`].
    #[must_use]
    pub fn uniqueness(self, uniqueness: bool) -> Self {
        Self { uniqueness, ..self }
    }

    /// Sets the number of partitions, from 1 to 256, and requires a key for each message. Messages
    /// with the same key are handled one after another, in the order of their due times; see
    /// [`Draft::key`](crate::Draft::key) and [`Settings::per_key`]. 64 partitions are enough for
    /// most queues, and [`Changes::partitions`] can raise the number later. Cannot be combined with
    /// priorities or uniqueness.
    ///
    /// The hash of a key determines its partition, and each partition is leased as a whole by one
    /// worker at a time. So the number of partitions limits the number of workers (processes) that
    /// have work.
    #[must_use]
    pub fn partitions(self, partitions: u32) -> Self {
        Self { partitions, ..self }
    }

    /// Sets the maximum number of messages of one key that are handled at the same time; 1 by
    /// default. With more than 1, messages of the same key may be handled in any order.
    #[must_use]
    pub fn per_key(self, per_key: u32) -> Self {
        Self { per_key, ..self }
    }
}

/// Changes to the settings of a queue. Settings that are not set here keep their values.
///
/// ```
/// # use std::time::Duration;
/// # use trunkline::{Changes, Db, Result};
/// # async fn example(db: Db) -> Result<()> {
/// db.alter_queue("mails", &Changes::new().max_attempts(3).lease(Duration::from_secs(600))).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Changes {
    max_attempts: Option<u32>,
    lease: Option<Duration>,
    max_batch: Option<u32>,
    aging: Option<Duration>,
    per_key: Option<u32>,
    partitions: Option<u32>,
}

impl Changes {
    /// Creates an empty set of changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes [`Settings::max_attempts`].
    #[must_use]
    pub fn max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts: Some(max_attempts), ..self }
    }

    /// Changes [`Settings::lease`].
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Changes [`Settings::max_batch`].
    #[must_use]
    pub fn max_batch(self, max_batch: u32) -> Self {
        Self { max_batch: Some(max_batch), ..self }
    }

    /// Changes [`Settings::aging`].
    #[must_use]
    pub fn aging(self, aging: Duration) -> Self {
        Self { aging: Some(aging), ..self }
    }

    /// Changes [`Settings::per_key`]. Running workers keep the number that they started with.
    #[must_use]
    pub fn per_key(self, per_key: u32) -> Self {
        Self { per_key: Some(per_key), ..self }
    }

    /// Raises the number of partitions in a queue with keys to a multiple of the current number, at
    /// most 256 ([`Settings::partitions`]).
    ///
    /// Workers and producers may run during the change, which preserves the order and the limits of
    /// keys. The queue delivers nothing until its waiting messages have been moved, which takes
    /// about 20 seconds per million messages. If the change ends in a deadlock with other
    /// transactions, it is retried up to four times. If all tries fail, nothing is changed.
    #[must_use]
    pub fn partitions(self, partitions: u32) -> Self {
        Self { partitions: Some(partitions), ..self }
    }
}

impl Db {
    /// Creates a queue. Does nothing if the queue exists with the same settings.
    ///
    /// # Errors
    /// The name or a setting is out of bounds, the type is unknown, or the queue exists with other
    /// settings.
    pub async fn create_queue(&self, name: &str, settings: &Settings) -> Result<()> {
        self.check_schema("create_queue").await?;
        let sql = self.statement("create_queue", include_str!("../../../sql/statements/create_queue.sql"));
        let attempts = bounded("max_attempts", settings.max_attempts)?;
        let batch = bounded("max_batch", settings.max_batch)?;
        let priorities = bounded("priorities", settings.priorities)?;
        let (partitions, per_key) =
            (bounded("partitions", settings.partitions)?, bounded("per_key", settings.per_key)?);
        let (lease, aging) = (in_seconds(settings.lease), strict(settings.aging));
        let Settings { payload, uniqueness, .. } = settings;
        let params: [&(dyn ToSql + Sync); 10] =
            [&name, payload, &attempts, &lease, &batch, &priorities, &aging, uniqueness, &partitions, &per_key];
        self.query(Class::Main, &sql, &params).await?;
        Ok(())
    }

    /// Changes settings of a queue for all programs. The new lease time applies to later leases;
    /// leased messages keep their leases. Open handles keep the `max_batch` with which they were
    /// opened, and running workers keep their lease time and `per_key`: restart the programs.
    ///
    /// # Errors
    /// A setting is out of bounds; then no setting is changed. There is no such queue
    /// ([`Error::is_no_queue`]).
    pub async fn alter_queue(&self, name: &str, changes: &Changes) -> Result<()> {
        self.check_schema("alter_queue").await?;
        let sql = self.statement("alter_queue", include_str!("../../../sql/statements/alter_queue.sql"));
        let attempts = changes.max_attempts.map(|number| bounded("max_attempts", number)).transpose()?;
        let batch = changes.max_batch.map(|number| bounded("max_batch", number)).transpose()?;
        let per_key = changes.per_key.map(|number| bounded("per_key", number)).transpose()?;
        let partitions = changes.partitions.map(|number| bounded("partitions", number)).transpose()?;
        let (lease, aging) = (changes.lease.map(in_seconds), changes.aging.map(strict));
        let params: [&(dyn ToSql + Sync); 7] = [&name, &attempts, &lease, &batch, &aging, &per_key, &partitions];
        let mut again = 0..ALTERS;
        loop {
            match self.query_apart(&sql, &params).await {
                Err(error) if error.sqlstate() == Some(&SqlState::T_R_DEADLOCK_DETECTED) && again.next().is_some() => {}
                altered => return altered.map_err(|error| error.or_no_queue(name)).map(|_| ()),
            }
        }
    }

    /// Drops a queue with its messages, dead letters and archive. Its consumers receive
    /// [`Error::is_no_queue`].
    pub async fn drop_queue(&self, name: &str) -> Result<()> {
        let sql = self.statement("drop_queue", include_str!("../../../sql/statements/drop_queue.sql"));
        self.query_apart(&sql, &[&name]).await.map_err(|error| error.or_no_queue(name)).map(drop)
    }

    /// Returns all queues, in the order of their names.
    pub async fn list_queues(&self) -> Result<Vec<Description>> {
        self.describe(None).await?.iter().map(Description::of).collect()
    }

    /// Returns the description of one queue.
    ///
    /// # Errors
    /// [`Error::is_no_queue`] if the queue does not exist.
    pub async fn describe_queue(&self, name: &str) -> Result<Description> {
        let rows = self.describe(Some(name)).await?;
        rows.first().map_or_else(|| Err(Error::new(Kind::NoQueue(name.to_owned()))), Description::of)
    }

    /// Checks the schema's version. Returns one row for the named queue, or one row for each queue.
    pub(crate) async fn describe(&self, name: Option<&str>) -> Result<Vec<Row>> {
        let described = async {
            self.check_schema("describe").await?;
            let sql = self.statement("describe", include_str!("../../../sql/statements/describe.sql"));
            self.query_again(Class::Main, &sql, &[&name]).await
        };
        described.await.map_err(|error| match name {
            Some(name) => error.about_queue(name),
            None => error,
        })
    }
}

/// Converts a duration to seconds, at most 10¹⁰, which the server rejects for every setting.
fn in_seconds(time: Duration) -> f64 {
    time.as_secs_f64().min(1e10)
}

/// Converts an aging to seconds. `Duration::MAX` becomes the longest aging that the server accepts.
fn strict(aging: Duration) -> f64 {
    match aging {
        Duration::MAX => 36_500.0 * 86_400.0,
        aging => in_seconds(aging),
    }
}

/// Converts a number to the server's type. The server checks the other bounds.
fn bounded(name: &str, number: u32) -> Result<i32> {
    i32::try_from(number).map_err(|_| Error::invalid(format!("{name} is {number}, and can be at most {}", i32::MAX)))
}
