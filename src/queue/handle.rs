//! A queue: its name, its settings, and the handle that all verbs hang on.

use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use tokio_postgres::types::ToSql;
use tracing::debug;

use crate::{error::{Error, Kind, Result}, postgres::{db::{Db, Lane}, sql::Sql, time::Time, wire::{Row, only}}, queue::{coalesce::Coalescer, floor::{Floor, Look}, metric::Metrics, ownerless::Kept, payload::{Column, Payload}, settle::Settler, statements::Statements}};

/// What a queue is created with.
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
    fn of(row: &Row) -> Result<Self> {
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
        let lease = settings.lease.as_secs_f64().min(1e9); // more is out of bounds, which the server says
        self.query(Lane::Dequeue, &sql, &[&name, &settings.payload, &attempts, &lease, &batch]).await?;
        Ok(())
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

    async fn describe(&self, name: Option<&str>) -> Result<Vec<Row>> {
        let sql = self.statement("describe", include_str!("../../sql/describe.sql"));
        self.query_again(Lane::Dequeue, &sql, &[&name]).await
    }

    /// Opens a queue whose payloads are `T`s.
    ///
    /// # Errors
    /// There is no such queue ([`Error::is_no_queue`]), its payloads are of another type
    /// ([`Error::is_wrong_type`]), or the schema is not this library's version.
    pub async fn queue<T: Payload>(&self, name: &str) -> Result<Queue<T>> {
        let queue = self.queue_of_any(name).await?;
        queue.column.check::<T>(name)?;
        Ok(Queue { shared: Arc::new(queue), payload: PhantomData })
    }

    async fn queue_of_any(&self, name: &str) -> Result<Shared> {
        self.check_schema().await?;
        let rows = self.describe(Some(name)).await?;
        let row = rows.first().ok_or_else(|| Error::new(Kind::NoQueue(name.to_owned())))?;
        let (description, floor) = (Description::of(row)?, self.floor_of(name, row.read(6)?));
        let sql = Statements::of(self.schema(), name, description.created_at);
        let session = self.session(Lane::Dequeue).await?;
        let column = session
            .column_type(&sql.payload_type)
            .await
            .map_err(|error| error.or_no_queue(name))?
            .and_then(Column::new);
        let column = column.ok_or_else(|| {
            Error::invalid(format!("the table of queue {name:?} was changed: its payload is no array"))
        })?;
        Ok(Shared {
            channel: format!("{}.{name}", self.schema().name()),
            sql,
            column,
            floor,
            batch_size: AtomicUsize::new(description.max_batch as usize),
            coalescer: Coalescer::new(description.max_batch as usize),
            settler: Arc::default(),
            metrics: Metrics::of(name),
            ownerless: Kept::default(),
            description,
            db: self.clone(),
        })
    }
}

/// A number as Postgres takes it; the server knows the other bounds.
fn bounded(name: &str, number: u32) -> Result<i32> {
    i32::try_from(number).map_err(|_| Error::invalid(format!("{name} is {number}, and can be at most {}", i32::MAX)))
}

/// A queue of `T`s: the handle for everything. Cheap to clone; clones share batches, floor and connections.
pub struct Queue<T> {
    pub(crate) shared: Arc<Shared>,
    payload: PhantomData<fn() -> T>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), payload: PhantomData }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Queue").field(&self.shared.description.name).finish()
    }
}

impl<T> Queue<T> {
    /// The queue as it was when this handle was opened.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.shared.description
    }

    /// The database that it lives in.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.shared.db
    }
}

/// What all handles of a queue share.
pub(crate) struct Shared {
    pub db: Db,
    pub description: Description,
    pub channel: String,
    pub column: Column,
    pub sql: Statements,
    pub coalescer: Arc<Coalescer>,
    pub settler: Arc<Settler>,
    pub metrics: Metrics,
    /// What was dequeued, is nobody's, and could not be sent back by the runtime that had it.
    pub ownerless: Kept,
    /// One for all handles of the queue in this process.
    floor: Arc<Mutex<Floor>>,
    /// Messages a row as last seen, for a guess at how many rows make up n messages.
    batch_size: AtomicUsize,
}

impl Shared {
    pub fn name(&self) -> &str {
        &self.description.name
    }

    fn floor_state(&self) -> MutexGuard<'_, Floor> {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The floor for the next dequeue. Every so often a look that may lift it, or a sweep below it, is started beside.
    pub fn floor(self: &Arc<Self>) -> Time {
        let (floor, look, sweep) = {
            let (mut state, now) = (self.floor_state(), Instant::now());
            (state.floor(), state.claim_look(now), state.claim_sweep(now))
        };
        if look {
            let shared = self.clone();
            tokio::spawn(async move { shared.look().await });
        }
        if sweep {
            tokio::spawn(sweep_on(Arc::downgrade(self), 0));
        }
        floor
    }

    /// Looks at the queue from the floor on and learns from it. Returns the seconds until the oldest visible row is due,
    /// locked ones included; `None` where nothing waits at all.
    pub async fn look(&self) -> Result<Option<f64>> {
        let start = self.floor_state().floor();
        let rows = self.query_again(&self.sql.look, &[&start]).await?;
        let row = only(&rows)?;
        let look = Look { oldest: row.read(0)?, candidate: row.read(1)?, running: row.read(3)?, next: row.read(4)? };
        let cost = Duration::try_from_secs_f64(row.read(5)?).unwrap_or_default();
        let keep = {
            let (mut state, now) = (self.floor_state(), Instant::now());
            state.saw(look, now, cost);
            state.claim_keep(now).then(|| state.floor())
        };
        if let Some(reached) = keep {
            let sql = self.db.statement("keep_floor", include_str!("../../sql/keep_floor.sql"));
            // What was seen counts whether or not others may begin there: a role may lack the right to say so.
            if let Err(error) = self.query_again(&sql, &[&self.name(), &reached]).await {
                debug!(queue = self.name(), %error, "the floor was not kept for other processes");
            }
        }
        row.read(2)
    }

    /// Finds what lies below the floor; where much is dead, the rest is swept in the background.
    pub async fn sweep(self: &Arc<Self>) -> Result<()> {
        if self.floor_state().claim_sweep(Instant::now()) {
            let (page, _) = self.sweep_part(0).await?;
            if page > 0 {
                tokio::spawn(sweep_on(Arc::downgrade(self), page));
            }
        }
        Ok(())
    }

    /// One part of a sweep. Returns the page where the next begins, 0 at the end, and how long it has to wait.
    async fn sweep_part(&self, page: i64) -> Result<(i64, Duration)> {
        let floor = self.floor_state().floor();
        let rows = self.query_again(&self.sql.sweep, &[&floor, &page]).await?;
        let row = only(&rows)?;
        let cost = Duration::try_from_secs_f64(row.read(2)?).unwrap_or_default();
        Ok((row.read(1)?, self.floor_state().swept(row.read(0)?, Instant::now(), cost)))
    }

    /// How many rows will make up `n` messages, going by what was seen last.
    pub fn rows_for(&self, n: usize) -> i32 {
        (n.div_ceil(self.batch_size.load(Ordering::Relaxed).max(1))).clamp(1, 1 << 20) as i32
    }

    pub async fn query(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.db.query(Lane::Dequeue, sql, params).await.map_err(|error| error.or_no_queue(self.name()))
    }

    pub async fn query_again(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.db.query_again(Lane::Dequeue, sql, params).await.map_err(|error| error.or_no_queue(self.name()))
    }

    /// Remembers how many messages a row held, for the next guess.
    pub fn saw_batches(&self, messages: usize, rows: usize) {
        if rows > 0 {
            self.batch_size.store(messages.div_ceil(rows), Ordering::Relaxed);
        }
    }
}

/// Sweeps a queue from a page on, a part at a time, until its end or until nobody has a handle of it any more.
async fn sweep_on(shared: Weak<Shared>, mut page: i64) {
    while let Some(shared) = shared.upgrade() {
        let pause = match shared.sweep_part(page).await {
            Ok((0, _)) | Err(_) => return, // another sweep is due soon
            Ok((next, pause)) => {
                page = next;
                pause
            }
        };
        drop(shared);
        tokio::time::sleep(pause).await;
    }
}
