//! A transaction whose statements are on their way before their answers are asked for.

mod pending;
mod sent;
mod stream;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_postgres::{error::SqlState, types::ToSql};

use self::sent::{Outcome, Sent};
pub use self::{pending::Pending, stream::RowStream};
use crate::{
    db::{Db, Session, told_to_user},
    error::{Error, Kind, Result},
    params::Params,
    rows::Rows,
    statement::Statement,
    wire::{Columns, Failure, Group, Prepared},
};

/// Bytes that gather before they leave although no answer is asked for.
const GATHERED: usize = 32 << 10;

/// A transaction on a connection of its own.
///
/// [`Transaction::send`] gathers statements and returns; they leave together, `begin` with the first of them, when an answer is
/// awaited, at the commit, or when many have gathered. Awaited or not, they run in the order in which they were sent. So any number of
/// statements whose answers are not needed in between, and the commit, are one round trip.
///
/// A statement that fails makes the rest fail, up to a `rollback to` a savepoint, and its error comes out at the next answer that is
/// awaited, at the latest at the commit. Dropped without a commit, the transaction is rolled back; all of its calls may be dropped
/// while they wait.
///
/// ```
/// # use trunkline::{Db, Result, Statement};
/// const TAKE: Statement<(i64, i64), u64> = Statement::new("update account set cents = cents - $2 where id = $1");
/// const GIVE: Statement<(i64, i64), u64> = Statement::new("update account set cents = cents + $2 where id = $1");
///
/// async fn transfer(db: &Db, from: i64, to: i64, cents: i64) -> Result<()> {
///     let transaction = db.begin().await?;
///     transaction.send(&TAKE, (from, cents)).await?;
///     transaction.send(&GIVE, (to, cents)).await?;
///     transaction.commit().await // one round trip: begin, take, give, commit
/// }
/// ```
#[derive(Debug)]
pub struct Transaction {
    db: Db,
    line: Arc<Line>,
}

/// The transaction as its pending answers see it.
struct Line {
    session: Arc<Session>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    begin: String,
    begun: bool,
    ended: bool,
    /// What has gathered, and what will tell its answer.
    open: Group,
    opened: Arc<Sent>,
    /// Groups whose answers were not seen to be good yet, oldest first.
    sent: Vec<Arc<Sent>>,
    /// Statements of the user's so far.
    statements: usize,
    portals: u64,
    /// A statement that could not even be prepared.
    unprepared: Option<Error>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Db {
    /// Begins a transaction at `read committed`. Nothing is sent before its first statement, so that costs no round trip;
    /// connections of ended transactions are used again.
    ///
    /// Every open transaction has a connection of its own: bound how many a program has at a time.
    pub async fn begin(&self) -> Result<Transaction> {
        self.begin_with("").await
    }

    /// Begins a transaction with what SQL's `begin` can say: `isolation level serializable, read only`.
    pub async fn begin_with(&self, modes: &str) -> Result<Transaction> {
        let begin = match modes {
            "" => self.begin_text().to_owned(),
            modes => format!("begin {modes}"),
        };
        let session = self.own_session().await?;
        let state = Mutex::new(State { begin, ..State::default() });
        Ok(Transaction { db: self.clone(), line: Arc::new(Line { session, state }) })
    }
}

impl Transaction {
    /// Sends a statement; returns as soon as it has a place in the order of things, with what waits for its answer. Drop that
    /// where the answer does not matter: an error still ends the transaction, and the commit says so.
    ///
    /// Waits only where the statement has to be prepared first on this connection, or much is on its way already.
    ///
    /// # Errors
    /// Parameters that do not fit; a statement that the server does not understand; a connection that broke.
    pub async fn send<P: Params, R: Rows>(&self, statement: &Statement<P, R>, params: P) -> Result<Pending<R>> {
        let prepared = self.prepared(statement.text()).await?;
        params.with(|params| self.push(prepared, params))
    }

    /// As [`Transaction::send`], for a statement of the library's own.
    pub(crate) async fn send_text<R>(&self, text: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Pending<R>> {
        let prepared = self.prepared(text).await?;
        self.push(prepared, params)
    }

    fn push<R>(&self, prepared: Prepared, params: &[&(dyn ToSql + Sync)]) -> Result<Pending<R>> {
        let (sent, place) = self.line.push(&prepared.text, |group| group.push(&prepared, params))?;
        Ok(Pending::new(self.line.clone(), sent, place, prepared.text, prepared.columns))
    }

    /// Sends a statement and waits for its answer, and for those of all that was sent before.
    ///
    /// # Errors
    /// As [`Db::run`](crate::Db::run), also of statements sent before whose answers were not awaited.
    pub async fn run<P: Params, R: Rows>(&self, statement: &Statement<P, R>, params: P) -> Result<R> {
        self.send(statement, params).await?.await
    }

    /// As [`Db::run_many`](crate::Db::run_many), within this transaction.
    ///
    /// # Errors
    /// As [`Transaction::run`].
    pub async fn run_many<P: Params, R: Rows>(
        &self,
        statement: &Statement<P, R>,
        many: impl IntoIterator<Item = P>,
    ) -> Result<Vec<R>> {
        let mut pending = Vec::new();
        for params in many {
            pending.push(self.send(statement, params).await?);
        }
        let mut answers = Vec::with_capacity(pending.len());
        for pending in pending {
            answers.push(pending.await?);
        }
        Ok(answers)
    }

    /// As [`Db::copy_in`](crate::Db::copy_in), within this transaction; sent like any other statement.
    ///
    /// # Errors
    /// As [`Transaction::send`].
    pub async fn copy_in(&self, statement: &Statement<(), u64>, data: &[u8]) -> Result<Pending<u64>> {
        self.line.session.connection().room().await;
        let text: Arc<str> = statement.text().into();
        let (sent, place) = self.line.push(&text, |group| group.push_copy(&text, data))?;
        Ok(Pending::new(self.line.clone(), sent, place, text, Arc::default()))
    }

    /// Commits.
    ///
    /// # Errors
    /// The first error of a statement, or the commit's own: nothing has happened then, also where the server answers a failed
    /// transaction's `commit` with a mere `ROLLBACK`. [`Error::is_outcome_unknown`]: the connection broke before the answer.
    pub async fn commit(self) -> Result<()> {
        let Some((sent, place)) = self.line.end("commit")? else {
            self.db.give_back(self.line.session.clone());
            return Ok(()); // nothing was ever sent
        };
        let outcome = sent.answer().await;
        match &*outcome {
            Ok(answer) if answer.tag(place) == "COMMIT" => {
                self.db.give_back(self.line.session.clone());
                Ok(())
            }
            Ok(_) => {
                self.db.give_back(self.line.session.clone());
                Err(self.line.first_error().unwrap_or_else(|| Error::new(Kind::RolledBack)))
            }
            Err(failure) => {
                let error = self.line.first_error().unwrap_or_else(|| self.line.error(&sent, failure));
                if let Failure::Server { .. } = failure {
                    self.line.roll_back_unheard();
                    self.db.give_back(self.line.session.clone());
                }
                Err(error)
            }
        }
    }

    /// Rolls back, and waits until that is done.
    ///
    /// # Errors
    /// The connection broke: the server rolls back then.
    pub async fn rollback(self) -> Result<()> {
        if let Some((sent, _)) = self.line.end("rollback")? {
            let outcome = sent.answer().await;
            if let Err(failure) = &*outcome {
                return Err(sent.error(failure));
            }
        }
        self.db.give_back(self.line.session.clone());
        Ok(())
    }

    /// A statement that can be bound. What was sent before it goes first where it has to be prepared: it may need what that makes.
    async fn prepared(&self, text: &str) -> Result<Prepared> {
        let connection = self.line.session.connection();
        connection.room().await;
        if let Some(prepared) = connection.prepared(text) {
            return Ok(prepared);
        }
        self.line.flush();
        connection.prepare(text).await.map_err(|failure| {
            let earlier = self.line.first_error();
            let mut state = self.line.state();
            state.forget_good();
            let error = earlier.unwrap_or_else(|| told_to_user(state.statements, text, failure));
            if state.begun && state.unprepared.is_none() {
                state.unprepared = Some(error.clone()); // the server aborted the transaction
            }
            error
        })
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let quiet = {
            let mut state = self.line.state();
            if std::mem::replace(&mut state.ended, true) {
                return;
            }
            state.open = Group::new(); // never sent, never happened
            state.forget_good();
            !state.begun || state.sent.is_empty()
        };
        self.line.roll_back_unheard();
        if quiet {
            self.db.give_back(self.line.session.clone());
        } // else the connection closes once all is answered: nobody else shall wait for what goes on there
    }
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a statement to what gathers.
    fn push(
        &self,
        text: &str,
        add: impl FnOnce(&mut Group) -> std::result::Result<(), Failure>,
    ) -> Result<(Arc<Sent>, usize)> {
        let mut state = self.state();
        if state.ended {
            return Err(Error::invalid("the transaction has ended; begin another"));
        }
        state.begin()?;
        let place = state.open.len();
        let failed = |state: &State, failure| told_to_user(state.statements, text, failure);
        add(&mut state.open).map_err(|failure| failed(&state, failure))?;
        state.statements += 1;
        let sent = state.opened.clone();
        if state.open.bytes() > GATHERED {
            self.send_open(&mut state);
        }
        Ok((sent, place))
    }

    /// Sends what has gathered.
    fn flush(&self) {
        let mut state = self.state();
        if !state.ended && state.open.len() > 0 {
            self.send_open(&mut state);
        }
    }

    fn send_open(&self, state: &mut State) {
        state.forget_good();
        let group = std::mem::take(&mut state.open);
        let sent = std::mem::take(&mut state.opened);
        sent.set(self.session.connection().send(group));
        state.begun = true;
        state.sent.push(sent);
    }

    /// Sends the last statement, unless nothing was ever sent.
    fn end(&self, with: &str) -> Result<Option<(Arc<Sent>, usize)>> {
        let mut state = self.state();
        if with == "rollback" {
            state.open = Group::new(); // never sent, never happened
        }
        if !state.begun && state.open.is_empty() {
            state.ended = true;
            return Ok(None);
        }
        if state.open.is_empty() {
            state.opened = Arc::new(Sent::new(state.statements, false));
        }
        let place = state.open.len();
        state.open.push_unnamed(&with.into(), &[], &[]).map_err(|failure| told_to_user(place, with, failure))?;
        let sent = state.opened.clone();
        self.send_open(&mut state);
        state.ended = true;
        Ok(Some((sent, place)))
    }

    /// Rolls back what was begun. Whatever comes next on this connection comes behind it.
    fn roll_back_unheard(&self) {
        if self.state().begun {
            drop(self.session.connection().send(rollback()));
        }
    }

    /// The first statement's error so far; later ones only say that the transaction has failed.
    fn first_error(&self) -> Option<Error> {
        let state = self.state();
        let found = state.sent.iter().find_map(|sent| match &*sent.seen()? {
            Err(failure) if !only_follows(failure) => Some(self.error(sent, failure)),
            _ => None,
        });
        found.or_else(|| state.unprepared.clone())
    }

    fn error(&self, sent: &Sent, failure: &Failure) -> Error {
        if let Failure::Server { text: Some(text), .. } = failure
            && failure.is_outdated()
        {
            self.session.connection().forget(text); // the next transaction prepares it anew
        }
        sent.error(failure)
    }

    /// An answer of one statement, or why there is none.
    fn outcome<R: Rows>(
        &self,
        sent: &Sent,
        outcome: &Outcome,
        place: usize,
        text: &str,
        columns: &Arc<Columns>,
    ) -> Result<R> {
        match &**outcome {
            Ok(answer) => crate::run::read(answer, place, columns, text),
            Err(failure) if only_follows(failure) => {
                Err(self.first_error().unwrap_or_else(|| self.error(sent, failure)))
            }
            Err(failure) => Err(self.error(sent, failure)),
        }
    }
}

impl State {
    /// `begin` is the first statement of the first group, and not counted.
    fn begin(&mut self) -> Result<()> {
        if self.open.is_empty() {
            self.opened = Arc::new(Sent::new(self.statements, !self.begun));
            if !self.begun {
                let begin = self.begin.as_str().into();
                self.open.push_unnamed(&begin, &[], &[]).map_err(|failure| told_to_user(0, "begin", failure))?;
            }
        }
        Ok(())
    }

    /// A good answer says that whatever failed before it was rolled back to a savepoint.
    fn forget_good(&mut self) {
        if let Some(good) = self.sent.iter().rposition(|sent| sent.seen().is_some_and(|outcome| outcome.is_ok())) {
            self.sent.drain(..=good);
            self.unprepared = None;
        }
    }
}

/// "Current transaction is aborted": what aborted it was said before.
fn only_follows(failure: &Failure) -> bool {
    matches!(failure, Failure::Server { error, .. } if error.code == SqlState::IN_FAILED_SQL_TRANSACTION)
}

fn rollback() -> Group {
    let mut group = Group::new();
    let text: Arc<str> = "rollback".into();
    // A statement without parameters and without NULs can always be written.
    let _ = group.push_unnamed(&text, &[], &[]);
    group
}
