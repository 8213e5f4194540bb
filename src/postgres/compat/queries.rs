//! Methods of the client that run statements with parameters.

use postgres_types::{BorrowToSql, FromSqlOwned, Type};

use super::{
    client::Client,
    failure::Error,
    query::{self, Params, RowStream, TypedParams},
    row::Row,
    statement::ToStatement,
};

impl Client {
    /// Runs a statement and returns its rows.
    ///
    /// # Errors
    /// The errors of [`Client::prepare`]. Also an error if the parameters do not fit.
    pub async fn query<T: ?Sized + ToStatement>(&self, statement: &T, params: Params<'_>) -> Result<Vec<Row>, Error> {
        query::rows(&self.inner, statement.form(), params).await
    }

    /// Runs a statement that returns one column, and returns the values of this column.
    ///
    /// # Errors
    /// The errors of [`Client::query`]. Also an error if there is not exactly one column.
    pub async fn query_scalar<R: FromSqlOwned, T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        params: Params<'_>,
    ) -> Result<Vec<R>, Error> {
        self.query(statement, params).await?.iter().map(query::scalar).collect()
    }

    /// Runs a statement that returns exactly one row.
    ///
    /// # Errors
    /// The errors of [`Client::query`]. Also an error if there is not exactly one row.
    pub async fn query_one<T: ?Sized + ToStatement>(&self, statement: &T, params: Params<'_>) -> Result<Row, Error> {
        self.query_opt(statement, params).await?.ok_or_else(Error::row_count)
    }

    /// Runs a statement that returns exactly one row with one column.
    ///
    /// # Errors
    /// The errors of [`Client::query_one`]. Also an error if there is not exactly one column.
    pub async fn query_one_scalar<R: FromSqlOwned, T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        params: Params<'_>,
    ) -> Result<R, Error> {
        query::scalar(&self.query_one(statement, params).await?)
    }

    /// Runs a statement that returns at most one row.
    ///
    /// # Errors
    /// The errors of [`Client::query`]. Also an error if there are several rows.
    pub async fn query_opt<T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        params: Params<'_>,
    ) -> Result<Option<Row>, Error> {
        query::at_most_one(self.query(statement, params).await?)
    }

    /// Runs a statement that returns at most one row with one column.
    ///
    /// # Errors
    /// The errors of [`Client::query_opt`]. Also an error if there is not exactly one column.
    pub async fn query_opt_scalar<R: FromSqlOwned, T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        params: Params<'_>,
    ) -> Result<Option<R>, Error> {
        self.query_opt(statement, params).await?.as_ref().map(query::scalar).transpose()
    }

    /// Runs a statement, and returns a stream of its rows.
    ///
    /// # Errors
    /// The errors of [`Client::prepare`]. Also an error if the parameters do not fit. The stream
    /// returns the errors of the statement.
    pub async fn query_raw<T, P, I>(&self, statement: &T, params: I) -> Result<RowStream, Error>
    where
        T: ?Sized + ToStatement,
        P: BorrowToSql,
        I: IntoIterator<Item = P>,
        I::IntoIter: ExactSizeIterator,
    {
        query::stream(&self.inner, statement.form(), params).await
    }

    /// Prepares and runs a statement in one round trip. `params` contains the types of all
    /// parameters.
    ///
    /// # Errors
    /// The errors of [`Client::query`].
    pub async fn query_typed(&self, query: &str, params: TypedParams<'_>) -> Result<Vec<Row>, Error> {
        query::typed(&self.inner, query, params.iter().map(|(value, ty)| (*value, ty.clone()))).await
    }

    /// Runs a statement like [`Client::query_typed`], and returns its only row.
    ///
    /// # Errors
    /// The errors of [`Client::query_one`].
    pub async fn query_typed_one(&self, query: &str, params: TypedParams<'_>) -> Result<Row, Error> {
        self.query_typed_opt(query, params).await?.ok_or_else(Error::row_count)
    }

    /// Runs a statement like [`Client::query_typed`], and returns its row, if there is one.
    ///
    /// # Errors
    /// The errors of [`Client::query_opt`].
    pub async fn query_typed_opt(&self, query: &str, params: TypedParams<'_>) -> Result<Option<Row>, Error> {
        query::at_most_one(self.query_typed(query, params).await?)
    }

    /// Runs a statement like [`Client::query_typed`], and returns its rows as a stream.
    ///
    /// # Errors
    /// The errors of [`Client::query`].
    pub async fn query_typed_raw<P, I>(&self, query: &str, params: I) -> Result<RowStream, Error>
    where
        P: BorrowToSql,
        I: IntoIterator<Item = (P, Type)>,
    {
        query::typed_stream(&self.inner, query, params).await
    }

    /// Runs a statement and returns the number of rows that it affected.
    ///
    /// # Errors
    /// The errors of [`Client::query`].
    pub async fn execute<T: ?Sized + ToStatement>(&self, statement: &T, params: Params<'_>) -> Result<u64, Error> {
        query::affected(&self.inner, statement.form(), params).await
    }

    /// Runs a statement like [`Client::query_typed`], and returns the number of affected rows.
    ///
    /// # Errors
    /// The errors of [`Client::query`].
    pub async fn execute_typed(&self, query: &str, params: TypedParams<'_>) -> Result<u64, Error> {
        query::typed_affected(&self.inner, query, params.iter().map(|(value, ty)| (*value, ty.clone()))).await
    }

    /// Runs a statement like [`Client::execute`]. The parameters come from an iterator of values or
    /// references.
    ///
    /// # Errors
    /// The errors of [`Client::query`].
    pub async fn execute_raw<T, P, I>(&self, statement: &T, params: I) -> Result<u64, Error>
    where
        T: ?Sized + ToStatement,
        P: BorrowToSql,
        I: IntoIterator<Item = P>,
        I::IntoIter: ExactSizeIterator,
    {
        query::affected_raw(&self.inner, statement.form(), params).await
    }
}
