//! Queues and their settings.

use std::time::{Duration, SystemTime};

use crate::{
    error::{Error, Kind, Result},
    postgres::{
        db::{Db, Lane},
        wire::Row,
    },
    queue::payload::ColumnType,
};

/// The settings of a new queue.
///
/// ```
/// # use std::time::Duration;
/// // Slow jobs: one a row, so that they spread over all workers; three attempts of at most ten minutes.
/// let settings = trunkline::Settings::new("jsonb").max_batch(1).max_attempts(3).lease(Duration::from_secs(600));
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    payload: String,
    max_attempts: u32,
    lease: Duration,
    max_batch: u32,
}

impl Settings {
    /// `payload` is any type that Postgres knows: `bytea`, `text`, `jsonb`, `int8`, `uuid`, a composite type, an array.
    /// The rest: 10 attempts, leases of 30 seconds, up to 1,024 messages a batch.
    #[must_use]
    pub fn new(payload: impl Into<String>) -> Self {
        Self { payload: payload.into(), max_attempts: 10, lease: Duration::from_secs(30), max_batch: 1024 }
    }

    /// The same for payloads of this Rust type, in the column that goes with it: `jsonb` for [`Json`](crate::Json), `text` for
    /// `String`, and whatever else has a [`ColumnType`].
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

    /// Deliveries before a message is a dead letter; 1 to 2,147,483,647.
    #[must_use]
    pub fn max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }

    /// How long a lease lasts unless a consumer asks for another; more than zero, at most 365 days.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Messages in one row at most, 1 to 1,024. With 1, messages that are slow jobs spread over all workers.
    #[must_use]
    pub fn max_batch(self, max_batch: u32) -> Self {
        Self { max_batch, ..self }
    }
}

/// Changes to the settings of a queue; those that are not named stay as they are.
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
}

impl Changes {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Settings::max_attempts`].
    #[must_use]
    pub fn max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts: Some(max_attempts), ..self }
    }

    /// As [`Settings::lease`].
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// As [`Settings::max_batch`].
    #[must_use]
    pub fn max_batch(self, max_batch: u32) -> Self {
        Self { max_batch: Some(max_batch), ..self }
    }
}

/// A queue as the database describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// Its name.
    pub name: String,
    /// The payload's type, as Postgres names it.
    pub payload: String,
    /// Deliveries before a message is a dead letter.
    pub max_attempts: u32,
    /// How long a lease lasts unless a consumer asks for another.
    pub lease: Duration,
    /// Messages in one row at most.
    pub max_batch: u32,
    /// When the queue was created, by the server's clock.
    pub created_at: SystemTime,
}

impl Description {
    pub(crate) fn of(row: &Row) -> Result<Self> {
        Ok(Self {
            name: row.read(0)?,
            payload: row.read(1)?,
            max_attempts: row.read::<i32>(2)?.unsigned_abs(),
            lease: Duration::try_from_secs_f64(row.read(3)?).unwrap_or_default(),
            max_batch: row.read::<i32>(4)?.unsigned_abs(),
            created_at: row.read(5)?,
        })
    }
}

impl Db {
    /// Creates a queue; does nothing if it exists with the same settings.
    ///
    /// # Errors
    /// The name or a setting is out of bounds, the type is unknown, or the queue exists with other settings.
    pub async fn create_queue(&self, name: &str, settings: &Settings) -> Result<()> {
        self.check_schema().await?;
        let sql = self.statement("create_queue", include_str!("../../sql/create_queue.sql"));
        let attempts = bounded("max_attempts", settings.max_attempts)?;
        let batch = bounded("max_batch", settings.max_batch)?;
        let lease = in_seconds(settings.lease);
        self.query(Lane::Dequeue, &sql, &[&name, &settings.payload, &attempts, &lease, &batch]).await?;
        Ok(())
    }

    /// Changes settings of a queue, for everybody who uses it. A lease that begins later lasts as long as is said now, and what is
    /// leased keeps its lease. Handles that are open keep the `max_batch`, and workers the lease time, that they began with.
    ///
    /// # Errors
    /// A setting is out of bounds, and then none is changed; or there is no such queue ([`Error::is_no_queue`]).
    pub async fn alter_queue(&self, name: &str, changes: &Changes) -> Result<()> {
        self.check_schema().await?;
        let sql = self.statement("alter_queue", include_str!("../../sql/alter_queue.sql"));
        let attempts = changes.max_attempts.map(|number| bounded("max_attempts", number)).transpose()?;
        let batch = changes.max_batch.map(|number| bounded("max_batch", number)).transpose()?;
        let lease = changes.lease.map(in_seconds);
        let altered = self.query(Lane::Dequeue, &sql, &[&name, &attempts, &lease, &batch]).await;
        altered.map_err(|error| error.or_no_queue(name)).map(|_| ())
    }

    /// Drops a queue with all that is in it, dead letters and archive included. Its consumers get
    /// [`Error::is_no_queue`].
    pub async fn drop_queue(&self, name: &str) -> Result<()> {
        let sql = self.statement("drop_queue", include_str!("../../sql/drop_queue.sql"));
        self.query(Lane::Dequeue, &sql, &[&name]).await.map_err(|error| error.or_no_queue(name))?;
        Ok(())
    }

    /// All queues, by name.
    pub async fn list_queues(&self) -> Result<Vec<Description>> {
        self.check_schema().await?;
        self.describe(None).await?.iter().map(Description::of).collect()
    }

    /// One queue.
    ///
    /// # Errors
    /// [`Error::is_no_queue`] where there is none.
    pub async fn describe_queue(&self, name: &str) -> Result<Description> {
        self.check_schema().await?;
        let rows = self.describe(Some(name)).await?;
        rows.first().map_or_else(|| Err(Error::new(Kind::NoQueue(name.to_owned()))), Description::of)
    }

    pub(crate) async fn describe(&self, name: Option<&str>) -> Result<Vec<Row>> {
        let sql = self.statement("describe", include_str!("../../sql/describe.sql"));
        self.query_again(Lane::Dequeue, &sql, &[&name]).await
    }
}

/// A time as Postgres takes it; more than is possible is out of bounds, which the server says.
fn in_seconds(time: Duration) -> f64 {
    time.as_secs_f64().min(1e9)
}

/// A number as Postgres takes it; the server knows the other bounds.
fn bounded(name: &str, number: u32) -> Result<i32> {
    i32::try_from(number).map_err(|_| Error::invalid(format!("{name} is {number}, and can be at most {}", i32::MAX)))
}
