//! Methods of `Db` that run the user's statements, each call in its own transaction.

use std::sync::Arc;

use crate::{
    error::{Error, Kind, Result},
    postgres::{
        db::{Class, Db, told_to_user},
        params::Params,
        rows::{Answered, Rows},
        statement::Statement,
        wire::{Columns, Group, IN_CATALOG, Prepared, Reply, Wrong},
    },
};

impl Db {
    /// Runs a statement, and returns after the server has committed it. Concurrent calls share
    /// connections, and statements that are sent at the same time share one write. A caller never
    /// waits for another caller's reply.
    ///
    /// If the result is a `Vec`, each row is decoded while the server sends the next rows.
    ///
    /// If the future is dropped before it completes, the statement may still run.
    ///
    /// ```
    /// # use trunkline::{Db, Result, postgres::Statement};
    /// static OWNER: Statement<(i64,), Option<(String,)>> =
    ///     Statement::new("select owner from account where id = $1");
    ///
    /// async fn owner(db: &Db, id: i64) -> Result<Option<String>> {
    ///     Ok(db.run(&OWNER, (id,)).await?.map(|(owner,)| owner))
    /// }
    /// ```
    ///
    /// # Errors
    /// The server's error, whose code [`Error::sqlstate`] returns. An error if the parameters or
    /// the columns do not fit. An error with [`Error::is_outcome_unknown`] if the connection broke
    /// before the reply.
    pub async fn run<P: Params, R: Rows>(&self, statement: &Statement<P, R>, params: P) -> Result<R> {
        let text = statement.text();
        let session = self.session_for_one().await?;
        let gather = |prepared: &[Prepared]| {
            let mut group = Group::new();
            group.bound.rows = R::MOST;
            params.with(|params| group.push(&prepared[0], params)).map(|()| group)
        };
        if R::without_rows().is_some() {
            let outcome = session.row_by_row::<R>(text, gather).await;
            return outcome.map_err(|failure| told_to_user(0, text, failure))?.map_err(|cause| unreadable(text, cause));
        }
        let outcome = session.together(std::iter::once(text), gather).await;
        let (answer, prepared) = outcome.map_err(|failure| told_to_user(0, text, failure))?;
        read(&answer, 0, &prepared[0].columns, text)
    }

    /// Runs a statement like [`Db::run`], but with the `search_path` set to `pg_catalog` for this
    /// statement only. All names of other schemas in the statement must be qualified. With the
    /// session's own `search_path`, a catalog statement could call a function or operator that
    /// another role has created.
    ///
    /// # Errors
    /// The errors of [`Db::run`].
    #[doc(hidden)]
    pub async fn run_in_catalog<P: Params, R: Rows>(&self, statement: &Statement<P, R>, params: P) -> Result<R> {
        let text = statement.text();
        let session = self.session(Class::Run).await?;
        let gather = |prepared: &[Prepared]| {
            let mut group = Group::new();
            group.push(&prepared[0], &[])?; // the server reparses a statement if the path has changed
            params.with(|params| group.push(&prepared[1], params)).map(|()| group)
        };
        let outcome = session.together([IN_CATALOG, text].into_iter(), gather).await;
        let outcome = outcome.map_err(|failure| told_to_user(0, text, failure));
        match outcome {
            // Runs the statement again. It was prepared before the path was set, now has a
            // different meaning, and has had no effect yet.
            Err(error)
                if error.sqlstate().is_some_and(|state| state.code() == "0A000" || state.code().starts_with("42")) =>
            {
                let transaction = self.begin().await?;
                drop(transaction.send_text::<()>(IN_CATALOG, &[]).await?);
                let answer = transaction.run(statement, params).await?;
                transaction.commit().await?;
                Ok(answer)
            }
            outcome => {
                let (answer, prepared) = outcome?;
                read(&answer, 1, &prepared[1].columns, text)
            }
        }
    }

    /// Runs a statement once for each set of parameters, in order, in one round trip and one
    /// transaction. The results are in the order of the parameters.
    ///
    /// Each reply is decoded as soon as it arrives, while the server works on the next statements.
    /// The call returns after the server has committed all statements. All statements and all
    /// results are in memory at the same time. For larger amounts of data, make several calls
    /// within a [`Transaction`](crate::postgres::Transaction).
    ///
    /// # Errors
    /// The errors of [`Db::run`]. [`Error::failed_statement`] returns the index of the set of
    /// parameters that failed. If an error occurs, none of the statements has taken effect.
    pub async fn run_many<P: Params, R: Rows>(
        &self,
        statement: &Statement<P, R>,
        many: impl IntoIterator<Item = P>,
    ) -> Result<Vec<R>> {
        let many: Vec<P> = many.into_iter().collect();
        if many.is_empty() {
            return Ok(Vec::new());
        }
        let text = statement.text();
        let session = self.session(Class::Run).await?;
        let gather = |prepared: &[Prepared]| {
            let mut group = Group::new();
            for params in &many {
                params.with(|params| group.push(&prepared[0], params))?;
            }
            Ok(group)
        };
        let (mut answers, mut wrong) = (Vec::with_capacity(many.len()), None);
        let read_one = |prepared: &[Prepared], reply: &Reply, at: usize, place: usize| {
            if place == 0 {
                answers.clear(); // discards the results of an earlier try
                wrong = None;
            }
            if wrong.is_none() {
                match read(reply, at, &prepared[0].columns, text) {
                    Ok(answer) => answers.push(answer),
                    Err(error) => wrong = Some(error), // returned, unless the server reports an error later
                }
            }
        };
        let outcome = session.in_parts(std::iter::once(text), gather, read_one).await;
        outcome.map_err(|failure| told_to_user(0, text, failure))?;
        wrong.map_or(Ok(answers), Err)
    }

    /// Runs `copy … from stdin` with the given data, in one round trip and one transaction. The
    /// data must be in the text or binary format that the statement specifies. Returns the number
    /// of rows.
    ///
    /// # Errors
    /// The errors of [`Db::run`].
    pub async fn copy_in(&self, statement: &Statement<(), u64>, data: &[u8]) -> Result<u64> {
        let text = statement.text().into();
        let alone = self.copies_alone();
        let session = if alone { self.own_session().await? } else { self.session(Class::Run).await? };
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
}

pub(crate) fn read<R: Rows>(answer: &Reply, place: usize, columns: &Arc<Columns>, text: &str) -> Result<R> {
    R::read(Answered { answer, place, columns }).map_err(|cause| unreadable(text, cause))
}

pub(crate) fn unreadable(text: &str, cause: Wrong) -> Error {
    Error::new(Kind::Rows { text: text.to_owned(), cause })
}
