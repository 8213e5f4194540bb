//! A connection for the library's own statements. It retries connecting, prepares statements, and
//! logs traces.

use std::{
    borrow::Cow,
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;
use tokio_postgres::{config::TargetSessionAttrs, types::ToSql};
use tracing::{debug, trace};

use super::error_mapping::{not_set_up, told};
use crate::{
    error::{Error, Result},
    postgres::{
        rows::{Rows, add_rows},
        sql::Sql,
        target::Target,
        wire::{Bound, Connection, Group, InFlight, Load, Prepared, Reply, Row, Use, WireError, Wrong},
    },
};

/// The maximum time that a call waits for an unreachable database.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The maximum pause if the connection string names several hosts. Callers may then be waiting for
/// one of the hosts to be promoted.
const LONGEST_AMONG_HOSTS: Duration = Duration::from_millis(250);

/// The statements that set up each session. They set the isolation level, because `skip locked`
/// must see the latest commits, and the database may have a different default.
const SET_UP: &str = concat!(
    include_str!("../../../sql/statements/connect.sql"),
    ";\n",
    include_str!("../../../sql/statements/keep_memory.sql")
);

/// The time for which the statements of a connection wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// The time that the server's settings contain.
    Long,
    /// At most half a second, because later statements of other callers wait behind them. Usual
    /// waits are shorter, such as that of a commit for other commits that notify.
    Briefly,
}

/// Returns the statement that limits the waits for locks. Behind a pooler it has no effect, because
/// the setting would reach other clients.
fn wait_briefly(process_id: i32) -> String {
    format!(
        "select pg_catalog.set_config('lock_timeout', '500ms', false)
         where pg_catalog.pg_backend_pid() operator(pg_catalog.=) {process_id}"
    )
}

pub(crate) struct Session {
    connection: Connection,
    /// The number of statements that are being sent or whose replies are due. Callers choose the
    /// connection with the lower load.
    load: Arc<Load>,
    /// True if the connection string requires a server that accepts writes.
    writes: bool,
    /// True if the server has stopped accepting writes, so that the connection must be replaced.
    demoted: AtomicBool,
    /// Wakes the check of the listening connection, which may lead to the same server.
    doubts: OnceLock<Arc<Notify>>,
}

pub(super) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::time::SystemTime::now())
}

/// Connects. Retries while the database starts, restarts or has no free connections, and `may_wait`
/// returns true.
async fn patiently<T, F: Future<Output = Result<T>>>(
    target: &Target,
    may_wait: impl Fn(&Error) -> bool,
    mut connect: impl FnMut() -> F,
) -> Result<T> {
    let longest = if target.config.get_hosts().len() > 1 { LONGEST_AMONG_HOSTS } else { LONGEST_PAUSE };
    let began = tokio::time::Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match connect().await {
            Err(error) if error.may_pass() && may_wait(&error) && began.elapsed() + pause < PATIENCE => {
                debug!(%error, ?pause, "database unreachable; retrying");
                // At random, so that processes that lost the same server do not return together.
                tokio::time::sleep(pause / 2 + pause.mul_f64(random() as f64 / u64::MAX as f64 / 2.0)).await;
                pause = (pause * 2).min(longest);
            }
            outcome => return outcome,
        }
    }
}

impl Session {
    pub async fn open(
        target: &Target,
        waits: Waits,
        usage: Use,
        load: Arc<Load>,
        may_wait: impl Fn(&Error) -> bool,
    ) -> Result<Self> {
        patiently(target, may_wait, || Self::open_now(target, waits, usage, load.clone())).await
    }

    pub async fn open_now(target: &Target, waits: Waits, usage: Use, load: Arc<Load>) -> Result<Self> {
        let writes = target.config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite;
        let connection = Connection::open(target, usage).await?;
        let session = Self { load, writes, ..Self::without_set_up(connection) };
        if target.keeps_statements {
            let set_up = match waits {
                Waits::Briefly => Cow::Owned(format!("{SET_UP};\n{}", wait_briefly(session.connection.process_id()))),
                Waits::Long => Cow::Borrowed(SET_UP),
            };
            let set_up = async { session.connection.batch(&set_up).await.map_err(not_set_up) };
            target.in_time(1, set_up).await?;
        } // behind a pooler, settings would leak to other clients
        Ok(session)
    }

    /// Creates a session with the settings of its role.
    pub fn without_set_up(connection: Connection) -> Self {
        let (demoted, doubts) = (AtomicBool::new(false), OnceLock::new());
        Self { connection, load: Arc::default(), writes: false, demoted, doubts }
    }

    pub async fn ready(&self, sql: &Sql) -> Result<()> {
        self.connection.prepare(&sql.text).await.map(drop).map_err(|failure| told(sql.name, failure))
    }

    /// Runs one statement. Outside a transaction, it is committed before this method returns.
    pub async fn query(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.query_rows(sql, params, None).await
    }

    /// Returns true if the server accepts no writes, as a standby does.
    pub async fn is_read_only(&self) -> Result<bool> {
        let rows = self.query(&Sql::new("is_read_only", "show transaction_read_only"), &[]).await?;
        Ok(rows.iter().any(|row| row.read::<&str>(0).is_ok_and(|read_only| read_only == "on")))
    }

    /// Runs a statement like [`Session::query`]. `most` is the maximum number of rows that it
    /// returns, if known.
    pub async fn query_rows(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)], most: Option<usize>) -> Result<Vec<Row>> {
        Ok(self.query_together(&[(sql, params)], most).await?.remove(0))
    }

    /// Runs statements in one round trip and, if no transaction is open, in one transaction.
    /// Returns the rows of each statement. `most` is the maximum number of rows that all statements
    /// return together, if known.
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
                // If a statement changes data, its whole reply is kept, however large it is. The
                // rows may be the only copy of messages.
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

    /// Prepares statements, and runs the group that `gather` builds from them, with one Sync
    /// message. If a prepared statement is outdated, nothing has taken effect, and this method
    /// tries once more.
    pub async fn together<'a>(
        &self,
        texts: impl Iterator<Item = &'a str> + Clone,
        mut gather: impl FnMut(&[Prepared]) -> Result<Group, WireError>,
    ) -> Result<(Reply, Vec<Prepared>), WireError> {
        let mut outdated = None;
        loop {
            let (prepared, group) = self.gathered(texts.clone(), &mut gather, outdated.as_ref()).await?;
            let outcome = self.connection.send(group).await;
            if let Some(outcome) = self.outcome_of(outcome, texts.clone(), &mut outdated) {
                return outcome.map(|reply| (reply, prepared));
            }
        }
    }

    /// Runs statements like [`Session::together`], and reads the reply in parts, as in
    /// [`Incoming::parts`](crate::postgres::wire::Incoming::parts). A second try starts again at
    /// the first statement.
    pub async fn in_parts<'a>(
        &self,
        texts: impl Iterator<Item = &'a str> + Clone,
        mut gather: impl FnMut(&[Prepared]) -> Result<Group, WireError>,
        mut read: impl FnMut(&[Prepared], &Reply, usize, usize),
    ) -> Result<(), WireError> {
        let mut outdated = None;
        loop {
            let (prepared, group) = self.gathered(texts.clone(), &mut gather, outdated.as_ref()).await?;
            let incoming = self.connection.send_in_parts(group);
            let outcome = incoming.parts(|reply, at, place| read(&prepared, reply, at, place)).await;
            if let Some(outcome) = self.outcome_of(outcome, texts.clone(), &mut outdated) {
                return outcome.map(drop);
            }
        }
    }

    /// Runs one statement, and decodes its rows while the server sends the next rows. If the server
    /// reports an error and a row cannot be decoded, returns the server's error.
    pub async fn row_by_row<R: Rows>(
        &self,
        text: &str,
        mut gather: impl FnMut(&[Prepared]) -> Result<Group, WireError>,
    ) -> Result<Result<R, Wrong>, WireError> {
        let (texts, mut outdated) = (std::iter::once(text), None);
        loop {
            let (prepared, group) = self.gathered(texts.clone(), &mut gather, outdated.as_ref()).await?;
            let mut rows = R::without_rows().ok_or_else(|| "a reply that is read as a whole".into());
            let (mut incoming, mut place) = (self.connection.send_in_parts(group), None);
            let outcome = loop {
                let arrived = std::future::poll_fn(|context| incoming.poll_rows(&mut place, context)).await;
                let columns = arrived.messages.columns.as_ref().unwrap_or(&prepared[0].columns);
                add_rows(&mut rows, columns, &arrived.messages.chunks);
                if let Some(outcome) = arrived.end {
                    break outcome;
                }
            };
            if let Some(outcome) = self.outcome_of(outcome, texts.clone(), &mut outdated) {
                return outcome.map(|_| rows);
            }
        }
    }

    /// Prepares statements, and builds the group. `outdated` is the failure of the first try, if
    /// there was one.
    async fn gathered<'a>(
        &self,
        texts: impl Iterator<Item = &'a str>,
        gather: &mut impl FnMut(&[Prepared]) -> Result<Group, WireError>,
        outdated: Option<&WireError>,
    ) -> Result<(Vec<Prepared>, Group), WireError> {
        let underway = InFlight::new(&self.load);
        let mut prepared = Vec::with_capacity(texts.size_hint().0);
        for (place, text) in texts.enumerate() {
            let one = self.connection.prepare_of_user(text).await;
            // If the first try aborted an open transaction, its failure is the one to return.
            prepared.push(one.map_err(|failure| first_of(outdated, failure.of_statement(place, text)))?);
        }
        let mut group = gather(&prepared)?;
        group.load = Some(underway);
        self.connection.room().await;
        Ok((prepared, group))
    }

    /// Returns the outcome of a try, or `None` if the statements must be prepared again.
    fn outcome_of<'a>(
        &self,
        outcome: Result<Reply, WireError>,
        texts: impl Iterator<Item = &'a str>,
        outdated: &mut Option<WireError>,
    ) -> Option<Result<Reply, WireError>> {
        match outcome {
            // Tries again after this failure: a queue was dropped and created again, or a pooler
            // switched to another server connection.
            Err(failure) if outdated.is_none() && failure.is_outdated() => {
                *outdated = Some(failure);
                texts.for_each(|text| self.connection.forget(text));
                None
            }
            outcome => Some(outcome.map_err(|failure| {
                self.demote_after(&failure);
                first_of(outdated.as_ref(), failure)
            })),
        }
    }

    /// Makes callers replace this connection if the failure shows that its server no longer accepts
    /// writes. Another server of the address may accept them.
    pub fn demote_after(&self, failure: &WireError) {
        if self.writes
            && failure.is_read_only()
            && !self.demoted.swap(true, Ordering::Relaxed)
            && let Some(doubts) = self.doubts.get()
        {
            doubts.notify_one();
        }
    }

    /// Sets what this connection wakes when its server no longer accepts writes.
    pub fn doubt_with(&self, doubts: &Arc<Notify>) {
        let _ = self.doubts.set(doubts.clone());
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs several statements without preparing them, for example for a migration.
    pub async fn batch(&self, what: &'static str, text: &str) -> Result<()> {
        self.connection.batch(text).await.map_err(|failure| told(what, failure))
    }

    /// Returns the type of the first column in a statement's result. If `is_again` is set, asks the
    /// server even if the statement is cached.
    pub async fn column_type(&self, sql: &Sql, is_again: bool) -> Result<Option<tokio_postgres::types::Type>> {
        if is_again {
            self.connection.forget(&sql.text);
        }
        let prepared = self.connection.prepare(&sql.text).await.map_err(|failure| told(sql.name, failure))?;
        Ok(prepared.columns.columns.first().map(|(_, ty)| ty.clone()))
    }

    pub fn is_closed(&self) -> bool {
        self.demoted.load(Ordering::Relaxed) || self.connection.is_closed()
    }
}

/// Returns the first failure if the second is only its consequence, and otherwise the second.
fn first_of(first: Option<&WireError>, second: WireError) -> WireError {
    first.filter(|_| second.only_follows()).cloned().unwrap_or(second)
}
