//! Transactions for the queue's verbs: those of this library, and those of `tokio_postgres`.

use std::sync::Arc;

use tokio_postgres::types::{FromSql, ToSql, Type};

use crate::{
    error::{Error, Kind, Result},
    postgres::{
        rows::{Answered, Rows},
        transaction::{Pending, Transaction},
        wire::{Row, Wrong},
    },
};

/// The caller's transaction: a [`Transaction`], or a [`tokio_postgres::Transaction`] on the
/// program's own connection.
pub trait InTransaction: sealed::Fetch {}

impl InTransaction for Transaction {}
impl InTransaction for tokio_postgres::Transaction<'_> {}

pub(crate) mod sealed {
    use super::{Arc, Fetched, Result, ToSql, Type};

    /// Runs one of the library's own statements.
    pub trait Fetch: Sync {
        fn fetch(
            &self,
            text: &Arc<str>,
            params: &[(&(dyn ToSql + Sync), Type)],
        ) -> impl Future<Output = Result<Vec<Fetched>>> + Send;
    }
}

/// A row, from either driver.
pub struct Fetched(Either);

enum Either {
    Ours(Row),
    Theirs(tokio_postgres::Row),
}

impl Fetched {
    /// Reads a column of one of the library's own statements. Returns an error if the type is
    /// wrong, because a faulty server must not crash the program.
    pub(crate) fn read<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T> {
        match &self.0 {
            Either::Ours(row) => row.read(at),
            Either::Theirs(row) => row.try_get(at).map_err(|cause| Error::new(Kind::Answer(cause.into()))),
        }
    }
}

impl Rows for Vec<Fetched> {
    fn read(answered: Answered<'_>) -> Result<Self, Wrong> {
        let rows = answered.answer.rows(answered.place, answered.columns);
        Ok(rows.into_iter().map(|row| Fetched(Either::Ours(row))).collect())
    }
}

impl sealed::Fetch for Transaction {
    async fn fetch(&self, text: &Arc<str>, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Fetched>> {
        let params: Vec<_> = params.iter().map(|(value, _)| *value).collect();
        let rows: Pending<Vec<Fetched>> = self.send_text(text, &params).await?;
        rows.await
    }
}

impl sealed::Fetch for tokio_postgres::Transaction<'_> {
    async fn fetch(&self, text: &Arc<str>, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Fetched>> {
        let rows = self.query_typed(text, params).await;
        let rows = rows.map_err(|error| Error::of_statement("the transaction", error))?;
        Ok(rows.into_iter().map(|row| Fetched(Either::Theirs(row))).collect())
    }
}
