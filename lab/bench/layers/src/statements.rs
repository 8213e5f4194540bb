use std::{
    hint::black_box,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use futures_util::future::{Either, select};
use tokio_postgres::{
    Client, NoTls, Statement,
    types::{Timestamp, ToSql},
};
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    open::open,
    payload::{Document, all},
};

const ENQUEUE: &str = include_str!("../../../../sql/statements/plain/enqueue.sql");
const NOTIFY: &str = include_str!("../../../../sql/statements/notify.sql");
const LEASE: &str = include_str!("../../../../sql/statements/lease.sql");
const TAKE: &str = include_str!("../../../../sql/statements/take.sql");
const ACK: &str = include_str!("../../../../sql/statements/ack.sql");
const ARCHIVE: &str = include_str!("../../../../sql/statements/archive.sql");
const LOOK: &str = include_str!("../../../../sql/statements/look.sql");

/// The number of sessions, which the callers share.
const SESSIONS: usize = 16;
/// The interval between probes of the queue for the floor, as in the library.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The minimum time between notifications, as in the library.
const NOTIFY_GAP: Duration = Duration::from_millis(4);

/// The library's own statements, prepared and sent by tokio-postgres with the same parameters as in
/// the library. This layer does not coalesce, put back, trace or count messages. So the difference
/// from the layer `queue` is the cost of the library.
pub struct Statements {
    sessions: Vec<Session>,
    floor: Arc<Floor>,
    /// The number of messages per row in the last dequeue.
    batch: AtomicUsize,
    began: Instant,
    /// The time of the last notification, in microseconds since `began`.
    notified: AtomicU64,
}

struct Session {
    client: Client,
    enqueue: Statement,
    notify: Statement,
    lease: Statement,
    take: Statement,
    ack: Statement,
    archive: Statement,
}

/// A time before which no message is left to dequeue. Every dequeue takes it as a parameter.
#[derive(Default)]
struct Floor(Mutex<Reached>);

#[derive(Default)]
struct Reached {
    floor: Option<SystemTime>,
    /// A candidate, and a transaction id: the candidate becomes the floor once all earlier
    /// transactions have ended.
    pending: Option<(SystemTime, i64)>,
}

impl Floor {
    fn get(&self) -> Timestamp<SystemTime> {
        let reached = self.0.lock().unwrap_or_else(PoisonError::into_inner).floor;
        reached.map_or(Timestamp::NegInfinity, Timestamp::Value)
    }

    /// Moves the floor as the library does: a candidate becomes the floor once all transactions
    /// that could commit an older row have ended.
    fn saw(&self, oldest: Option<SystemTime>, candidate: SystemTime, running: i64, next: i64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.pending {
            Some((earlier, before)) if running >= before => {
                state.floor = state.floor.max(Some(oldest.map_or(earlier, |oldest| earlier.min(oldest))));
                state.pending = Some((candidate, next));
            }
            Some(_) => {}
            None => state.pending = Some((candidate, next)),
        }
    }
}

/// Fills a statement's holes for the queue `bench`: `{do_take_}` becomes `"do_take_bench"`.
fn filled(text: &str) -> String {
    text.replace("_}", "_bench\"").replace('{', "\"")
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Session {
    async fn open(url: &str) -> Result<Self, Failure> {
        let client = connect(url).await?;
        Ok(Self {
            enqueue: client.prepare(&filled(ENQUEUE)).await?,
            notify: client.prepare(NOTIFY).await?,
            lease: client.prepare(&filled(LEASE)).await?,
            take: client.prepare(&filled(TAKE)).await?,
            ack: client.prepare(&filled(ACK)).await?,
            archive: client.prepare(&filled(ARCHIVE)).await?,
            client,
        })
    }
}

/// Probes the queue periodically, in a separate session, while the floor is in use.
async fn look(url: String, floor: std::sync::Weak<Floor>) -> Result<(), Failure> {
    let client = connect(&url).await?;
    let look = client.prepare(&filled(LOOK)).await?;
    while let Some(floor) = floor.upgrade() {
        let row = client.query_one(&look, &[&floor.get(), &"bench"]).await?;
        floor.saw(row.get(0), row.get(1), row.get(3), row.get(4));
        drop(floor);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// Converts leases to ranges of adjacent messages with the same attempt, which the statements
/// expect.
fn ranges(mut read: Vec<(i64, i32)>) -> (Vec<i64>, Vec<i32>, Vec<i32>) {
    read.sort_unstable();
    let (mut ids, mut sizes, mut attempts) = (Vec::<i64>::new(), Vec::<i32>::new(), Vec::<i32>::new());
    for (id, attempt) in read {
        match (ids.last(), sizes.last_mut(), attempts.last()) {
            (Some(first), Some(size), Some(last)) if first + i64::from(*size) == id && *last == attempt => *size += 1,
            _ => {
                ids.push(id);
                sizes.push(1);
                attempts.push(attempt);
            }
        }
    }
    (ids, sizes, attempts)
}

impl Statements {
    fn session(&self, caller: usize) -> &Session {
        &self.sessions[caller % self.sessions.len()]
    }

    /// Returns the parameter for the number of rows that hold `n` messages.
    fn rows_for(&self, n: usize) -> i32 {
        n.div_ceil(self.batch.load(Relaxed).max(1)).max(1) as i32
    }

    /// Reads the rows of a dequeue as the library does.
    fn opened(&self, rows: &[tokio_postgres::Row]) -> Vec<(i64, i32)> {
        let mut read = Vec::new();
        for row in rows {
            let (id, attempt, size): (i64, i32, i32) = (row.get(0), row.get(1), row.get(2));
            let (enqueued_at, payloads): (SystemTime, Vec<Document>) = (row.get(3), row.get(4));
            black_box((enqueued_at, payloads));
            read.extend((id..id + i64::from(size)).map(|id| (id, attempt)));
        }
        if !rows.is_empty() {
            self.batch.store(read.len().div_ceil(rows.len()), Relaxed);
        }
        read
    }

    async fn settle(session: &Session, statement: &Statement, read: Vec<(i64, i32)>) -> Result<(), Failure> {
        let (asked, (ids, sizes, attempts)) = (read.len(), ranges(read));
        let parameters: [&(dyn ToSql + Sync); 3] = [&ids, &sizes, &attempts];
        let settled = session.client.query(statement, &parameters).await?;
        let settled: i32 = settled.iter().map(|row| row.get::<_, i32>(1)).sum();
        if settled as usize == asked {
            Ok(())
        } else {
            Err(format!("{settled} of {asked} messages were leased").into())
        }
    }

    /// Returns true if enough time has passed since the last notification to send another.
    fn may_notify(&self) -> bool {
        let (now, last) = (self.began.elapsed().as_micros() as u64, self.notified.load(Relaxed));
        let is_due = last == 0 || now.saturating_sub(last) >= NOTIFY_GAP.as_micros() as u64;
        is_due && self.notified.compare_exchange(last, now.max(1), Relaxed, Relaxed).is_ok()
    }
}

impl Contender for Statements {
    type Handle = (i64, i32);

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let (_, mut ready) = open::<Document>(told, "").await?;
        "the statements of the library through tokio-postgres".clone_into(&mut ready.settings);
        let mut sessions = Vec::new();
        for _ in 0..told.producers.max(told.consumers).clamp(1, SESSIONS) {
            sessions.push(Session::open(&told.url).await?);
        }
        let floor = Arc::new(Floor::default());
        tokio::spawn(look(told.url.clone(), Arc::downgrade(&floor)));
        let (batch, notified) = (AtomicUsize::new(1), AtomicU64::new(0));
        Ok((Self { sessions, floor, batch, began: Instant::now(), notified }, ready))
    }

    async fn send(&self, caller: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let session = self.session(caller);
        let payloads: Vec<Document> = all(payloads)?;
        let size = payloads.len() as i32;
        let parameters: [&(dyn ToSql + Sync); 2] = [&size, &payloads];
        let enqueue = std::pin::pin!(session.client.query(&session.enqueue, &parameters));
        let rows = if self.may_notify() {
            let (channels, payload) = (vec!["trunkline.bench"], "");
            let parameters: [&(dyn ToSql + Sync); 2] = [&channels, &payload];
            let notify = std::pin::pin!(session.client.query(&session.notify, &parameters));
            // Both statements are sent in one flush, and only the insert is awaited.
            match select(enqueue, notify).await {
                Either::Left((rows, _)) => rows?,
                Either::Right((_, enqueue)) => enqueue.await?,
            }
        } else {
            enqueue.await?
        };
        black_box(rows.iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>());
        Ok(())
    }

    async fn consume(self: Arc<Self>, _: Arc<Tally>) -> Result<(), Failure> {
        Err("it has single steps only".into())
    }

    async fn read(&self, caller: usize, n: usize) -> Result<Vec<(i64, i32)>, Failure> {
        let (session, count, time) = (self.session(caller), n as i32, None::<f64>);
        let (floor, rows) = (self.floor.get(), self.rows_for(n));
        let rows = session.client.query(&session.lease, &[&count, &time, &floor, &rows]).await?;
        Ok(self.opened(&rows))
    }

    async fn delete(&self, caller: usize, read: Vec<(i64, i32)>) -> Result<(), Failure> {
        let session = self.session(caller);
        Self::settle(session, &session.ack, read).await
    }

    async fn archive(&self, caller: usize, read: Vec<(i64, i32)>) -> Result<(), Failure> {
        let session = self.session(caller);
        Self::settle(session, &session.archive, read).await
    }

    async fn pop(&self, caller: usize, n: usize) -> Result<usize, Failure> {
        let (session, count) = (self.session(caller), n as i32);
        let (floor, rows) = (self.floor.get(), self.rows_for(n));
        let rows = session.client.query(&session.take, &[&count, &floor, &rows, &true]).await?;
        Ok(self.opened(&rows).len())
    }
}
