//! The handle of a database, through which all code accesses the database.

mod error_mapping;
mod session;
mod slot;
mod slots;
mod lonely;
mod idle;
mod cancel;
mod identity;
mod schema;
pub(crate) mod lock_wait;
mod proof;
mod channels;
mod announced;
mod listen;

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex as SyncMutex, PoisonError, Weak},
};

use tokio::{
    sync::{Semaphore, mpsc},
    time::Instant,
};
use tokio_postgres::types::ToSql;

pub(crate) use self::{
    channels::Heard,
    error_mapping::told_to_user,
    listen::{Listener, Subscription},
    lonely::{LonelyAdvice, LonelyTrips},
    session::Session,
};
use self::{session::Waits, slot::Slot};
use crate::{
    error::Result,
    postgres::{
        sql::{Schema, Sql},
        target::Target,
        wire::{Row, Use},
    },
};

const SLOTS: usize = 2;
/// The maximum number of statements that wait for locks on connections of their own.
const LOCK_WAITS: usize = 4;

/// A handle to a database in which Trunkline is installed.
///
/// A handle is cheap to clone, and all clones share the same connections. There are at most two
/// connections for enqueues, two for dequeues, two for your own statements, and one that listens.
/// Each connection is opened when it is first needed. A lost connection is replaced, with backoff.
/// Statements are pipelined, so any number of callers can share a connection.
///
/// Each open transaction uses its own connection. So do an extension of leases while the two
/// connections for dequeues wait for locks, and up to four statements that wait for a lock for more
/// than half a second, or that alter, limit or drop a queue. Up to four of these connections stay
/// open for later use. While consumers only wait, connections that have been unused for half a
/// minute are closed, except for one connection and the one that listens.
#[derive(Clone)]
pub struct Db(Arc<Inner>);

struct Inner {
    target: Target,
    store: [Slot; SLOTS],
    main: [Slot; SLOTS],
    run: [Slot; SLOTS],
    lonely: LonelyTrips,
    advice: LonelyAdvice,
    idle: SyncMutex<Vec<(Instant, Arc<Session>)>>,
    /// All connections except the one that listens, for [`Db::cancel_running`].
    opened: SyncMutex<Vec<Weak<Session>>>,
    /// Permits one extra connection at a time, while the main connections are blocked.
    apart: Semaphore,
    /// Permits the connections for statements that wait for locks.
    waiting: Arc<Semaphore>,
    /// Permits for statements that wait for locks and are repeated on shared connections.
    again: Arc<Semaphore>,
    listener: Listener,
    /// The time of the last [`Db::rest`] that took effect.
    rested: SyncMutex<Instant>,
    schema: Schema,
    attached: SyncMutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

/// The class of a connection. Each class has its own connections, so that its statements do not
/// wait for statements of another class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Connections for short writes, such as enqueues. If another server could accept the writes,
    /// the library does not retry a failed connection.
    Store,
    /// Connections for the library's other statements. The first one is opened first and stays
    /// open.
    Main,
    /// Connections for the user's own statements.
    Run,
}

impl fmt::Debug for Db {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Db").field("hosts", &self.0.target.config.get_hosts()).finish_non_exhaustive()
    }
}

impl Db {
    /// Connects to a database. `url` is a URL (`postgres://user@host/database?sslmode=verify-full`)
    /// or a list of settings (`host=/run/postgresql dbname=app`), with the same meaning as in
    /// libpq. An empty string is valid. A setting that is missing is taken from the first of these
    /// sources that contains it:
    ///
    /// 1. a service: `service=NAME` or `PGSERVICE`, looked up in `PGSERVICEFILE` or
    ///    `~/.pg_service.conf`, then in `PGSYSCONFDIR/pg_service.conf`;
    /// 2. the environment variables listed below;
    /// 3. for the password only, the file `passfile` or `PGPASSFILE`, or else `~/.pgpass`. The
    ///    password is looked up for each host separately. The file is ignored, with a warning, if
    ///    other users may read it.
    ///
    /// The settings, their environment variables and their defaults are:
    ///
    /// - `host`, `hostaddr`, `port` (`PGHOST`, `PGHOSTADDR`, `PGPORT`): the socket in
    ///   `/run/postgresql`, `/var/run/postgresql` or `/tmp`, else `localhost`; port 5432.
    /// - `user`, `password`, `dbname` (`PGUSER`, `PGPASSWORD`, `PGDATABASE`): the system's user,
    ///   none, the user's name.
    /// - `sslmode` (`PGSSLMODE`): `prefer`. `require` encrypts, `verify-ca` also checks who signed
    ///   the server's certificate, and `verify-full` also checks the server's name.
    /// - `sslrootcert`, `sslcrl`, `sslcert`, `sslkey` (`PGSSLROOTCERT`, `PGSSLCRL`, `PGSSLCERT`,
    ///   `PGSSLKEY`): `root.crt`, `root.crl`, `postgresql.crt` and `postgresql.key` in
    ///   `~/.postgresql`, if they exist. They contain the trusted authorities, their revocation
    ///   lists, the client's certificate and the client's key. As in libpq, the default `root.crl`
    ///   applies only with a file of trusted authorities and without `sslcrldir`.
    /// - `sslcrldir` (`PGSSLCRLDIR`): none. A directory that `openssl rehash` has prepared.
    /// - `sslcertmode` (`PGSSLCERTMODE`): `allow`. `disable` sends no certificate.
    /// - `ssl_min_protocol_version`, `ssl_max_protocol_version` (`PGSSLMINPROTOCOLVERSION`,
    ///   `PGSSLMAXPROTOCOLVERSION`): `TLSv1.2`, `TLSv1.3`. No other versions are supported.
    /// - `sslsni` (`PGSSLSNI`): `1`. `0` does not send the server's name unencrypted.
    /// - `sslnegotiation`, `channel_binding` (`PGSSLNEGOTIATION`, `PGCHANNELBINDING`): `postgres`,
    ///   `prefer`. `direct` needs `sslmode=require`, `verify-ca` or `verify-full`.
    /// - `requiressl` (`PGREQUIRESSL`): none. `1` means `sslmode=require`.
    /// - `target_session_attrs`, `load_balance_hosts` (`PGTARGETSESSIONATTRS`,
    ///   `PGLOADBALANCEHOSTS`): `any` (or `read-write`, `read-only`), `disable`.
    /// - `connect_timeout` (`PGCONNECT_TIMEOUT`): 10 s for each host, including the login. 0 means
    ///   no limit.
    /// - `options`, `application_name` (`PGOPTIONS`, `PGAPPNAME`): none, `trunkline`.
    /// - `keepalives`, `keepalives_idle`, `keepalives_interval`, `keepalives_count`: the defaults
    ///   of `tokio_postgres`. `tcp_user_timeout`: the system's default; milliseconds, as in libpq.
    /// - `answer_timeout`: none. A connection is closed if a reply is due and the server sends
    ///   nothing for this number of seconds.
    /// - `max_answer`: 2 GiB. The maximum size of a reply to one of your own statements, for
    ///   example `64MB`. Dequeues request only as many messages as fit.
    /// - `prepared_statements`: `on`. Use `off` behind a pooler in transaction mode. The role's
    ///   default isolation level must then be `read committed`.
    /// - `schema` (`TRUNKLINE_SCHEMA`): `trunkline`. The schema of the queues, 1 to 14 characters
    ///   of a-z, 0-9 and `_`. It begins with a letter, but not with `pg_`, and is no reserved word.
    ///
    /// The library ignores `client_encoding`, `fallback_application_name`, `sslcompression`,
    /// `max_protocol_version` and the settings of Kerberos (`gssencmode`, `gsslib`,
    /// `gssdelegation`, `krbsrvname`), and their variables. It refuses `gssencmode=require`
    /// (`PGGSSENCMODE`), `require_auth` (`PGREQUIREAUTH`), `requirepeer` (`PGREQUIREPEER`),
    /// `min_protocol_version` above 3.0 (`PGMINPROTOCOLVERSION`), and settings that this list does
    /// not contain. A refused variable does not matter if the string sets the setting to nothing.
    /// The variables `PGTZ`, `PGDATESTYLE` and `PGGEQO` are ignored.
    ///
    /// An empty environment variable counts as not set. An empty setting in the string
    /// (`options=''`) counts as set, and has the default value. All settings are read once, in this
    /// call. Later connections use the same settings.
    ///
    /// A handle may outlive its runtime. A connection ends with the runtime that opened it, and is
    /// opened again when it is needed. The connections of a current-thread runtime make progress
    /// only while that runtime is running.
    ///
    /// # Errors
    /// An error that names the string, the environment variable or the line of a service file that
    /// is not valid. An error if a named service is not found. An error if the database cannot be
    /// reached: this method does not retry, but lost connections are retried later.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::to(Target::parse(url)?).await
    }

    /// Connects like [`Db::connect`], with the given environment variables. `environment` returns
    /// the value of a variable, including `HOME`. The variables of the process are not read. With
    /// `|_| None`, only the string is used.
    ///
    /// # Errors
    /// The errors of [`Db::connect`].
    pub async fn connect_with(url: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Self> {
        Self::to(Target::parse_in(url, environment)?).await
    }

    /// Connects to one of several servers that have the same queues.
    pub(crate) async fn to_one_of_several(target: Target) -> Result<Self> {
        Self::to(target.of_several()).await
    }

    /// Returns the host, port and database name, without secrets.
    pub(crate) fn address(&self) -> String {
        self.0.target.place()
    }

    async fn to(target: Target) -> Result<Self> {
        let main: [Slot; SLOTS] = Default::default();
        // Opens one connection, to check that the database can be reached. It belongs to the main
        // class, because the first statement of a program usually describes a queue, and so uses
        // this class.
        let first = Session::open_now(&target, Waits::Briefly, Use::Common, main[0].load.clone()).await?;
        let (first, listener) = (Arc::new(first), Listener::new(target.clone()));
        first.doubt_with(listener.doubts());
        main[0].place.lock().await.session = Some(first.clone());
        let schema = target.schema.clone();
        Ok(Self(Arc::new(Inner {
            schema,
            listener,
            rested: SyncMutex::new(Instant::now()),
            target,
            store: Default::default(),
            main,
            run: Default::default(),
            lonely: LonelyTrips::default(),
            advice: LonelyAdvice::default(),
            idle: SyncMutex::default(),
            opened: SyncMutex::new(vec![Arc::downgrade(&first)]),
            apart: Semaphore::new(1),
            waiting: Arc::new(Semaphore::new(LOCK_WAITS)),
            again: Arc::new(Semaphore::new(1)),
            attached: SyncMutex::default(),
        })))
    }

    /// Returns the name of the schema that contains the queues. The name is `trunkline`, unless the
    /// connection string sets `schema`.
    #[must_use]
    pub fn schema_name(&self) -> &str {
        self.0.schema.name()
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.0.schema
    }

    /// Returns the value of type `T` that all clones of this handle share. Creates the value at the
    /// first call.
    pub(crate) fn attached<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut attached = self.0.attached.lock().unwrap_or_else(PoisonError::into_inner);
        let value = attached.entry(TypeId::of::<T>()).or_insert_with(|| Arc::<T>::default());
        value.clone().downcast().unwrap_or_default()
    }

    pub(crate) fn answer_bytes(&self) -> usize {
        self.0.target.limits.answer_bytes
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.0.listener
    }

    /// Creates a statement that does not belong to a particular queue.
    pub(crate) fn statement(&self, name: &'static str, text: &str) -> Sql {
        Sql::new(name, &self.0.schema.fill(text))
    }

    pub(crate) async fn session_for_one(&self) -> Result<Arc<Session>> {
        let is_alone = self.0.run.iter().all(|slot| slot.load.running() == 0);
        self.0.lonely.count(is_alone, &self.0.advice);
        self.session(Class::Run).await
    }

    pub(crate) fn advice(&self) -> &LonelyAdvice {
        &self.0.advice
    }

    /// Runs one statement that may safely run twice. If the connection is lost, sends the statement
    /// once more on a new connection.
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

    /// Returns the statement that begins a transaction at `read committed`. The queue's `skip
    /// locked` statements require this isolation level.
    pub(crate) fn begin_text(&self) -> &'static str {
        match self.0.target.keeps_statements {
            true => "begin", // setting up the session has made read committed its default
            false => "begin isolation level read committed",
        }
    }

    /// Returns true if a copy needs its own connection. After a copy, pgbouncer before 1.22.1
    /// miscounts the replies that are still due, and would send them to another client.
    pub(crate) fn copies_alone(&self) -> bool {
        !self.0.target.keeps_statements
    }

    /// Returns a connection for one transaction. When no transaction is open on the connection any
    /// more, pass it to [`Db::give_back`].
    pub(crate) async fn own_session(&self) -> Result<Arc<Session>> {
        self.own_session_for(Class::Run).await
    }

    pub(crate) async fn own_session_for(&self, class: Class) -> Result<Arc<Session>> {
        match self.idle_session() {
            Some(session) => Ok(session),
            None => self.open(class, Use::Alone, Arc::default(), |_| true).await,
        }
    }

    pub(crate) fn subscribe(&self, channel: &str) -> Subscription {
        self.0.listener.subscribe(channel, None)
    }

    /// Subscribes to a channel. The receiver returns the payload of each notification.
    pub(crate) fn subscribe_texts(&self, channel: &str) -> (Subscription, mpsc::UnboundedReceiver<String>) {
        let (texts, receiver) = mpsc::unbounded_channel();
        (self.0.listener.subscribe(channel, Some(texts)), receiver)
    }
}

#[cfg(test)]
mod tests;
