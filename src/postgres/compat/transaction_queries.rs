//! Methods of the client that a transaction also has.

use bytes::Buf;
use postgres_types::{BorrowToSql, Type};

use super::{
    cancel::CancelToken,
    copy_in::CopyInSink,
    copy_out::CopyOutStream,
    failure::Error,
    query::{Params, RowStream, TypedParams},
    row::{Row, SimpleQueryMessage},
    statement::{Statement, ToStatement},
    transaction::Transaction,
};

/// A transaction dereferences to its [`Client`](super::Client). These methods are still necessary
/// for paths like `Transaction::query`, and for code that imports the trait `GenericClient`. Such
/// code would otherwise call the methods of the trait, some of which accept fewer types.
impl Transaction<'_> {
    /// Prepares a statement like [`Client::prepare`](super::Client::prepare).
    ///
    /// # Errors
    /// The errors of [`Client::prepare`](super::Client::prepare).
    pub async fn prepare(&self, query: &str) -> Result<Statement, Error> {
        self.client().prepare(query).await
    }

    /// Prepares a statement like [`Client::prepare_typed`](super::Client::prepare_typed).
    ///
    /// # Errors
    /// The errors of [`Client::prepare_typed`](super::Client::prepare_typed).
    pub async fn prepare_typed(&self, query: &str, parameter_types: &[Type]) -> Result<Statement, Error> {
        self.client().prepare_typed(query, parameter_types).await
    }

    /// Runs a statement like [`Client::query`](super::Client::query).
    ///
    /// # Errors
    /// The errors of [`Client::query`](super::Client::query).
    pub async fn query<T>(&self, statement: &T, params: Params<'_>) -> Result<Vec<Row>, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.client().query(statement, params).await
    }

    /// Runs a statement like [`Client::query_one`](super::Client::query_one).
    ///
    /// # Errors
    /// The errors of [`Client::query_one`](super::Client::query_one).
    pub async fn query_one<T>(&self, statement: &T, params: Params<'_>) -> Result<Row, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.client().query_one(statement, params).await
    }

    /// Runs a statement like [`Client::query_opt`](super::Client::query_opt).
    ///
    /// # Errors
    /// The errors of [`Client::query_opt`](super::Client::query_opt).
    pub async fn query_opt<T>(&self, statement: &T, params: Params<'_>) -> Result<Option<Row>, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.client().query_opt(statement, params).await
    }

    /// Runs a statement like [`Client::query_raw`](super::Client::query_raw).
    ///
    /// # Errors
    /// The errors of [`Client::query_raw`](super::Client::query_raw).
    pub async fn query_raw<T, P, I>(&self, statement: &T, params: I) -> Result<RowStream, Error>
    where
        T: ?Sized + ToStatement,
        P: BorrowToSql,
        I: IntoIterator<Item = P>,
        I::IntoIter: ExactSizeIterator,
    {
        self.client().query_raw(statement, params).await
    }

    /// Runs a statement like [`Client::query_typed`](super::Client::query_typed).
    ///
    /// # Errors
    /// The errors of [`Client::query_typed`](super::Client::query_typed).
    pub async fn query_typed(&self, statement: &str, params: TypedParams<'_>) -> Result<Vec<Row>, Error> {
        self.client().query_typed(statement, params).await
    }

    /// Runs a statement like [`Client::query_typed_one`](super::Client::query_typed_one).
    ///
    /// # Errors
    /// The errors of [`Client::query_typed_one`](super::Client::query_typed_one).
    pub async fn query_typed_one(&self, statement: &str, params: TypedParams<'_>) -> Result<Row, Error> {
        self.client().query_typed_one(statement, params).await
    }

    /// Runs a statement like [`Client::query_typed_opt`](super::Client::query_typed_opt).
    ///
    /// # Errors
    /// The errors of [`Client::query_typed_opt`](super::Client::query_typed_opt).
    pub async fn query_typed_opt(&self, statement: &str, params: TypedParams<'_>) -> Result<Option<Row>, Error> {
        self.client().query_typed_opt(statement, params).await
    }

    /// Runs a statement like [`Client::query_typed_raw`](super::Client::query_typed_raw).
    ///
    /// # Errors
    /// The errors of [`Client::query_typed_raw`](super::Client::query_typed_raw).
    pub async fn query_typed_raw<P, I>(&self, query: &str, params: I) -> Result<RowStream, Error>
    where
        P: BorrowToSql,
        I: IntoIterator<Item = (P, Type)>,
    {
        self.client().query_typed_raw(query, params).await
    }

    /// Runs a statement like [`Client::execute`](super::Client::execute).
    ///
    /// # Errors
    /// The errors of [`Client::execute`](super::Client::execute).
    pub async fn execute<T>(&self, statement: &T, params: Params<'_>) -> Result<u64, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.client().execute(statement, params).await
    }

    /// Runs a statement like [`Client::execute_typed`](super::Client::execute_typed).
    ///
    /// # Errors
    /// The errors of [`Client::execute_typed`](super::Client::execute_typed).
    pub async fn execute_typed(&self, statement: &str, params: TypedParams<'_>) -> Result<u64, Error> {
        self.client().execute_typed(statement, params).await
    }

    /// Runs a statement like [`Client::execute_raw`](super::Client::execute_raw).
    ///
    /// # Errors
    /// The errors of [`Client::execute_raw`](super::Client::execute_raw).
    pub async fn execute_raw<P, I, T>(&self, statement: &T, params: I) -> Result<u64, Error>
    where
        T: ?Sized + ToStatement,
        P: BorrowToSql,
        I: IntoIterator<Item = P>,
        I::IntoIter: ExactSizeIterator,
    {
        self.client().execute_raw(statement, params).await
    }

    /// Begins a copy like [`Client::copy_in`](super::Client::copy_in).
    ///
    /// # Errors
    /// The errors of [`Client::copy_in`](super::Client::copy_in).
    pub async fn copy_in<T, U>(&self, statement: &T) -> Result<CopyInSink<U>, Error>
    where
        T: ?Sized + ToStatement,
        U: Buf + 'static + Send,
    {
        self.client().copy_in(statement).await
    }

    /// Begins a copy like [`Client::copy_out`](super::Client::copy_out).
    ///
    /// # Errors
    /// The errors of [`Client::copy_out`](super::Client::copy_out).
    pub async fn copy_out<T>(&self, statement: &T) -> Result<CopyOutStream, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.client().copy_out(statement).await
    }

    /// Runs statements like [`Client::simple_query`](super::Client::simple_query).
    ///
    /// # Errors
    /// The errors of [`Client::simple_query`](super::Client::simple_query).
    pub async fn simple_query(&self, query: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        self.client().simple_query(query).await
    }

    /// Runs statements like [`Client::batch_execute`](super::Client::batch_execute).
    ///
    /// # Errors
    /// The errors of [`Client::batch_execute`](super::Client::batch_execute).
    pub async fn batch_execute(&self, query: &str) -> Result<(), Error> {
        self.client().batch_execute(query).await
    }

    /// Returns a token like [`Client::cancel_token`](super::Client::cancel_token).
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        self.client().cancel_token()
    }
}
