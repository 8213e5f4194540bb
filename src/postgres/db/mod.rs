//! The one door to the database.

mod session;
mod guest;
mod proof;
mod listen;

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex as SyncMutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex, mpsc},
    time::Instant,
};
use tokio_postgres::types::ToSql;

pub(crate) use self::{
    listen::{Heard, Listener, Subscription},
    session::{Session, told_to_user},
};
use crate::{
    error::{Error, Result},
    postgres::{
        sql::{Schema, Sql},
        target::Target,
        wire::{Row, Use},
    },
};

/// Connections of each class.
const SLOTS: usize = 2;
/// Transactions that the library opens for closures keep this many connections for the next.
const IDLE: usize = 4;
/// [`Db::rest`] closes a connection that was unused for this long.
const UNUSED: Duration = Duration::from_secs(30);

/// A database with Trunkline in it.
///
/// Cheap to clone; all clones share the same few connections: up to two for enqueueing, two for
/// dequeueing, two for statements of yours and one that listens, each made when first needed and
/// made again, with backoff, after it was lost. Every statement is pipelined, so the number of
/// concurrent callers does not matter. Each transaction has a connection besides; up to four stay
/// open for the next. A process in which consumers wait and nothing else happens closes them after
/// half a minute, but for one and the one that listens.
#[derive(Clone)]
pub struct Db(Arc<Inner>);

struct Inner {
    target: Target,
    store: [Slot; SLOTS],
    main: [Slot; SLOTS],
    run: [Slot; SLOTS],
    /// With the time when they were given back.
    idle: SyncMutex<Vec<(Instant, Arc<Session>)>>,
    listener: Listener,
    /// When [`Db::rest`] was last made.
    rested: SyncMutex<Instant>,
    schema: Schema,
    /// See [`Db::attached`].
    attached: SyncMutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

/// A place for a connection.
#[derive(Default)]
struct Slot {
    place: Mutex<SlotState>,
    /// Statements on their way.
    load: Arc<AtomicUsize>,
}

#[derive(Default)]
struct SlotState {
    session: Option<Arc<Session>>,
    used: Option<Instant>,
    /// Why there is none, and since when.
    refused: Option<(Instant, Error)>,
}

/// The class of a connection. Each has connections of its own, so that none waits behind the
/// statements of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Short writes, such as enqueues. Their connections are not made with patience where another
    /// server could take them.
    Store,
    /// Everything else of the library. One of these connections is made first, and stays open.
    Main,
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
    /// (`host=/run/postgresql dbname=app`), with libpq's meaning. What it does not say, and with an
    /// empty string that is everything, is taken from the first of these that says it:
    ///
    /// 1. a service: `service=NAME` or `PGSERVICE`, looked up in `PGSERVICEFILE` or
    ///    `~/.pg_service.conf`, then in `PGSYSCONFDIR/pg_service.conf`;
    /// 2. the variables of this table;
    /// 3. for the password, the file `passfile` or `PGPASSFILE`, else `~/.pgpass`, for each host by
    ///    itself. It is ignored, with a warning, where others may read it.
    ///
    /// | setting | variable | not said |
    /// |---|---|---|
    /// | `host`, `hostaddr`, `port` | `PGHOST`, `PGHOSTADDR`, `PGPORT` | the socket in `/run/postgresql`, `/var/run/postgresql` or `/tmp`, else `localhost`; 5432 |
    /// | `user`, `password`, `dbname` | `PGUSER`, `PGPASSWORD`, `PGDATABASE` | the system's user, none, the user's name |
    /// | `sslmode`, `sslrootcert` | `PGSSLMODE`, `PGSSLROOTCERT` | `prefer`; `require` encrypts, `verify-ca` checks who signed the certificate, `verify-full` its name, too |
    /// | `sslnegotiation`, `channel_binding` | `PGSSLNEGOTIATION`, `PGCHANNELBINDING` | `postgres`, `prefer` |
    /// | `target_session_attrs`, `load_balance_hosts` | `PGTARGETSESSIONATTRS`, `PGLOADBALANCEHOSTS` | `any` (or `read-write`, `read-only`), `disable` |
    /// | `connect_timeout` | `PGCONNECT_TIMEOUT` | 10 s, for each host, until the login has ended; 0 is no limit |
    /// | `options`, `application_name` | `PGOPTIONS`, `PGAPPNAME` | none, `trunkline` |
    /// | `keepalives`, `keepalives_idle`, `keepalives_interval`, `keepalives_retries`, `tcp_user_timeout` | | those of `tokio_postgres` |
    /// | `answer_timeout` | | none; seconds after which a server that says nothing, while an answer is due, is given up |
    /// | `max_answer` | | 2 GiB for an answer to a statement of yours; as in `64MB`; dequeues ask for what fits |
    /// | `prepared_statements` | | `on`; `off` for poolers in transaction mode, where the role's default isolation level must be `read committed` |
    /// | `schema` | `TRUNKLINE_SCHEMA` | `trunkline`: where the queues are, 1 to 14 characters of a-z, 0-9 and `_` |
    ///
    /// A variable that is empty is not set; a setting that is empty in the string (`options=''`) is
    /// said, and left as in the last column. All of it is read once, here: later connections use
    /// the same.
    ///
    /// A handle may outlive the runtime that it was made in: connections end with the runtime that
    /// made them, and are made again. A current-thread runtime that is not running stops its
    /// connections with it.
    ///
    /// # Errors
    /// The string, a variable or a line of a service file is not valid (the error names it), a
    /// service that is named is not found, or the database cannot be reached now. Only later losses
    /// are waited out.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::to(Target::parse(url)?).await
    }

    /// As [`Db::connect`], in another environment: `environment` gives the value of the variable of
    /// a name, `HOME` included, and the process' own variables are not read. With `|_| None`
    /// nothing counts but the string.
    ///
    /// # Errors
    /// As those of [`Db::connect`].
    pub async fn connect_with(url: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self> {
        Self::to(Target::parse_in(url, environment)?).await
    }

    /// Connects to one of several servers that hold the same queues.
    pub(crate) async fn to_one_of_several(target: Target) -> Result<Self> {
        Self::to(target.of_several()).await
    }

    /// Where it is, for people; nothing that is secret.
    pub(crate) fn address(&self) -> String {
        self.0.target.place()
    }

    async fn to(target: Target) -> Result<Self> {
        let main: [Slot; SLOTS] = Default::default();
        // Also tells whether the database can be reached. Its class is that of what comes first: a
        // queue is described on it.
        let first = Session::open_now(&target, Use::Common, main[0].load.clone()).await?;
        main[0].place.lock().await.session = Some(Arc::new(first));
        let schema = target.schema.clone();
        let db = Self(Arc::new(Inner {
            schema,
            listener: Listener::new(target.clone()),
            rested: SyncMutex::new(Instant::now()),
            target,
            store: Default::default(),
            main,
            run: Default::default(),
            idle: SyncMutex::default(),
            attached: SyncMutex::default(),
        }));
        Ok(db)
    }

    /// The name of the schema that holds the queues: `trunkline`, unless the connection string
    /// names another (`schema=…`).
    #[must_use]
    pub fn schema_name(&self) -> &str {
        self.0.schema.name()
    }

    /// The schema that holds the queues.
    pub(crate) fn schema(&self) -> &Schema {
        &self.0.schema
    }

    /// What others keep for as long as there are handles of this database: one value of each type,
    /// shared by all clones.
    pub(crate) fn attached<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut attached = self.0.attached.lock().unwrap_or_else(PoisonError::into_inner);
        let value = attached.entry(TypeId::of::<T>()).or_insert_with(|| Arc::<T>::default());
        value.clone().downcast().unwrap_or_default()
    }

    /// Bytes of an answer that are kept: `max_answer`.
    pub(crate) fn answer_bytes(&self) -> usize {
        self.0.target.limits.answer_bytes
    }

    /// The connection that listens.
    pub(crate) fn listener(&self) -> &Listener {
        &self.0.listener
    }

    /// A statement about what all queues share.
    pub(crate) fn statement(&self, name: &'static str, text: &str) -> Sql {
        Sql::new(name, &self.0.schema.fill(text))
    }

    /// A live connection for a class, the one with less to do, made again if it was lost.
    pub(crate) async fn session(&self, class: Class) -> Result<Arc<Session>> {
        let slots = match class {
            Class::Store => &self.0.store,
            Class::Main => &self.0.main,
            Class::Run => &self.0.run,
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
        place.used = Some(Instant::now());
        match &place.session {
            Some(session) if !session.is_closed() => return Ok(session.clone()),
            // The others may be on the same server, which is gone, or hangs; each would find that
            // out by itself, as late as this one.
            Some(_) => {
                self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.0.listener.doubt();
            }
            None => {}
        }
        if let Some((_, error)) = place.refused.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(error.clone()); // the same database, tried with patience while this caller waited
        }
        let opened = self.open(class, Use::Common, slot.load.clone()).await;
        place.session = opened.as_ref().ok().cloned();
        place.refused = opened.as_ref().err().map(|error| (Instant::now(), error.clone()));
        opened
    }

    /// With patience, unless another server can take what is to be stored.
    async fn open(&self, class: Class, usage: Use, load: Arc<AtomicUsize>) -> Result<Arc<Session>> {
        let opened = match class {
            Class::Store if self.0.target.is_of_several => Session::open_now(&self.0.target, usage, load).await,
            _ => Session::open(&self.0.target, usage, load).await,
        };
        opened.map(Arc::new)
    }

    /// Runs one statement in a transaction of its own.
    pub(crate) async fn query(&self, class: Class, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.session(class).await?.query(sql, params).await
    }

    /// Runs one statement that may as well run twice: a lost connection is replaced once.
    pub(crate) async fn query_again(
        &self,
        class: Class,
        sql: &Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        match self.query(class, sql, params).await {
            Err(error) if error.is_outcome_unknown() => self.query(class, sql, params).await,
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

    /// Whether a copy needs a connection of its own. pgbouncer before 1.22.1 forgets at its end how
    /// many answers are still to come, and would give the answers that follow to another client.
    pub(crate) fn copies_alone(&self) -> bool {
        !self.0.target.keeps_statements
    }

    /// A connection of one's own, for a transaction. Give it back with [`Db::give_back`] when it is
    /// clean.
    pub(crate) async fn own_session(&self) -> Result<Arc<Session>> {
        self.own_session_for(Class::Run).await
    }

    pub(crate) async fn own_session_for(&self, class: Class) -> Result<Arc<Session>> {
        loop {
            let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle.map(|(_, session)| session) {
                Some(session) if session.is_closed() => {}
                Some(session) => return Ok(session),
                None => return self.open(class, Use::Alone, Arc::default()).await,
            }
        }
    }

    pub(crate) fn give_back(&self, session: Arc<Session>) {
        session.connection().clean();
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE && !session.is_closed() {
            idle.push((Instant::now(), session));
        }
    }

    /// Closes connections that were unused for a while. One of the main class stays, and so does
    /// the one that listens, which has to prove that it is alive. It does so once in that time,
    /// however many queues call it.
    pub(crate) fn rest(&self) {
        {
            let mut rested = self.0.rested.lock().unwrap_or_else(PoisonError::into_inner);
            if rested.elapsed() < UNUSED {
                return;
            }
            *rested = Instant::now();
        }
        self.0.listener.doubt();
        self.0
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(given_back, _)| given_back.elapsed() < UNUSED);
        for slot in self.0.store.iter().chain(&self.0.run).chain(&self.0.main[1..]) {
            let Ok(mut place) = slot.place.try_lock() else { continue }; // in use just now
            if slot.load.load(Ordering::Relaxed) == 0 && place.used.is_some_and(|used| used.elapsed() >= UNUSED) {
                place.session = None; // closed when the last caller has let go of it
            }
        }
    }

    /// Listens to a channel until the subscription is dropped.
    pub(crate) fn subscribe(&self, channel: &str) -> Subscription {
        self.0.listener.subscribe(channel, None)
    }

    /// As [`Db::subscribe`], with the texts of the notifications.
    pub(crate) fn subscribe_texts(&self, channel: &str) -> (Subscription, mpsc::UnboundedReceiver<String>) {
        let (texts, receiver) = mpsc::unbounded_channel();
        (self.0.listener.subscribe(channel, Some(texts)), receiver)
    }
}
