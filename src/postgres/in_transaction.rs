//! Transactions that the queue's methods accept: transactions of this library, of `tokio_postgres`
//! and of other drivers.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, Kind as TypeKind, ToSql, Type};

use crate::{
    error::{Error, Kind, Result},
    postgres::{
        rows::{Answered, Rows},
        transaction::{Pending, Transaction},
        wire::{Row, Wrong},
    },
};

/// The caller's transaction: either a [`Transaction`] of this library, or a transaction on the
/// program's own connection: a [`tokio_postgres::Transaction`], a
/// [`compat::Transaction`](super::compat::Transaction) or a [`ForeignTransaction`].
pub trait InTransaction: sealed::Fetch {}

impl InTransaction for Transaction {}
impl InTransaction for Arc<Transaction> {}
impl InTransaction for tokio_postgres::Transaction<'_> {}
impl<T: ForeignTransaction> InTransaction for T {}

/// The OID of a type, and a value of that type in PostgreSQL's binary format. `None` is null.
type Cell = (u32, Option<Bytes>);

/// A transaction of another driver, such as sqlx. Implement this trait for a type that wraps the
/// driver's transaction. Then pass a reference to [`enqueue_in`](crate::Queue::enqueue_in),
/// [`take_in`](crate::Queue::take_in), [`ack_in`](crate::Queue::ack_in) or another method that
/// accepts a transaction.
///
/// [`examples/transactions`](https://github.com/trunkline/trunkline/tree/main/examples/transactions)
/// contains implementations for sqlx, diesel-async and sea-orm.
pub trait ForeignTransaction: Sync {
    /// Runs one statement in the transaction and returns its rows.
    ///
    /// A parameter consists of the OID of its type and its value in the binary format. `None` is
    /// null. The columns of the returned rows have the same form. The driver must request results
    /// in the binary format.
    ///
    /// # Errors
    /// The driver's own error. The library's error returns it as its
    /// [`source`](std::error::Error::source).
    fn fetch_binary(
        &self,
        statement: &str,
        params: &[Cell],
    ) -> impl Future<Output = Result<Vec<Vec<Cell>>, Wrong>> + Send;
}

pub(crate) mod sealed {
    use super::{Arc, Error, Fetched, Result, ToSql, Type};

    /// A transaction that can run the library's own statements.
    pub trait Fetch: Sync {
        fn fetch(
            &self,
            text: &Arc<str>,
            params: &[(&(dyn ToSql + Sync), Type)],
        ) -> impl Future<Output = Result<Vec<Fetched>>> + Send;

        /// Marks the transaction as failed, so that it cannot be committed. Does nothing if the
        /// driver does not support this.
        fn fail(&self, error: Error) {
            let _ = error; // other drivers cannot mark a transaction as failed
        }
    }
}

pub struct Fetched(DriverRow);

enum DriverRow {
    Ours(Row),
    Theirs(tokio_postgres::Row),
    Foreign(Vec<Cell>),
}

impl Fetched {
    /// Reads a column from the result of one of the library's own statements. Returns an error if
    /// the type is wrong, because a faulty server must not crash the program.
    pub(crate) fn read<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T> {
        match &self.0 {
            DriverRow::Ours(row) => row.read(at),
            DriverRow::Theirs(row) => row.try_get(at).map_err(|cause| Error::new(Kind::Answer(cause.into()))),
            DriverRow::Foreign(row) => read_cell(row, at).map_err(|cause| Error::new(Kind::Answer(cause))),
        }
    }
}

impl From<Row> for Fetched {
    fn from(row: Row) -> Self {
        Self(DriverRow::Ours(row))
    }
}

impl Rows for Vec<Fetched> {
    fn read(answered: Answered<'_>) -> Result<Self, Wrong> {
        let rows = answered.answer.rows(answered.place, answered.columns);
        Ok(rows.into_iter().map(Fetched::from).collect())
    }
}

impl sealed::Fetch for Transaction {
    async fn fetch(&self, text: &Arc<str>, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Fetched>> {
        let params: Vec<_> = params.iter().map(|(value, _)| *value).collect();
        let rows: Pending<Vec<Fetched>> = self.send_text(text, &params).await?;
        rows.await
    }

    fn fail(&self, error: Error) {
        Transaction::fail(self, error);
    }
}

/// The transaction that [`Db::transact`](crate::Db::transact) passes to its work.
impl sealed::Fetch for Arc<Transaction> {
    async fn fetch(&self, text: &Arc<str>, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Fetched>> {
        sealed::Fetch::fetch(&**self, text, params).await
    }

    fn fail(&self, error: Error) {
        Transaction::fail(self, error);
    }
}

impl sealed::Fetch for tokio_postgres::Transaction<'_> {
    async fn fetch(&self, text: &Arc<str>, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Fetched>> {
        let rows = self.query_typed(text, params).await;
        let rows = rows.map_err(|error| Error::of_statement("the transaction", error))?;
        Ok(rows.into_iter().map(|row| Fetched(DriverRow::Theirs(row))).collect())
    }
}

impl<T: ForeignTransaction> sealed::Fetch for T {
    async fn fetch(&self, text: &Arc<str>, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Fetched>> {
        let params = params.iter().map(|(value, ty)| cell(*value, ty)).collect::<Result<Vec<Cell>, Wrong>>();
        let params = params.map_err(|cause| Error::new(Kind::Foreign(cause)))?;
        let rows = self.fetch_binary(text, &params).await.map_err(|cause| Error::new(Kind::Foreign(cause)))?;
        Ok(rows.into_iter().map(|row| Fetched(DriverRow::Foreign(row))).collect())
    }
}

fn cell(value: &(dyn ToSql + Sync), ty: &Type) -> Result<Cell, Wrong> {
    let mut out = BytesMut::new();
    let null = matches!(value.to_sql_checked(ty, &mut out)?, IsNull::Yes);
    Ok((ty.oid(), (!null).then(|| out.freeze())))
}

fn read_cell<'a, T: FromSql<'a>>(row: &'a [Cell], at: usize) -> Result<T, Wrong> {
    let (oid, value) = row.get(at).ok_or_else(|| format!("there is no column {at} among {}", row.len()))?;
    let Some(value) = value else { return T::from_sql_null(&Type::UNKNOWN) }; // some drivers do not pass the type of a null
    // Treats unknown types as arrays of payloads. All other types that are read here are built in.
    let array = || Type::new("an array".into(), *oid, TypeKind::Array(Type::UNKNOWN), String::new());
    let ty = Type::from_oid(*oid).unwrap_or_else(array);
    if !T::accepts(&ty) {
        return Err(format!("column {at} has the type {ty}").into());
    }
    T::from_sql(&ty, value)
}
