//! One connection of the library's own statements: connected with patience, statements prepared
//! once, every exchange traced.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_postgres::{config::TargetSessionAttrs, types::ToSql};
use tracing::{debug, trace};

use crate::{
    error::{Error, Kind, Result},
    postgres::{
        sql::Sql,
        target::Target,
        wire::{Bound, Connection, Group, InFlight, Prepared, Reply, Row, Use, WireError},
    },
};

/// How long a call waits for a database that went away, in all.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The same where the connection string names several hosts: callers wait for the promotion of one
/// of them.
const LONGEST_AMONG_HOSTS: Duration = Duration::from_millis(250);

/// `skip locked` wants to see what was committed, whatever the database's default is.
const SET_UP: &str = concat!(
    include_str!("../../../sql/statements/connect.sql"),
    ";\n",
    include_str!("../../../sql/statements/keep_memory.sql")
);

/// A connection, for any number of callers at the same time.
pub(crate) struct Session {
    connection: Connection,
    /// Statements on their way: the load by which a connection is chosen.
    load: Arc<AtomicUsize>,
    /// The server shall take writes.
    writes: bool,
    /// It takes none any more: another may have its place.
    demoted: AtomicBool,
}

/// Connects, again and again while the database is starting, restarting or out of connections.
pub(super) async fn patiently<T, F: Future<Output = Result<T>>>(
    target: &Target,
    mut connect: impl FnMut() -> F,
) -> Result<T> {
    let longest = if target.config.get_hosts().len() > 1 { LONGEST_AMONG_HOSTS } else { LONGEST_PAUSE };
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match connect().await {
            Err(error) if error.may_pass() && began.elapsed() + pause < PATIENCE => {
                debug!(%error, ?pause, "database unreachable; retrying");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(longest);
            }
            outcome => return outcome,
        }
    }
}

impl Session {
    /// Connects with patience.
    pub async fn open(target: &Target, usage: Use, load: Arc<AtomicUsize>) -> Result<Self> {
        patiently(target, || Self::open_now(target, usage, load.clone())).await
    }

    /// Connects once.
    pub async fn open_now(target: &Target, usage: Use, load: Arc<AtomicUsize>) -> Result<Self> {
        let writes = target.config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite;
        let connection = Connection::open(target, usage).await?;
        let session = Self { connection, load, writes, demoted: AtomicBool::new(false) };
        if target.keeps_statements {
            target.in_time(1, session.batch("connect", SET_UP)).await?;
        } // else a pooler gives every transaction another connection, which settings of ours would only soil
        Ok(session)
    }

    /// Prepares a statement for the next use.
    pub async fn ready(&self, sql: &Sql) -> Result<()> {
        self.connection.prepare(&sql.text).await.map(drop).map_err(|failure| told(sql.name, failure))
    }

    /// Runs one statement, committed when this returns `Ok` outside a transaction.
    pub async fn query(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.query_rows(sql, params, None).await
    }

    /// As [`Session::query`], for a statement that has at most `most` rows, where that is known.
    pub async fn query_rows(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)], most: Option<usize>) -> Result<Vec<Row>> {
        Ok(self.query_together(&[(sql, params)], most).await?.remove(0))
    }

    /// Runs statements in one round trip and one transaction, if none is open; returns the rows of
    /// each. All of them together have at most `most` rows, where that is known.
    pub async fn query_together(
        &self,
        statements: &[(&Sql, &[&(dyn ToSql + Sync)])],
        most: Option<usize>,
    ) -> Result<Vec<Vec<Row>>> {
        let began = Instant::now();
        let name = statements.last().map_or("nothing", |(sql, _)| sql.name);
        let texts = statements.iter().map(|(sql, _)| &*sql.text);
        let outcome = self
            .together(texts, |prepared| {
                let mut group = Group::new();
                // What has taken effect is kept: its rows may be all that is left of the messages.
                group.bound = Bound { rows: most, whole: !statements.iter().all(|(sql, _)| sql.only_reads) };
                for (prepared, (_, params)) in prepared.iter().zip(statements) {
                    group.push(prepared, params)?;
                }
                Ok(group)
            })
            .await;
        match &outcome {
            Ok(_) => trace!(sql = name, elapsed = ?began.elapsed(), "statement"),
            Err(error) => debug!(sql = name, %error, elapsed = ?began.elapsed(), "statement failed"),
        }
        let (answer, prepared) = outcome.map_err(|failure| told(name, failure))?;
        Ok(prepared.iter().enumerate().map(|(place, prepared)| answer.rows(place, &prepared.columns)).collect())
    }

    /// Prepares statements, where they are not, and runs what `gather` makes of them under one
    /// Sync. Once more, where what was prepared is no longer so: nothing has happened then.
    pub async fn together<'a>(
        &self,
        texts: impl Iterator<Item = &'a str> + Clone,
        gather: impl FnMut(&[Prepared]) -> Result<Group, WireError>,
    ) -> Result<(Reply, Vec<Prepared>), WireError> {
        self.exchange(texts, gather, None::<fn(&[Prepared], &Reply, usize, usize)>).await
    }

    /// As [`Session::together`], for a reply that is read in parts: see
    /// [`Incoming::parts`](crate::postgres::wire::Incoming::parts). At a second try the places
    /// begin again.
    pub async fn in_parts<'a>(
        &self,
        texts: impl Iterator<Item = &'a str> + Clone,
        gather: impl FnMut(&[Prepared]) -> Result<Group, WireError>,
        read: impl FnMut(&[Prepared], &Reply, usize, usize),
    ) -> Result<(), WireError> {
        self.exchange(texts, gather, Some(read)).await.map(drop)
    }

    async fn exchange<'a>(
        &self,
        texts: impl Iterator<Item = &'a str> + Clone,
        mut gather: impl FnMut(&[Prepared]) -> Result<Group, WireError>,
        mut read: Option<impl FnMut(&[Prepared], &Reply, usize, usize)>,
    ) -> Result<(Reply, Vec<Prepared>), WireError> {
        let mut outdated = None;
        loop {
            let underway = InFlight::new(&self.load);
            let mut prepared = Vec::with_capacity(texts.size_hint().0);
            for (place, text) in texts.clone().enumerate() {
                let one = self.connection.prepare(text).await;
                // In an open transaction that the first try has aborted, the first failure is the
                // one to tell.
                prepared.push(one.map_err(|failure| first_of(outdated.as_ref(), failure.of_statement(place, text)))?);
            }
            let mut group = gather(&prepared)?;
            group.load = Some(underway);
            self.connection.room().await;
            let outcome = match &mut read {
                None => self.connection.send(group).await,
                Some(read) => {
                    self.connection
                        .send_in_parts(group)
                        .parts(|reply, at, place| read(&prepared, reply, at, place))
                        .await
                }
            };
            match outcome {
                // A queue was dropped and created again, or a pooler gave us another server
                // connection.
                Err(failure) if outdated.is_none() && failure.is_outdated() => {
                    outdated = Some(failure);
                    texts.clone().for_each(|text| self.connection.forget(text));
                }
                Err(failure) if self.writes && failure.is_read_only() => {
                    self.demoted.store(true, Ordering::Relaxed);
                    return Err(failure);
                }
                outcome => {
                    let outcome = outcome.map_err(|failure| first_of(outdated.as_ref(), failure));
                    return outcome.map(|answer| (answer, prepared));
                }
            }
        }
    }

    /// The connection, for callers that build groups.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Several statements at once, without preparation: migrations and the like.
    pub async fn batch(&self, what: &'static str, text: &str) -> Result<()> {
        self.connection.batch(text).await.map_err(|failure| told(what, failure))
    }

    /// The type of a statement's first column.
    pub async fn column_type(&self, sql: &Sql) -> Result<Option<tokio_postgres::types::Type>> {
        let prepared = self.connection.prepare(&sql.text).await.map_err(|failure| told(sql.name, failure))?;
        Ok(prepared.columns.columns.first().map(|(_, ty)| ty.clone()))
    }

    pub fn is_closed(&self) -> bool {
        self.demoted.load(Ordering::Relaxed) || self.connection.is_closed()
    }
}

/// The failure that says why: a second one may only follow from the first.
fn first_of(first: Option<&WireError>, second: WireError) -> WireError {
    first.filter(|_| second.only_follows()).cloned().unwrap_or(second)
}

/// The outcome of a statement that was sent: a reply of the server, or none.
fn told(what: &'static str, failure: WireError) -> Error {
    match failure {
        // The last words of a backend: what it was doing may have been committed before it died.
        WireError::Server { error, .. } | WireError::Lost(Some(error)) if error.is_fatal() => {
            Error::new(Kind::Unknown { what, source: Box::new(error) })
        }
        WireError::Server { error, .. } => Error::of_server(what, error),
        WireError::LeftOpen => Error::new(Kind::LeftOpen(what.to_owned())),
        WireError::TooLarge(limit) => Error::new(Kind::TooMuch { text: what.to_owned(), limit }),
        WireError::TooManyRows(_) => Error::new(Kind::Answer(failure.to_string().into())),
        WireError::Encode(cause) => Error::invalid(format!("{what}: a parameter cannot be written: {cause}")),
        lost => Error::new(Kind::Unknown { what, source: Box::new(lost) }),
    }
}

/// The same for a statement of the user's, the first of which has that place in its pipeline.
pub(crate) fn told_to_user(first: usize, text: &str, failure: WireError) -> Error {
    match failure {
        WireError::Server { error, .. } if error.is_fatal() => told("a statement", WireError::Lost(Some(error))),
        WireError::Server { statement, text, error } => {
            Error::new(Kind::Statement { place: first + statement, text, error })
        }
        WireError::Encode(cause) => Error::new(Kind::Parameters { text: text.to_owned(), cause }),
        WireError::LeftOpen => Error::new(Kind::LeftOpen(text.to_owned())),
        WireError::TooLarge(limit) => Error::new(Kind::TooMuch { text: text.to_owned(), limit }),
        WireError::TooManyRows(_) => {
            Error::new(Kind::Rows { text: text.to_owned(), cause: failure.to_string().into() })
        }
        lost => told("a statement", lost),
    }
}
