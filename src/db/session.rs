//! One connection of the library's own statements: connected with patience, statements prepared once, every exchange traced.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_postgres::{error::SqlState, types::ToSql};
use tracing::{debug, trace};

use crate::{
    error::{Error, Kind, Result},
    sql::Sql,
    target::Target,
    wire::{Connection, Failure, Row},
};

/// How long a call waits for a database that went away, in all.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// `skip locked` wants to see what was committed, whatever the database's default is.
pub(super) const SET_UP: &str = include_str!("../../sql/connect.sql");

/// A connection, for any number of callers at the same time.
pub(crate) struct Session {
    connection: Connection,
    /// Statements on their way, counted for whoever chooses between connections.
    load: Arc<AtomicUsize>,
}

/// Connects, again and again while the database is starting, restarting or out of connections.
pub(super) async fn patiently<T, F: Future<Output = Result<T>>>(mut connect: impl FnMut() -> F) -> Result<T> {
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match connect().await {
            Err(error) if error.may_pass() && began.elapsed() + pause < PATIENCE => {
                debug!(%error, ?pause, "the database cannot be reached; trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

impl Session {
    /// Connects with patience.
    pub async fn open(target: &Target, load: Arc<AtomicUsize>) -> Result<Self> {
        patiently(|| Self::open_now(target, load.clone())).await
    }

    /// Connects once.
    pub async fn open_now(target: &Target, load: Arc<AtomicUsize>) -> Result<Self> {
        let session = Self { connection: Connection::open(target).await?, load };
        session.batch("connect", SET_UP).await?;
        Ok(session)
    }

    /// Prepares a statement for the next use.
    pub async fn ready(&self, sql: &Sql) -> Result<()> {
        self.connection.columns(&sql.text).await.map(drop).map_err(|failure| told(sql.name, failure))
    }

    /// Runs one statement, committed when this returns `Ok` outside a transaction.
    pub async fn query(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let began = Instant::now();
        let _underway = Underway::new(&self.load);
        let outcome = match self.connection.query(&sql.text, params).await {
            // A queue was dropped and created anew, or a pooler gave us another server connection.
            Err(failure) if is_outdated(&failure) => {
                self.connection.forget(&sql.text);
                self.connection.query(&sql.text, params).await
            }
            outcome => outcome,
        };
        match &outcome {
            Ok(rows) => trace!(sql = sql.name, rows = rows.len(), elapsed = ?began.elapsed(), "statement"),
            Err(error) => debug!(sql = sql.name, %error, elapsed = ?began.elapsed(), "statement failed"),
        }
        outcome.map_err(|failure| told(sql.name, failure))
    }

    /// Several statements at once, without preparation: migrations and the like.
    pub async fn batch(&self, what: &'static str, text: &str) -> Result<()> {
        self.connection.batch(text).await.map_err(|failure| told(what, failure))
    }

    /// The type of a statement's first column.
    pub async fn column_type(&self, sql: &Sql) -> Result<Option<tokio_postgres::types::Type>> {
        let columns = self.connection.columns(&sql.text).await;
        let (_, columns) = columns.map_err(|failure| told(sql.name, failure))?;
        Ok(columns.columns.first().map(|(_, ty)| ty.clone()))
    }

    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }
}

/// What a statement that was sent came back with: an answer of the server, or none.
fn told(what: &'static str, failure: Failure) -> Error {
    match failure {
        // The last words of a backend: what it was doing may have been committed before it died.
        Failure::Server { error, .. } | Failure::Lost(Some(error)) if error.is_fatal() => {
            Error::new(Kind::Unknown { what, source: Box::new(error) })
        }
        Failure::Server { error, .. } => Error::new(Kind::Server(error)),
        Failure::Encode(cause) => Error::invalid(format!("{what}: a parameter cannot be written: {cause}")),
        lost => Error::new(Kind::Unknown { what, source: Box::new(lost) }),
    }
}

/// The statement was prepared for something that is no longer so; it was not run.
fn is_outdated(failure: &Failure) -> bool {
    let Failure::Server { error, .. } = failure else { return false };
    [SqlState::FEATURE_NOT_SUPPORTED, SqlState::INVALID_SQL_STATEMENT_NAME].contains(&error.code)
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
