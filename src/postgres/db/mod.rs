//! The handle of a database. All access to the database goes through it.

mod session;
mod lonely;
mod idle;
mod guest;
mod proof;
mod channels;
mod announced;
mod listen;

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex as SyncMutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    sync::{Mutex, mpsc},
    time::Instant,
};
use tokio_postgres::types::ToSql;

pub(crate) use self::{
    channels::Heard,
    listen::{Listener, Subscription},
    lonely::{LonelyAdvice, LonelyTrips},
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

/// The number of connections of each class.
const SLOTS: usize = 2;

/// A handle of a database that has Trunkline installed.
///
/// Cheap to clone. All clones share the same connections: up to two for enqueueing, two for
/// dequeueing, two for your own statements, and one that listens. Each connection is opened when it
/// is first needed. A lost connection is replaced, with backoff. Statements are pipelined, so the
/// number of concurrent callers does not matter.
///
/// Each open transaction has a connection of its own; up to four of these connections stay open for
/// later transactions. If consumers wait and nothing else happens for half a minute, a process
/// closes all connections except one and the one that listens.
#[derive(Clone)]
pub struct Db(Arc<Inner>);

struct Inner {
    target: Target,
    store: [Slot; SLOTS],
    main: [Slot; SLOTS],
    run: [Slot; SLOTS],
    lonely: LonelyTrips,
    advice: LonelyAdvice,
    /// Idle connections, each with the time when it was returned.
    idle: SyncMutex<Vec<(Instant, Arc<Session>)>>,
    listener: Listener,
    /// The time of the last [`Db::rest`] that acted.
    rested: SyncMutex<Instant>,
    schema: Schema,
    attached: SyncMutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

#[derive(Default)]
struct Slot {
    place: Mutex<SlotState>,
    /// The number of statements that are being sent or answered.
    load: Arc<AtomicUsize>,
}

#[derive(Default)]
struct SlotState {
    session: Option<Arc<Session>>,
    used: Option<Instant>,
    /// The last error, and the time when it occurred.
    refused: Option<(Instant, Error)>,
}

/// The class of a connection. Each class has its own connections, so that statements of one class
/// do not wait behind those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Short writes, such as enqueues. A connection is tried only once if another server could
    /// accept the writes.
    Store,
    /// The library's other statements. One of these connections is opened first, and stays open.
    Main,
    /// The class of the user's own statements.
    Run,
}

impl fmt::Debug for Db {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Db").field("hosts", &self.0.target.config.get_hosts()).finish_non_exhaustive()
    }
}

impl Db {
    /// Connects to a database. The string is a URL
    /// (`postgres://user@host/database?sslmode=verify-full`) or a list of settings
    /// (`host=/run/postgresql dbname=app`), with the same meaning as in libpq. An empty string is
    /// valid. Missing settings are taken from the first of these sources that has them:
    ///
    /// 1. a service: `service=NAME` or `PGSERVICE`, looked up in `PGSERVICEFILE` or
    ///    `~/.pg_service.conf`, then in `PGSYSCONFDIR/pg_service.conf`;
    /// 2. the variables listed below;
    /// 3. for the password, the file `passfile` or `PGPASSFILE`, else `~/.pgpass`, for each host
    ///    separately. The file is ignored, with a warning, if other users may read it.
    ///
    /// These are the settings, their variables and their defaults:
    ///
    /// - `host`, `hostaddr`, `port` (`PGHOST`, `PGHOSTADDR`, `PGPORT`): the socket in
    ///   `/run/postgresql`, `/var/run/postgresql` or `/tmp`, else `localhost`; port 5432.
    /// - `user`, `password`, `dbname` (`PGUSER`, `PGPASSWORD`, `PGDATABASE`): the system's user,
    ///   none, the user's name.
    /// - `sslmode` (`PGSSLMODE`): `prefer`. `require` encrypts, `verify-ca` checks who signed the
    ///   certificate, `verify-full` also checks its name.
    /// - `sslrootcert`, `sslcrl`, `sslcert`, `sslkey` (`PGSSLROOTCERT`, `PGSSLCRL`, `PGSSLCERT`,
    ///   `PGSSLKEY`): `root.crt`, `root.crl`, `postgresql.crt` and `postgresql.key` in
    ///   `~/.postgresql`, if they exist. The authorities to trust, the certificates that they have
    ///   revoked, the client's certificate and its key.
    /// - `sslcrldir` (`PGSSLCRLDIR`): a folder of revocation lists, made by `openssl rehash`.
    /// - `sslcertmode` (`PGSSLCERTMODE`): `allow`. `disable` sends no certificate.
    /// - `sslnegotiation`, `channel_binding` (`PGSSLNEGOTIATION`, `PGCHANNELBINDING`): `postgres`,
    ///   `prefer`.
    /// - `target_session_attrs`, `load_balance_hosts` (`PGTARGETSESSIONATTRS`,
    ///   `PGLOADBALANCEHOSTS`): `any` (or `read-write`, `read-only`), `disable`.
    /// - `connect_timeout` (`PGCONNECT_TIMEOUT`): 10 s for each host, until the end of the login; 0
    ///   means no limit.
    /// - `options`, `application_name` (`PGOPTIONS`, `PGAPPNAME`): none, `trunkline`.
    /// - `keepalives`, `keepalives_idle`, `keepalives_interval`, `keepalives_retries`: the defaults
    ///   of `tokio_postgres`. `tcp_user_timeout`: the system's default; milliseconds, as in libpq.
    /// - `answer_timeout`: none. The number of seconds after which a server that is silent while a
    ///   reply is due is given up.
    /// - `max_answer`: 2 GiB. The maximum size of a reply to one of your own statements, for
    ///   example `64MB`. Dequeues request only as many messages as fit.
    /// - `prepared_statements`: `on`. Use `off` for poolers in transaction mode; there the role's
    ///   default isolation level must be `read committed`.
    /// - `schema` (`TRUNKLINE_SCHEMA`): `trunkline`. The schema of the queues, 1 to 14 characters
    ///   of a-z, 0-9 and `_`.
    ///
    /// An empty variable counts as not set. An empty setting in the string (`options=''`) counts as
    /// set, and keeps its default. All settings are read once, in this call; later connections use
    /// the same settings.
    ///
    /// A handle may outlive its runtime: connections end with the runtime that opened them, and are
    /// opened again when needed. The connections of a current-thread runtime make no progress while
    /// that runtime is not running.
    ///
    /// The string, a variable or a line of a service file is not valid; the error names it. A named
    /// service is not found. Or the database cannot be reached now: only connections that are lost
    /// later are retried.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::to(Target::parse(url)?).await
    }

    /// Connects like [`Db::connect`], in a given environment. `environment` returns the value of a
    /// variable, including `HOME`; the variables of the process are not read. With `|_| None` only
    /// the string is used.
    ///
    /// # Errors
    /// The errors of [`Db::connect`].
    pub async fn connect_with(url: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self> {
        Self::to(Target::parse_in(url, environment)?).await
    }

    /// Connects to a server that is one of several with the same queues.
    pub(crate) async fn to_one_of_several(target: Target) -> Result<Self> {
        Self::to(target.of_several()).await
    }

    /// Describes the database in readable form, without secrets.
    pub(crate) fn address(&self) -> String {
        self.0.target.place()
    }

    async fn to(target: Target) -> Result<Self> {
        let main: [Slot; SLOTS] = Default::default();
        // This also shows whether the database can be reached. The first statement, which reads the
        // description of a queue, uses this class.
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
            lonely: LonelyTrips::default(),
            advice: LonelyAdvice::default(),
            idle: SyncMutex::default(),
            attached: SyncMutex::default(),
        }));
        Ok(db)
    }

    /// Returns the name of the schema that contains the queues: `trunkline`, unless the connection
    /// string names another (`schema=…`).
    #[must_use]
    pub fn schema_name(&self) -> &str {
        self.0.schema.name()
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.0.schema
    }

    /// Returns the value of type `T` that all clones of this handle share.
    pub(crate) fn attached<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut attached = self.0.attached.lock().unwrap_or_else(PoisonError::into_inner);
        let value = attached.entry(TypeId::of::<T>()).or_insert_with(|| Arc::<T>::default());
        value.clone().downcast().unwrap_or_default()
    }

    /// Returns the maximum size of a reply in bytes: `max_answer`.
    pub(crate) fn answer_bytes(&self) -> usize {
        self.0.target.limits.answer_bytes
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.0.listener
    }

    /// Creates a statement that does not concern a single queue.
    pub(crate) fn statement(&self, name: &'static str, text: &str) -> Sql {
        Sql::new(name, &self.0.schema.fill(text))
    }

    /// Returns the less busy connection of a class. If it was lost, it is replaced.
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
            // Other connections may lead to the same server, which may be gone or unresponsive.
            // Each would detect that separately, and just as late.
            Some(_) => {
                self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.0.listener.doubt();
            }
            None => {}
        }
        if let Some((_, error)) = place.refused.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(error.clone()); // another call has retried while this one waited
        }
        let opened = self.open(class, Use::Common, slot.load.clone()).await;
        place.session = opened.as_ref().ok().cloned();
        place.refused = opened.as_ref().err().map(|error| (Instant::now(), error.clone()));
        opened
    }

    /// Returns a connection for a single statement of the user.
    pub(crate) async fn session_for_one(&self) -> Result<Arc<Session>> {
        let is_alone = self.0.run.iter().all(|slot| slot.load.load(Ordering::Relaxed) == 0);
        self.0.lonely.count(is_alone, &self.0.advice);
        self.session(Class::Run).await
    }

    pub(crate) fn advice(&self) -> &LonelyAdvice {
        &self.0.advice
    }

    /// Opens a connection. Retries, unless another server can accept the writes.
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

    /// Runs one statement that may safely run twice. If the connection is lost, the statement is
    /// sent once more on a new one.
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

    /// Returns the statement that begins a transaction at `read committed`, the isolation level
    /// that `skip locked` needs.
    pub(crate) fn begin_text(&self) -> &'static str {
        match self.0.target.keeps_statements {
            true => "begin", // uses the session's isolation level
            false => "begin isolation level read committed",
        }
    }

    /// Returns true if a copy needs its own connection. After a copy, pgbouncer before 1.22.1 loses
    /// count of the replies that are still due, and would send them to another client.
    pub(crate) fn copies_alone(&self) -> bool {
        !self.0.target.keeps_statements
    }

    /// Returns a connection for one transaction. Pass it to [`Db::give_back`] when no transaction
    /// is open on it.
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

    /// Subscribes to a channel until the subscription is dropped.
    pub(crate) fn subscribe(&self, channel: &str) -> Subscription {
        self.0.listener.subscribe(channel, None)
    }

    /// Subscribes to a channel, and also returns the texts of the notifications.
    pub(crate) fn subscribe_texts(&self, channel: &str) -> (Subscription, mpsc::UnboundedReceiver<String>) {
        let (texts, receiver) = mpsc::unbounded_channel();
        (self.0.listener.subscribe(channel, Some(texts)), receiver)
    }
}
