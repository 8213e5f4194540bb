//! Statements of the user's, each call a transaction of its own.

use std::sync::Arc;

use crate::{
    error::{Error, Kind, Result},
    postgres::{
        db::{Db, Lane, told_to_user},
        params::Params,
        rows::{Answered, Rows},
        statement::Statement,
        wire::{Columns, Group, Prepared, Reply, WireError},
    },
};

impl Db {
    /// Runs a statement, committed when this returns `Ok`. Concurrent calls share connections, and what is sent at the same time
    /// leaves in one write; a caller never waits for another's answer.
    ///
    /// If the call is dropped while it waits, the statement may run all the same.
    ///
    /// ```
    /// # use trunkline::{Db, Result, postgres::Statement};
    /// static OWNER: Statement<(i64,), Option<(String,)>> = Statement::new("select owner from account where id = $1");
    ///
    /// async fn owner(db: &Db, id: i64) -> Result<Option<String>> {
    ///     Ok(db.run(&OWNER, (id,)).await?.map(|(owner,)| owner))
    /// }
    /// ```
    ///
    /// # Errors
    /// The server's, with [`Error::sqlstate`]; parameters or columns that do not fit; [`Error::is_outcome_unknown`]: the
    /// connection broke before the answer.
    pub async fn run<P: Params, R: Rows>(&self, statement: &Statement<P, R>, params: P) -> Result<R> {
        let mut all = self.run_many(statement, [params]).await?;
        all.pop().ok_or_else(|| Error::invalid("a statement without an answer")) // one answer for one set of parameters
    }

    /// Runs a statement for each set of parameters, in order: one round trip and one transaction for all. The answers come
    /// in the order of the parameters.
    ///
    /// All of it is in memory at once, both ways. For more than that, send parts within a [`Transaction`](crate::postgres::Transaction).
    ///
    /// # Errors
    /// As [`Db::run`]. [`Error::failed_statement`] says which set of parameters failed; none has taken effect then.
    pub async fn run_many<P: Params, R: Rows>(
        &self,
        statement: &Statement<P, R>,
        many: impl IntoIterator<Item = P>,
    ) -> Result<Vec<R>> {
        let many: Vec<P> = many.into_iter().collect();
        if many.is_empty() {
            return Ok(Vec::new());
        }
        let gather = |prepared: &[Prepared]| {
            let mut group = Group::new();
            for params in &many {
                params.with(|params| group.push(&prepared[0], params))?;
            }
            Ok(group)
        };
        let (answer, prepared) = self.gathered(statement.text(), gather).await?;
        (0..many.len()).map(|place| read(&answer, place, &prepared.columns, statement.text())).collect()
    }

    /// Runs `copy … from stdin` with its data, in the text or binary format that the statement names: one round trip, one
    /// transaction. Returns the number of rows.
    ///
    /// # Errors
    /// As [`Db::run`].
    pub async fn copy_in(&self, statement: &Statement<(), u64>, data: &[u8]) -> Result<u64> {
        let text = statement.text().into();
        let alone = self.copies_alone();
        let session = if alone { self.own_session().await? } else { self.session(Lane::Run).await? };
        let gather = |_: &[Prepared]| {
            let mut group = Group::new();
            group.push_copy(&text, data)?;
            Ok(group)
        };
        let outcome = session.together(std::iter::empty(), gather).await;
        if alone {
            self.give_back(session);
        }
        outcome.map(|(answer, _)| answer.affected(0)).map_err(|failure| told_to_user(0, &text, failure))
    }

    async fn gathered(
        &self,
        text: &str,
        gather: impl FnMut(&[Prepared]) -> Result<Group, WireError>,
    ) -> Result<(Reply, Prepared)> {
        let session = self.session(Lane::Run).await?;
        let outcome = session.together(std::iter::once(text), gather).await;
        let (answer, mut prepared) = outcome.map_err(|failure| told_to_user(0, text, failure))?;
        Ok((answer, prepared.remove(0)))
    }
}

/// Reads the answer of one statement.
pub(crate) fn read<R: Rows>(answer: &Reply, place: usize, columns: &Arc<Columns>, text: &str) -> Result<R> {
    let read = R::read(Answered { answer, place, columns });
    read.map_err(|cause| Error::new(Kind::Rows { text: text.to_owned(), cause }))
}
