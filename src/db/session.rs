//! One connection: connected with patience, statements prepared once, every exchange traced.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_postgres::{Client, Connection, Row, Socket, Statement, error::SqlState, types::ToSql};
use tracing::{debug, trace, warn};

use super::tls::Target;
use crate::{
    error::{Error, Kind, Result, is_broken},
    sql::Sql,
};

/// How long a call waits for a database that went away, in all.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub(crate) type TlsStream = <super::tls::MakeTls as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream;

/// A connection and the statements that it has prepared.
pub(crate) struct Session {
    pub client: Client,
    /// A statement was answered by the connection's end, which the client may not have noticed yet.
    broken: AtomicBool,
    /// Statements on their way, counted for whoever chooses between connections.
    load: Arc<AtomicUsize>,
    prepared: Mutex<HashMap<Arc<str>, Statement>>,
}

/// Connects once, without patience.
pub(crate) async fn connect(target: &Target) -> Result<(Client, Connection<Socket, TlsStream>)> {
    target.config.connect(target.tls.clone()).await.map_err(|e| Error::new(Kind::Connect(e)))
}

/// Not a wrong password or a missing database, but something that passes.
fn may_pass(error: &Error) -> bool {
    error.sqlstate().is_none_or(|code| {
        [
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
        ]
        .contains(code)
    })
}

impl Session {
    /// Connects, again and again while the database is starting, restarting or out of connections.
    pub async fn open(target: &Target, load: Arc<AtomicUsize>) -> Result<Self> {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match Self::open_now(target, load.clone()).await {
                Err(error) if may_pass(&error) && began.elapsed() + pause < PATIENCE => {
                    debug!(%error, ?pause, "the database cannot be reached; trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                outcome => return outcome,
            }
        }
    }

    /// Connects once, and drives the connection in a task of its own.
    pub async fn open_now(target: &Target, load: Arc<AtomicUsize>) -> Result<Self> {
        let (client, connection) = connect(target).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                warn!(%error, "a connection to the database broke");
            }
        });
        // `skip locked` wants to see what was committed, whatever the database's default is.
        let prepared = client.batch_execute(include_str!("../../sql/connect.sql")).await;
        prepared.map_err(|error| Error::new(Kind::Connect(error)))?;
        Ok(Self { client, broken: AtomicBool::new(false), load, prepared: Mutex::default() })
    }

    async fn prepare(&self, sql: &Sql) -> Result<Statement, tokio_postgres::Error> {
        let known = self.prepared.lock().unwrap_or_else(PoisonError::into_inner).get(&sql.text).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(&sql.text).await?;
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).insert(sql.text.clone(), statement.clone());
        Ok(statement)
    }

    /// Prepares a statement for the next use.
    pub async fn ready(&self, sql: &Sql) -> Result<()> {
        self.prepare(sql).await.map(drop).map_err(|error| Error::of_statement(sql.name, error))
    }

    /// Runs one statement, committed when this returns `Ok` outside a transaction.
    pub async fn query(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let began = Instant::now();
        let outcome = match self.query_once(sql, params).await {
            // A queue was dropped and created anew, or a pooler gave us another server connection.
            Err(error)
                if error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED)
                    || error.code() == Some(&SqlState::INVALID_SQL_STATEMENT_NAME) =>
            {
                self.prepared.lock().unwrap_or_else(PoisonError::into_inner).remove(&sql.text);
                self.query_once(sql, params).await
            }
            outcome => outcome,
        };
        match &outcome {
            Ok(rows) => trace!(sql = sql.name, rows = rows.len(), elapsed = ?began.elapsed(), "statement"),
            Err(error) => {
                debug!(sql = sql.name, %error, elapsed = ?began.elapsed(), "statement failed");
                self.broken.fetch_or(is_broken(error), Ordering::Relaxed);
            }
        }
        outcome.map_err(|error| Error::of_statement(sql.name, error))
    }

    async fn query_once(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let _underway = Underway::new(&self.load);
        let statement = self.prepare(sql).await?;
        self.client.query(&statement, params).await
    }

    /// Several statements at once, without preparation: migrations and the like.
    pub async fn batch(&self, what: &'static str, text: &str) -> Result<()> {
        self.client.batch_execute(text).await.map_err(|error| Error::of_statement(what, error))
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed() || self.broken.load(Ordering::Relaxed)
    }
}

/// Counts a statement while it is on its way, or its caller waits.
struct Underway<'a>(&'a AtomicUsize);

impl<'a> Underway<'a> {
    fn new(load: &'a AtomicUsize) -> Self {
        load.fetch_add(1, Ordering::Relaxed);
        Self(load)
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
