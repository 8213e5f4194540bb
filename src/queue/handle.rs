//! The handle of a queue, and the state that all handles of a queue share.

use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_postgres::types::ToSql;
use tracing::debug;

use crate::{
    error::{Error, Kind, Result},
    postgres::{
        db::{Class, Db, Session},
        sql::Sql,
        wire::{Row, only},
    },
    queue::{
        admin::description::Description,
        batch::{Batchers, coalesce::Coalescer, dequeues::PAGE, unclaimed::Kept},
        floor::{
            Look,
            compaction::Compaction,
            lanes::{Lanes, Reached},
        },
        message::{
            keys::KeyLanes,
            payload::{Payload, PayloadColumn},
            unique::Unique,
        },
        observe::metric::{Metrics, ShardName},
        statements::{QueueKind, Statements},
        wait::list::WaitList,
    },
};

impl Db {
    /// Opens a queue with payloads of type `T`.
    ///
    /// # Errors
    /// There is no such queue ([`Error::is_no_queue`]), its payloads have another type
    /// ([`Error::is_wrong_type`]), or this library does not support the version of the schema.
    pub async fn queue<T: Payload>(&self, name: &str) -> Result<Queue<T>> {
        let mut queue = self.queue_of_any(name, false).await?;
        if queue.column.check::<T>(name).is_err() {
            // Since the type was looked up, it may have got labels, fields or another name.
            queue = self.queue_of_any(name, true).await?;
            queue.column.check::<T>(name)?;
        }
        Ok(Queue { shared: Arc::new(queue), payload: PhantomData })
    }

    /// Opens a queue. If `is_again` is set, looks its type up again, although it is cached.
    async fn queue_of_any(&self, name: &str, is_again: bool) -> Result<Shared> {
        let rows = self.describe(Some(name)).await?;
        let row = rows.first().ok_or_else(|| Error::new(Kind::NoQueue(name.to_owned())))?;
        let description = Description::of(row)?;
        let lanes = self.lanes_of(name, row.read(6)?, description.priorities as usize);
        let kind = QueueKind::of(description.priorities, description.partitions);
        let sql = Statements::of(self.schema(), name, description.created_at, kind);
        let payload_type = &sql.payload_type;
        let column = |session: Arc<Session>| async move { session.column_type(payload_type, is_again).await };
        let column = self.with_lock_waits(Class::Main, column).await.map_err(|error| error.or_no_queue(name))?;
        let column = column.and_then(PayloadColumn::new).ok_or_else(|| {
            Error::invalid(format!("the table of queue {name:?} was changed: its payload is not an array"))
        })?;
        Ok(Shared {
            channel: format!("{}.{name}", self.schema().name()),
            column,
            lanes,
            key_lanes: KeyLanes::new(description.first_lane, description.partitions),
            batch_size: AtomicUsize::new(description.max_batch as usize),
            message_bytes: AtomicUsize::new(0),
            coalescer: Coalescer::new(
                description.max_batch as usize,
                description.priorities.max(description.partitions) as usize,
                sql.inserts.rows(),
            ),
            unique: description
                .uniqueness
                .then(|| Coalescer::new(description.max_batch as usize, description.priorities as usize, 1)),
            batchers: Batchers::default(),
            wait_list: WaitList::default(),
            sql,
            metrics: Metrics::of(name, &self.attached::<ShardName>()),
            unclaimed: Kept::default(),
            compaction: Compaction::default(),
            limits_leases: AtomicBool::new(description.limits.max_leased.is_some()),
            description,
            db: self.clone(),
        })
    }
}

/// A handle of a queue with payloads of type `T`. Cheap to clone: clones share batches, floor and
/// connections.
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
    /// Returns the queue's description as it was when this handle was opened.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.shared.description
    }

    /// Returns the queue's database.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.shared.db
    }
}

/// The state that all handles of a queue share.
pub(crate) struct Shared {
    pub db: Db,
    pub description: Description,
    /// True if the queue limits its leases, by the last probe.
    limits_leases: AtomicBool,
    pub channel: String,
    pub column: PayloadColumn,
    pub sql: Statements,
    pub coalescer: Coalescer,
    pub unique: Option<Coalescer>,
    pub batchers: Batchers,
    pub wait_list: WaitList,
    pub metrics: Metrics,
    /// Dequeued messages whose caller is gone and which no task could put back yet.
    pub unclaimed: Kept,
    pub compaction: Compaction,
    /// The floors. All handles of the queue in this process share them.
    lanes: Arc<Mutex<Lanes>>,
    /// The partitions of a queue with keys, as last read from the database.
    pub key_lanes: KeyLanes,
    /// The last observed number of messages per row. Estimates how many rows hold `n` messages.
    batch_size: AtomicUsize,
    /// The last observed size of a large message in bytes, for estimating how many messages fit in
    /// a reply.
    message_bytes: AtomicUsize,
}

/// The messages of one dequeue should take at most `max_answer` divided by this number.
const OF_ANSWER: usize = 4;

impl Shared {
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Returns true if the queue limits its leases, so consumers may be waiting for a lease to end.
    pub fn has_room_for_others(&self) -> bool {
        self.limits_leases.load(Ordering::Relaxed)
    }

    /// Wakes waiting consumers, because leases that have ended may make room for others.
    pub fn make_room(&self) {
        if self.has_room_for_others() {
            self.db.wake(&self.channel);
        }
    }

    pub fn is_laned(&self) -> bool {
        self.description.priorities > 1
    }

    pub fn is_keyed(&self) -> bool {
        self.description.partitions > 0
    }

    /// Checks that a message can have this key.
    ///
    /// # Errors
    /// The key or its time is out of bounds, or the queue has no uniqueness.
    pub fn check_unique(&self, unique: &Unique) -> Result<()> {
        if !self.description.uniqueness {
            return Err(Error::invalid(format!(
                "queue {:?} keeps no unique keys, and the message has the key {:?}: create one with Settings::uniqueness",
                self.name(),
                unique.key
            )));
        }
        unique.check()
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the floor for the next dequeue. Starts a probe that may raise the floor, or a sweep
    /// below it, if one is due.
    pub fn floor(self: &Arc<Self>) -> Reached {
        let (floor, look, sweep) = {
            let (mut lanes, now) = (self.lanes(), Instant::now());
            (lanes.reached(), lanes.claim_look(now), lanes.claim_sweep(now))
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

    /// Probes the queue from the floor upwards, and updates the floor. Returns the seconds until
    /// the oldest visible row is due, locked or not. Returns `None` if no message is waiting.
    pub async fn look(self: &Arc<Self>) -> Result<Option<f64>> {
        let start = self.lanes().reached();
        let rows = self.query_again(&self.sql.look, &[&start, &self.name()]).await?;
        let (mut looks, mut due_in, mut cost) = (Vec::with_capacity(rows.len()), None::<f64>, Duration::ZERO);
        for row in &rows {
            looks.push(Look::of(row)?);
            due_in = row.read::<Option<f64>>(2)?.into_iter().chain(due_in).reduce(f64::min);
            self.limits_leases.store(row.read(6)?, Ordering::Relaxed);
            cost = cost.max(Duration::try_from_secs_f64(row.read(5)?).unwrap_or_default());
        }
        let keep = {
            let (mut lanes, now) = (self.lanes(), Instant::now());
            lanes.saw(&looks, now, cost);
            lanes.claim_keep(now)
        };
        // The result is used even if the floor cannot be stored for other processes, for example
        // because the role lacks the right.
        if let Some(reached) = keep
            && let Err(error) = self.keep_floor(reached).await
        {
            debug!(queue = self.name(), %error, "cannot store the floor for other processes");
        }
        Ok(due_in)
    }

    /// Returns the shortest time for which a pause or a limit still holds back a due message. The
    /// time is zero if the message can be dequeued. It is the maximum for a paused queue, because
    /// only a resume ends a pause. Returns `None` if no message is due.
    pub async fn held_back(self: &Arc<Self>) -> Result<Option<Duration>> {
        let start = self.lanes().reached();
        let mut shortest = None::<Duration>;
        for row in &self.query_again(&self.sql.look, &[&start, &self.name()]).await? {
            let due_in: Option<f64> = row.read(2)?;
            if Look::of(row)?.is_due() {
                let held = due_in.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)));
                let held = held.and_then(std::result::Result::ok).unwrap_or(Duration::MAX);
                shortest = Some(shortest.map_or(held, |shortest| shortest.min(held)));
            }
        }
        Ok(shortest)
    }

    /// Searches for rows below the floor. If there are many dead rows, a separate task continues
    /// the sweep.
    pub async fn sweep(self: &Arc<Self>) -> Result<()> {
        if self.lanes().claim_sweep(Instant::now()) {
            let (page, _) = self.sweep_part(0).await?;
            if page > 0 {
                tokio::spawn(sweep_on(Arc::downgrade(self), page));
            }
        }
        Ok(())
    }

    /// Runs one part of a sweep. Returns the first page of the next part, or 0 at the end, and the
    /// pause before that part.
    async fn sweep_part(&self, page: i64) -> Result<(i64, Duration)> {
        let reached = self.lanes().reached();
        let rows = self.query_again(&self.sql.sweep, &[&reached, &page]).await?;
        let row = only(&rows)?;
        let cost = Duration::try_from_secs_f64(row.read(2)?).unwrap_or_default();
        Ok((row.read(1)?, self.lanes().swept(row.read(0)?, Instant::now(), cost)))
    }

    /// Estimates the number of rows that hold `n` messages, from the last dequeue.
    pub fn rows_for(&self, n: usize) -> i32 {
        (n.div_ceil(self.batch_size.load(Ordering::Relaxed).max(1))).clamp(1, 1 << 20) as i32
    }

    pub async fn query(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.db.query(Class::Main, sql, params).await.map_err(|error| error.or_no_queue(self.name()))
    }

    pub async fn query_unblocked(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.db.query_unblocked(sql, params).await.map_err(|error| error.or_no_queue(self.name()))
    }

    pub async fn query_again(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.db.query_again(Class::Main, sql, params).await.map_err(|error| error.or_no_queue(self.name()))
    }

    /// Returns how many of `n` messages one dequeue should request: at most a page, and no more
    /// than are likely to fit in a reply. A reply that turns out larger is still accepted.
    pub fn fitting(&self, n: usize) -> usize {
        let most = match self.message_bytes.load(Ordering::Relaxed) {
            0 => PAGE,
            bytes => (self.db.answer_bytes() / OF_ANSWER / bytes).clamp(1, PAGE),
        };
        n.min(most)
    }

    /// Records the size of a dequeue's messages. Larger messages raise the estimate at once;
    /// smaller ones lower it gradually.
    pub fn saw_bytes(&self, bytes: usize) {
        if bytes > 0 {
            let before = self.message_bytes.load(Ordering::Relaxed);
            self.message_bytes.store(bytes.max(before - before / 8), Ordering::Relaxed);
        }
    }

    /// Records the number of messages per row, for the next estimate.
    pub fn saw_batches(&self, messages: usize, rows: usize) {
        if rows > 0 {
            self.batch_size.store(messages.div_ceil(rows), Ordering::Relaxed);
        }
    }

    /// Records that a message whose lease expired was returned alone. The next one probably is,
    /// too, so the next dequeue begins with one row: it would lock all others for nothing.
    pub fn saw_apart(&self) {
        self.batch_size.store(usize::MAX, Ordering::Relaxed);
    }
}

/// Runs work to its end even if the caller stops waiting. Otherwise a dropped call could leave
/// consumers asleep after its commit.
pub(crate) async fn finish<R: Send + 'static>(
    what: &'static str,
    work: impl Future<Output = Result<R>> + Send + 'static,
) -> Result<R> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(Error::ended(what, true)))
}

/// Continues a sweep from the given page, part by part. Stops at its end or when the queue's last
/// handle is dropped.
async fn sweep_on(shared: Weak<Shared>, mut page: i64) {
    while let Some(shared) = shared.upgrade() {
        let pause = match shared.sweep_part(page).await {
            Ok((0, _)) | Err(_) => return, // the next sweep will be due soon
            Ok((next, pause)) => {
                page = next;
                pause
            }
        };
        drop(shared);
        tokio::time::sleep(pause).await;
    }
}
