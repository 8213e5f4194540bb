//! A transaction that can send many statements before it waits for their replies.

pub(crate) mod sent;
mod pipeline;
mod pending;
mod row_by_row;
mod stream;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use tokio_postgres::types::ToSql;

use self::pipeline::Pipeline;
pub use self::{pending::Pending, stream::RowStream};
use crate::{
    error::{Error, Kind, Result},
    postgres::{
        db::{Db, LonelyTrips},
        params::Params,
        rows::Rows,
        statement::Statement,
        wire::{Prepared, WireError},
    },
};

/// A transaction on its own connection.
///
/// [`Transaction::send`] queues a statement and returns. The queued statements are sent together
/// when a reply is awaited, at the commit, or when many bytes are queued. `begin` is sent with the
/// first statement. The statements run in the order in which they were queued, even if their
/// replies are not awaited. If no reply is needed before the commit, all statements and the commit
/// together take one round trip.
///
/// If a statement fails, all later statements fail too, until the transaction is rolled back to a
/// savepoint. The next awaited reply returns the error, or the commit returns it. If the
/// transaction is dropped without a commit, it is rolled back. The future of every method may be
/// dropped before it completes.
///
/// ```
/// # use trunkline::{Db, Result, postgres::Statement};
/// static TAKE: Statement<(i64, i64), u64> =
///     Statement::new("update account set cents = cents - $2 where id = $1");
/// static GIVE: Statement<(i64, i64), u64> =
///     Statement::new("update account set cents = cents + $2 where id = $1");
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
    pipeline: Arc<Pipeline>,
    committed: Arc<OnceLock<bool>>,
    lonely: LonelyTrips,
}

impl Db {
    /// Begins a transaction at `read committed`. This call takes no round trip, because `begin` is
    /// sent with the first statement. The connections of ended transactions are reused.
    ///
    /// Every open transaction uses its own connection. Limit the number of transactions that a
    /// program has open at the same time.
    pub async fn begin(&self) -> Result<Transaction> {
        self.begin_with("").await
    }

    /// Begins a transaction with modes in the syntax of SQL's `begin`, for example `isolation level
    /// serializable, read only`. The first call with particular modes takes a round trip, in which
    /// the server checks the modes.
    pub async fn begin_with(&self, modes: &str) -> Result<Transaction> {
        let begin = match modes {
            "" => self.begin_text().to_owned(),
            modes => format!("begin {modes}"),
        };
        let session = self.own_session().await?;
        let transaction = Transaction {
            db: self.clone(),
            pipeline: Arc::new(Pipeline::new(session, begin)),
            committed: Arc::default(),
            lonely: LonelyTrips::default(),
        };
        if !modes.is_empty() && !self.attached::<AcceptedModes>().knows(modes) {
            transaction.pipeline.begin_now().await?;
            self.attached::<AcceptedModes>().add(modes);
        }
        Ok(transaction)
    }
}

/// The modes that a server has accepted.
#[derive(Debug, Default)]
struct AcceptedModes(Mutex<BTreeSet<String>>);

impl AcceptedModes {
    const MOST: usize = 64;

    fn all(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn knows(&self, modes: &str) -> bool {
        self.all().contains(modes)
    }

    fn add(&self, modes: &str) {
        let mut all = self.all();
        if all.len() < Self::MOST {
            all.insert(modes.to_owned());
        }
    }
}

impl Transaction {
    /// Queues a statement, and returns a handle that waits for the reply. If you do not need the
    /// reply, drop the handle. An error of the statement then still aborts the transaction, and the
    /// commit returns the error.
    ///
    /// The call waits only if this connection must first prepare the statement, or if many bytes
    /// are already queued.
    ///
    /// # Errors
    /// An error if the parameters do not fit, if the server refuses to prepare the statement, or if
    /// the connection broke.
    pub async fn send<P: Params, R: Rows>(&self, statement: &Statement<P, R>, params: P) -> Result<Pending<R>> {
        let prepared = self.prepared(statement.text()).await?;
        params.with(|params| self.push(prepared, params, false))
    }

    /// Queues one of the library's own statements, like [`Transaction::send`]. `max_answer` does
    /// not apply, because only the rows show what the statement has done.
    pub(crate) async fn send_text<R>(&self, text: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Pending<R>> {
        let prepared = self.prepared(text).await?;
        self.push(prepared, params, true)
    }

    fn push<R>(&self, prepared: Prepared, params: &[&(dyn ToSql + Sync)], whole: bool) -> Result<Pending<R>> {
        let (sent, place) = self.pipeline.push(&prepared.text, |group| {
            group.bound.whole |= whole;
            group.push(&prepared, params)
        })?;
        Ok(Pending::new(self.pipeline.clone(), sent, place, prepared.text, prepared.columns))
    }

    /// Sends a statement, and waits for its reply and for the replies to all earlier statements. If
    /// no earlier statement is queued and the result is a `Vec`, each row is decoded as it arrives.
    ///
    /// # Errors
    /// The errors of [`Db::run`](crate::Db::run). Also the error of an earlier statement whose
    /// reply was not awaited.
    pub async fn run<P: Params, R: Rows>(&self, statement: &Statement<P, R>, params: P) -> Result<R> {
        self.lonely.count(self.pipeline.is_quiet(), self.db.advice());
        let prepared = self.prepared(statement.text()).await?;
        if let Some(none) = R::without_rows() {
            let sent = params
                .with(|params| self.pipeline.push_alone(&prepared.text, |group| group.push(&prepared, params)))?;
            if let Some(sent) = sent {
                return self.row_by_row(&sent, &prepared, none).await;
            }
        }
        params.with(|params| self.push(prepared, params, false))?.await
    }

    /// Runs a statement many times like [`Db::run_many`](crate::Db::run_many), in this transaction.
    ///
    /// # Errors
    /// The errors of [`Transaction::run`].
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

    /// Copies data into a table like [`Db::copy_in`](crate::Db::copy_in), within this transaction.
    /// The statement is queued as by [`Transaction::send`].
    ///
    /// # Errors
    /// The errors of [`Transaction::send`].
    pub async fn copy_in(&self, statement: &Statement<(), u64>, data: &[u8]) -> Result<Pending<u64>> {
        self.pipeline.session.connection().room().await;
        let text: Arc<str> = statement.text().into();
        let (sent, place) = self.pipeline.push(&text, |group| group.push_copy(&text, data))?;
        Ok(Pending::new(self.pipeline.clone(), sent, place, text, Arc::default()))
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// The first error of a statement, or the error of the commit. In both cases, the transaction
    /// has had no effect. The server replies `ROLLBACK` to the `commit` of a failed transaction,
    /// and this method then also returns an error. The error is [`Error::is_outcome_unknown`] if
    /// the connection broke before the reply.
    pub async fn commit(self) -> Result<()> {
        self.commit_shared().await
    }

    /// Commits a transaction that has several owners. All later calls return an error.
    pub(crate) async fn commit_shared(&self) -> Result<()> {
        self.send_commit().await?;
        let _ = self.committed.set(true); // a value exists only if `drop` has set one
        Ok(())
    }

    async fn send_commit(&self) -> Result<()> {
        // Ends a transaction that cannot be committed, because it must not stay open while other
        // owners exist.
        let Some((sent, place)) = self.pipeline.end("commit").inspect_err(|_| self.abandon())? else {
            self.db.give_back(self.pipeline.session.clone());
            return Ok(()); // nothing was sent
        };
        let outcome = sent.answer().await;
        match &*outcome {
            Ok(answer) if answer.tag(place) == "COMMIT" => {
                self.db.give_back(self.pipeline.session.clone());
                // Returns an earlier failure, because the server also replies `COMMIT` if no
                // transaction is open.
                self.pipeline.failure().map_or(Ok(()), Err)
            }
            Ok(_) => {
                self.db.give_back(self.pipeline.session.clone());
                Err(self.pipeline.first_error().unwrap_or_else(|| Error::new(Kind::RolledBack)))
            }
            // The reply to an earlier statement is larger than the configured limit. The server has
            // confirmed all statements and the commit, and the caller of the earlier statement
            // receives the error.
            Err(WireError::TooLarge(_)) => {
                self.db.give_back(self.pipeline.session.clone());
                self.pipeline.failure().map_or(Ok(()), Err)
            }
            Err(failure) => {
                // If the commit was not sent, an earlier statement whose reply is lost had no
                // effect.
                let is_sent = !matches!(failure, WireError::Unsent(_) | WireError::Silent { sent: false, .. });
                let earlier = self.pipeline.first_error().filter(|error| is_sent || !error.is_outcome_unknown());
                let error = earlier.unwrap_or_else(|| self.pipeline.error(&sent, failure));
                if let WireError::Server { .. } = failure {
                    self.pipeline.roll_back_unheard();
                    self.db.give_back(self.pipeline.session.clone());
                }
                Err(error)
            }
        }
    }

    /// Rolls back the transaction, and waits for the server's confirmation.
    ///
    /// # Errors
    /// The connection broke. The server then rolls back the transaction.
    pub async fn rollback(self) -> Result<()> {
        self.rollback_shared().await
    }

    /// Rolls back a transaction that has several owners. All later calls return an error.
    pub(crate) async fn rollback_shared(&self) -> Result<()> {
        if let Some((sent, _)) = self.pipeline.end("rollback")? {
            let outcome = sent.answer().await;
            if let Err(failure) = &*outcome {
                return Err(sent.error(failure));
            }
        }
        self.db.give_back(self.pipeline.session.clone());
        Ok(())
    }

    /// Abandons the transaction, unless it has ended. If no statement is running, the connection is
    /// reused. Otherwise the connection closes after all replies have arrived.
    fn abandon(&self) {
        if self.pipeline.abandon() {
            self.db.give_back(self.pipeline.session.clone());
        }
    }

    /// Marks the transaction as failed. It sends no more statements, and its commit returns this
    /// error.
    pub(crate) fn fail(&self, error: Error) {
        self.pipeline.fail(error);
    }

    /// Returns the error that aborted the transaction, if the server's reply has arrived.
    pub(crate) fn first_error(&self) -> Option<Error> {
        self.pipeline.first_error()
    }

    /// Returns a cell that is set when the transaction has ended. Its value is true if the
    /// transaction is known to be committed.
    pub(crate) fn committed(&self) -> Arc<OnceLock<bool>> {
        self.committed.clone()
    }

    /// Prepares a statement. If it is not prepared yet, earlier statements are sent first, because
    /// the new statement may need an object that they create.
    pub(crate) async fn prepared(&self, text: &str) -> Result<Prepared> {
        let connection = self.pipeline.session.connection();
        connection.room().await;
        // returns an error if the transaction has ended, because the connection may then belong to
        // another one
        self.pipeline.check()?;
        if let Some(prepared) = connection.prepared(text) {
            return Ok(prepared);
        }
        self.pipeline.flush();
        connection.prepare_of_user(text).await.map_err(|failure| self.pipeline.not_prepared(text, failure))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let _ = self.committed.set(false); // no effect if the transaction was committed
        self.abandon();
    }
}
