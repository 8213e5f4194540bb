//! A trait for code that accepts both clients and transactions.

use std::pin::Pin;

use postgres_types::{BorrowToSql, Type};

use super::{
    client::Client,
    failure::Error,
    query::{Params, RowStream, TypedParams},
    row::{Row, SimpleQueryMessage},
    statement::{Statement, ToStatement},
    transaction::Transaction,
};

/// A future that is always `Send`, because its type does not depend on the types of the parameters.
type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Client {}
impl sealed::Sealed for Transaction<'_> {}

/// The methods that [`Client`] and [`Transaction`] share, with the names and arguments of
/// `tokio_postgres::GenericClient`. Other crates cannot implement this trait.
///
/// ```no_run
/// use trunkline::postgres::compat::{Client, Error, GenericClient};
///
/// async fn rename<C: GenericClient>(client: &C, id: i64, owner: &str) -> Result<u64, Error> {
///     client.execute("update account set owner = $2 where id = $1", &[&id, &owner]).await
/// }
///
/// # async fn run(client: &mut Client) -> Result<(), Error> {
/// rename(client, 1, "ada").await?;
/// let transaction = client.transaction().await?;
/// rename(&transaction, 2, "ada").await?;
/// transaction.commit().await
/// # }
/// ```
pub trait GenericClient: sealed::Sealed {
    /// Returns the client, or the client of the transaction.
    fn client(&self) -> &Client;

    /// Begins a transaction. Within a transaction, sets a savepoint.
    fn transaction(&mut self) -> Boxed<'_, Transaction<'_>>;

    /// Runs a statement like [`Client::execute`].
    fn execute<'a, T>(&'a self, query: &'a T, params: Params<'a>) -> Boxed<'a, u64>
    where
        T: ?Sized + ToStatement + Sync + Send,
    {
        Box::pin(self.client().execute(query, params))
    }

    /// Runs a statement like [`Client::execute_raw`].
    fn execute_raw<'a, P, I, T>(&'a self, statement: &'a T, params: I) -> Boxed<'a, u64>
    where
        T: ?Sized + ToStatement + Sync + Send,
        P: BorrowToSql + 'a,
        I: IntoIterator<Item = P> + Sync + Send + 'a,
        I::IntoIter: ExactSizeIterator,
    {
        Box::pin(self.client().execute_raw(statement, params))
    }

    /// Runs a statement like [`Client::execute_typed`].
    fn execute_typed<'a>(&'a self, statement: &'a str, params: TypedParams<'a>) -> Boxed<'a, u64> {
        Box::pin(self.client().execute_typed(statement, params))
    }

    /// Runs a statement like [`Client::query`].
    fn query<'a, T>(&'a self, query: &'a T, params: Params<'a>) -> Boxed<'a, Vec<Row>>
    where
        T: ?Sized + ToStatement + Sync + Send,
    {
        Box::pin(self.client().query(query, params))
    }

    /// Runs a statement like [`Client::query_one`].
    fn query_one<'a, T>(&'a self, statement: &'a T, params: Params<'a>) -> Boxed<'a, Row>
    where
        T: ?Sized + ToStatement + Sync + Send,
    {
        Box::pin(self.client().query_one(statement, params))
    }

    /// Runs a statement like [`Client::query_opt`].
    fn query_opt<'a, T>(&'a self, statement: &'a T, params: Params<'a>) -> Boxed<'a, Option<Row>>
    where
        T: ?Sized + ToStatement + Sync + Send,
    {
        Box::pin(self.client().query_opt(statement, params))
    }

    /// Runs a statement like [`Client::query_raw`].
    fn query_raw<'a, T, P, I>(&'a self, statement: &'a T, params: I) -> Boxed<'a, RowStream>
    where
        T: ?Sized + ToStatement + Sync + Send,
        P: BorrowToSql + 'a,
        I: IntoIterator<Item = P> + Sync + Send + 'a,
        I::IntoIter: ExactSizeIterator,
    {
        Box::pin(self.client().query_raw(statement, params))
    }

    /// Runs a statement like [`Client::query_typed`].
    fn query_typed<'a>(&'a self, statement: &'a str, params: TypedParams<'a>) -> Boxed<'a, Vec<Row>> {
        Box::pin(self.client().query_typed(statement, params))
    }

    /// Runs a statement like [`Client::query_typed_one`].
    fn query_typed_one<'a>(&'a self, statement: &'a str, params: TypedParams<'a>) -> Boxed<'a, Row> {
        Box::pin(self.client().query_typed_one(statement, params))
    }

    /// Runs a statement like [`Client::query_typed_opt`].
    fn query_typed_opt<'a>(&'a self, statement: &'a str, params: TypedParams<'a>) -> Boxed<'a, Option<Row>> {
        Box::pin(self.client().query_typed_opt(statement, params))
    }

    /// Runs a statement like [`Client::query_typed_raw`].
    fn query_typed_raw<'a, P, I>(&'a self, statement: &'a str, params: I) -> Boxed<'a, RowStream>
    where
        P: BorrowToSql + 'a,
        I: IntoIterator<Item = (P, Type)> + Sync + Send + 'a,
    {
        Box::pin(self.client().query_typed_raw(statement, params))
    }

    /// Prepares a statement like [`Client::prepare`].
    fn prepare<'a>(&'a self, query: &'a str) -> Boxed<'a, Statement> {
        Box::pin(self.client().prepare(query))
    }

    /// Prepares a statement like [`Client::prepare_typed`].
    fn prepare_typed<'a>(&'a self, query: &'a str, parameter_types: &'a [Type]) -> Boxed<'a, Statement> {
        Box::pin(self.client().prepare_typed(query, parameter_types))
    }

    /// Runs statements like [`Client::batch_execute`].
    fn batch_execute<'a>(&'a self, query: &'a str) -> Boxed<'a, ()> {
        Box::pin(self.client().batch_execute(query))
    }

    /// Runs statements like [`Client::simple_query`].
    fn simple_query<'a>(&'a self, query: &'a str) -> Boxed<'a, Vec<SimpleQueryMessage>> {
        Box::pin(self.client().simple_query(query))
    }
}

impl GenericClient for Client {
    fn client(&self) -> &Client {
        self
    }

    fn transaction(&mut self) -> Boxed<'_, Transaction<'_>> {
        Box::pin(self.transaction())
    }
}

impl GenericClient for Transaction<'_> {
    fn client(&self) -> &Client {
        self.client()
    }

    fn transaction(&mut self) -> Boxed<'_, Transaction<'_>> {
        Box::pin(self.transaction())
    }
}
