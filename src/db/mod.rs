//! The one door to the database.

mod session;
mod guest;
mod listen;

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    pin::pin,
    sync::{
        Arc, Mutex as SyncMutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};
use tokio::sync::{Mutex, mpsc};
use tokio_postgres::types::ToSql;
use tracing::debug;

use self::listen::Listener;
pub(crate) use self::{
    listen::Subscription,
    session::{Session, told_to_user},
};
use crate::{
    error::{Error, Result},
    floor::{Floor, Time},
    sql::{Schema, Sql},
    target::Target,
    wire::{Row, Use},
};

/// Connections for enqueueing, as many for dequeueing and settling, and as many for statements of the user.
const LANES: usize = 2;
/// Transactions that the library opens for closures keep this many connections for the next.
const IDLE: usize = 4;
/// Notifications to other processes are at least this far apart, except for the first.
const NOTIFY_GAP: Duration = Duration::from_millis(4);

/// A database with Trunkline in it.
///
/// Cheap to clone; all clones share the same few connections: up to two for enqueueing, two for dequeueing, two for statements
/// of yours and one that listens, each made when first needed and made anew, with backoff, after it was lost. Every statement
/// is pipelined, so the number of concurrent callers does not matter. Each transaction has a connection besides; up to four
/// stay open for the next.
#[derive(Clone)]
pub struct Db(Arc<Inner>);

struct Inner {
    target: Target,
    enqueue: [Slot; LANES],
    dequeue: [Slot; LANES],
    run: [Slot; LANES],
    idle: SyncMutex<Vec<Arc<Session>>>,
    listener: Listener,
    notify: SyncMutex<Notifications>,
    notify_sql: Sql,
    schema: Schema,
    /// The floor of every queue that has a handle, shared by its handles.
    floors: SyncMutex<HashMap<String, Weak<SyncMutex<Floor>>>>,
}

/// A place for a connection.
#[derive(Default)]
struct Slot {
    place: Mutex<Place>,
    /// Statements on their way.
    load: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Place {
    session: Option<Arc<Session>>,
    /// Why there is none, and since when.
    refused: Option<(Instant, Error)>,
}

/// Sends notifications, and nobody else does so at the time. However it ends, with its runtime or by a panic, the next caller
/// takes over, with what was not sent.
struct Sending {
    db: Db,
    unsent: Vec<String>,
    over: bool,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.over {
            let mut notify = self.db.notifications();
            notify.sending = false;
            notify.channels.extend(self.unsent.drain(..));
        }
    }
}

#[derive(Default)]
struct Notifications {
    channels: BTreeSet<String>,
    sending: bool,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Enqueue,
    Dequeue,
    /// For the statements of the user.
    Run,
}

impl fmt::Debug for Db {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Db").field("hosts", &self.0.target.config.get_hosts()).finish_non_exhaustive()
    }
}

impl Db {
    /// Connects. The string is a URL (`postgres://user@host/database?sslmode=verify-full`) or words
    /// (`host=/run/postgresql dbname=app`), with libpq's meaning of `sslmode` and `sslrootcert`. With
    /// `prepared_statements=off` every statement is parsed with each use, for poolers in transaction mode; the role's default
    /// isolation level must be `read committed` there.
    ///
    /// A host has ten seconds to take us, unless `connect_timeout` says otherwise. With `answer_timeout=60` a connection whose server
    /// says nothing for so many seconds, while an answer is due, is given up. An answer is at most 2 GiB, unless `max_answer=64MB`
    /// says otherwise.
    ///
    /// With `schema=NAME` (or the environment variable `TRUNKLINE_SCHEMA`) the queues are in that schema instead of `trunkline`, so
    /// that two applications share a database without meeting: 1 to 14 characters of a-z, 0-9 and `_`.
    ///
    /// A handle may outlive the runtime that it was made in: connections end with the runtime that made them, and are made anew. A
    /// current-thread runtime that is not running stops its connections with it.
    ///
    /// # Errors
    /// The string does not parse, or the database cannot be reached now. Only later losses are waited out.
    pub async fn connect(url: &str) -> Result<Self> {
        let target = Target::parse(url)?;
        let first = Session::open_now(&target, Use::Alone, Arc::default()).await?; // the first transaction will have it
        let schema = target.schema.clone();
        let db = Self(Arc::new(Inner {
            schema,
            listener: Listener::new(target.clone()),
            target,
            enqueue: Default::default(),
            dequeue: Default::default(),
            run: Default::default(),
            idle: SyncMutex::new(vec![Arc::new(first)]),
            notify: SyncMutex::default(),
            notify_sql: Sql::new("notify", include_str!("../../sql/notify.sql")),
            floors: SyncMutex::default(),
        }));
        Ok(db)
    }

    /// The schema that holds the queues.
    pub(crate) fn schema(&self) -> &Schema {
        &self.0.schema
    }

    /// The floor of a queue in this process, begun where another process left it.
    pub(crate) fn floor_of(&self, queue: &str, reached: Time) -> Arc<SyncMutex<Floor>> {
        let mut floors = self.0.floors.lock().unwrap_or_else(PoisonError::into_inner);
        floors.retain(|_, floor| floor.strong_count() > 0);
        if let Some(floor) = floors.get(queue).and_then(Weak::upgrade) {
            return floor;
        }
        let floor = Arc::new(SyncMutex::new(Floor::new(Instant::now(), reached)));
        floors.insert(queue.to_owned(), Arc::downgrade(&floor));
        floor
    }

    /// A statement about what all queues share.
    pub(crate) fn statement(&self, name: &'static str, text: &str) -> Sql {
        Sql::new(name, &self.0.schema.fill(text))
    }

    /// A live connection of a lane, the one with less to do, made anew if it was lost.
    pub(crate) async fn session(&self, lane: Lane) -> Result<Arc<Session>> {
        let slots = match lane {
            Lane::Enqueue => &self.0.enqueue,
            Lane::Dequeue => &self.0.dequeue,
            Lane::Run => &self.0.run,
        };
        let mut slot = &slots[0];
        for other in &slots[1..] {
            if other.load.load(Ordering::Relaxed) < slot.load.load(Ordering::Relaxed) {
                slot = other;
            }
        }
        self.0.listener.revive();
        let asked = Instant::now();
        let mut place = slot.place.lock().await;
        if let Some(session) = place.session.as_ref().filter(|session| !session.is_closed()) {
            return Ok(session.clone());
        }
        if let Some((_, error)) = place.refused.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(error.clone()); // the same database, tried with patience while this caller waited
        }
        let opened = Session::open(&self.0.target, Use::Common, slot.load.clone()).await.map(Arc::new);
        place.session = opened.as_ref().ok().cloned();
        place.refused = opened.as_ref().err().map(|error| (Instant::now(), error.clone()));
        opened
    }

    /// Runs one statement in a transaction of its own.
    pub(crate) async fn query(&self, lane: Lane, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.session(lane).await?.query(sql, params).await
    }

    /// Runs one statement that may as well run twice: a lost connection is replaced once.
    pub(crate) async fn query_again(&self, lane: Lane, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        match self.query(lane, sql, params).await {
            Err(error) if error.is_outcome_unknown() => self.query(lane, sql, params).await,
            outcome => outcome,
        }
    }

    /// How a transaction begins, so that `skip locked` sees what was committed.
    pub(crate) fn begin_text(&self) -> &'static str {
        match self.0.target.keeps_statements {
            true => "begin", // at the session's level
            false => "begin isolation level read committed",
        }
    }

    /// Whether a copy needs a connection of its own. pgbouncer before 1.22.1 forgets at its end how many answers are still to come,
    /// and would hand those of what follows it to somebody else.
    pub(crate) fn copies_alone(&self) -> bool {
        !self.0.target.keeps_statements
    }

    /// A connection of one's own, for a transaction. Give it back with [`Db::give_back`] when it is clean.
    pub(crate) async fn own_session(&self) -> Result<Arc<Session>> {
        loop {
            let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(session) if session.is_closed() => {}
                Some(session) => return Ok(session),
                None => return Session::open(&self.0.target, Use::Alone, Arc::default()).await.map(Arc::new),
            }
        }
    }

    pub(crate) fn give_back(&self, session: Arc<Session>) {
        session.connection().clean();
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE && !session.is_closed() {
            idle.push(session);
        }
    }

    /// Listens to a channel until the subscription is dropped.
    pub(crate) fn subscribe(&self, channel: &str) -> Subscription {
        self.0.listener.subscribe(channel, None)
    }

    /// As [`Db::subscribe`], with the texts of the notifications.
    pub(crate) fn subscribe_letters(&self, channel: &str) -> (Subscription, mpsc::UnboundedReceiver<String>) {
        let (letters, receiver) = mpsc::unbounded_channel();
        (self.0.listener.subscribe(channel, Some(letters)), receiver)
    }

    /// Wakes the consumers that listen: those of this process at once, the others by a notification that is sent after
    /// the commit, from outside the transaction, and shared by all who ask while one is on its way.
    pub(crate) fn wake(&self, channel: &str) {
        self.0.listener.ring(channel);
        let mut notify = self.notifications();
        if !notify.channels.contains(channel) {
            notify.channels.insert(channel.to_owned());
        }
        drop(notify);
        if let Some(sending) = self.sending() {
            tokio::spawn(sending.notify(Duration::ZERO));
        }
    }

    /// The right to send notifications, unless somebody has it.
    fn sending(&self) -> Option<Sending> {
        let before = std::mem::replace(&mut self.notifications().sending, true);
        (!before).then(|| Sending { db: self.clone(), unsent: Vec::new(), over: false })
    }

    /// Runs a statement whose commit wakes consumers. Where no notification is under way, it follows in the same flush,
    /// a transaction of its own behind the statement's: one round trip less until a sleeper wakes.
    pub(crate) async fn query_and_wake(
        &self,
        session: &Session,
        sql: &Sql,
        params: &[&(dyn ToSql + Sync)],
        channel: &str,
    ) -> Result<Vec<Row>> {
        // Prepared before either is sent: the notification must not overtake.
        session.ready(sql).await?;
        session.ready(&self.0.notify_sql).await?;
        let Some(sending) = self.sending() else {
            let rows = session.query(sql, params).await?;
            self.wake(channel);
            return Ok(rows);
        };
        tokio::spawn(sending.notify(NOTIFY_GAP)); // and then what is asked for meanwhile
        let channels = [channel];
        let notification: [&(dyn ToSql + Sync); 2] = [&&channels[..], &self.0.listener.mark];
        // Both are sent by the first poll, in this order; the caller's answer does not wait for the second's.
        let (statement, notify) =
            (pin!(session.query(sql, params)), pin!(session.query(&self.0.notify_sql, &notification)));
        let rows = match select(statement, notify).await {
            Either::Left((rows, _)) => rows,
            Either::Right((_, statement)) => statement.await,
        };
        self.0.listener.ring(channel);
        rows
    }

    fn notifications(&self) -> std::sync::MutexGuard<'_, Notifications> {
        self.0.notify.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sending {
    /// Sends what is asked for, until nothing is.
    async fn notify(mut self, mut pause: Duration) {
        loop {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            pause = NOTIFY_GAP;
            {
                let mut notify = self.db.notifications();
                if notify.channels.is_empty() {
                    notify.sending = false;
                    self.over = true;
                    return;
                }
                self.unsent = std::mem::take(&mut notify.channels).into_iter().collect();
            }
            let Inner { notify_sql, listener, .. } = &*self.db.0;
            let sent = self.db.query_again(Lane::Enqueue, notify_sql, &[&self.unsent, &listener.mark]).await;
            self.unsent.clear();
            if let Err(error) = sent {
                debug!(%error, "a notification was not sent; consumers of other processes find the messages by polling");
            }
        }
    }
}
