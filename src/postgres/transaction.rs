//! A transaction whose statements are on their way before their answers are asked for.

mod sent;
mod pipeline;
mod pending;
mod stream;

use std::sync::{Arc, OnceLock};

use tokio_postgres::types::ToSql;

use self::pipeline::Pipeline;
pub use self::{pending::Pending, stream::RowStream};
use crate::{
    error::{Error, Kind, Result},
    postgres::{
        db::Db,
        params::Params,
        rows::Rows,
        statement::Statement,
        wire::{Prepared, WireError},
    },
};

/// A transaction on a connection of its own.
///
/// [`Transaction::send`] gathers statements and returns; they leave together, `begin` with the
/// first of them, when an answer is awaited, at the commit, or when many have gathered. Awaited or
/// not, they run in the order in which they were sent. So any number of statements whose answers
/// are not needed in between, and the commit, are one round trip.
///
/// A statement that fails makes the rest fail, up to a `rollback to` a savepoint, and its error
/// comes out at the next answer that is awaited, at the latest at the commit. Dropped without a
/// commit, the transaction is rolled back; all of its calls may be dropped while they wait.
///
/// ```
/// # use trunkline::{Db, Result, postgres::Statement};
/// static TAKE: Statement<(i64, i64), u64> = Statement::new("update account set cents = cents - $2 where id = $1");
/// static GIVE: Statement<(i64, i64), u64> = Statement::new("update account set cents = cents + $2 where id = $1");
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
}

impl Db {
    /// Begins a transaction at `read committed`. Nothing is sent before its first statement, so
    /// that costs no round trip; connections of ended transactions are used again.
    ///
    /// Every open transaction has a connection of its own: bound how many a program has at a time.
    pub async fn begin(&self) -> Result<Transaction> {
        self.begin_with("").await
    }

    /// Begins a transaction with the modes of SQL's `begin`: `isolation level serializable, read
    /// only`.
    pub async fn begin_with(&self, modes: &str) -> Result<Transaction> {
        let begin = match modes {
            "" => self.begin_text().to_owned(),
            modes => format!("begin {modes}"),
        };
        let session = self.own_session().await?;
        Ok(Transaction {
            db: self.clone(),
            pipeline: Arc::new(Pipeline::new(session, begin)),
            committed: Arc::default(),
        })
    }
}

impl Transaction {
    /// Queues a statement and returns at once, with a handle that waits for its reply. Drop the
    /// handle where the answer does not matter: an error still ends the transaction, and the commit
    /// says so.
    ///
    /// Waits only where the statement has to be prepared first on this connection, or much is on
    /// its way already.
    ///
    /// # Errors
    /// Parameters that do not fit; a statement that the server does not understand; a connection
    /// that broke.
    pub async fn send<P: Params, R: Rows>(&self, statement: &Statement<P, R>, params: P) -> Result<Pending<R>> {
        let prepared = self.prepared(statement.text()).await?;
        params.with(|params| self.push(prepared, params, false))
    }

    /// As [`Transaction::send`], for a statement of the library's own. What it has done is known by
    /// its rows, so they are kept whole.
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

    /// Sends a statement and waits for its answer, and for those of all that was sent before.
    ///
    /// # Errors
    /// As [`Db::run`](crate::Db::run), also of statements sent before whose answers were not
    /// awaited.
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

    /// As [`Db::copy_in`](crate::Db::copy_in), within this transaction; sent like any other
    /// statement.
    ///
    /// # Errors
    /// As [`Transaction::send`].
    pub async fn copy_in(&self, statement: &Statement<(), u64>, data: &[u8]) -> Result<Pending<u64>> {
        self.pipeline.session.connection().room().await;
        let text: Arc<str> = statement.text().into();
        let (sent, place) = self.pipeline.push(&text, |group| group.push_copy(&text, data))?;
        Ok(Pending::new(self.pipeline.clone(), sent, place, text, Arc::default()))
    }

    /// Commits.
    ///
    /// # Errors
    /// The first error of a statement, or the commit's own: nothing has happened then, also where
    /// the server answers a failed transaction's `commit` with a mere `ROLLBACK`.
    /// [`Error::is_outcome_unknown`]: the connection broke before the answer.
    pub async fn commit(self) -> Result<()> {
        self.send_commit().await?;
        let _ = self.committed.set(true); // only the drop sets it besides
        Ok(())
    }

    async fn send_commit(&self) -> Result<()> {
        let Some((sent, place)) = self.pipeline.end("commit")? else {
            self.db.give_back(self.pipeline.session.clone());
            return Ok(()); // nothing was ever sent
        };
        let outcome = sent.answer().await;
        match &*outcome {
            Ok(answer) if answer.tag(place) == "COMMIT" => {
                self.db.give_back(self.pipeline.session.clone());
                Ok(())
            }
            Ok(_) => {
                self.db.give_back(self.pipeline.session.clone());
                Err(self.pipeline.first_error().unwrap_or_else(|| Error::new(Kind::RolledBack)))
            }
            Err(failure) => {
                let error = self.pipeline.first_error().unwrap_or_else(|| self.pipeline.error(&sent, failure));
                if let WireError::Server { .. } = failure {
                    self.pipeline.roll_back_unheard();
                    self.db.give_back(self.pipeline.session.clone());
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
        if let Some((sent, _)) = self.pipeline.end("rollback")? {
            let outcome = sent.answer().await;
            if let Err(failure) = &*outcome {
                return Err(sent.error(failure));
            }
        }
        self.db.give_back(self.pipeline.session.clone());
        Ok(())
    }

    /// How the transaction ended, to be asked after its drop: whether it is known to be committed;
    /// empty while it is open.
    pub(crate) fn committed(&self) -> Arc<OnceLock<bool>> {
        self.committed.clone()
    }

    /// A statement that can be bound. What was sent before it goes first where it has to be
    /// prepared: it may need what that makes.
    pub(crate) async fn prepared(&self, text: &str) -> Result<Prepared> {
        let connection = self.pipeline.session.connection();
        connection.room().await;
        if let Some(prepared) = connection.prepared(text) {
            return Ok(prepared);
        }
        self.pipeline.flush();
        connection.prepare(text).await.map_err(|failure| self.pipeline.not_prepared(text, failure))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let _ = self.committed.set(false); // unless it was committed
        if self.pipeline.abandon() {
            self.db.give_back(self.pipeline.session.clone());
        } // else the connection closes once all is answered: no other caller waits for what goes on there
    }
}
