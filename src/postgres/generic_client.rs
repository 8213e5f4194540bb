//! The query methods of `tokio_postgres`, for programs that pass statements as text.

use postgres_types::{FromSql, ToSql, Type};

use crate::{
    error::Result,
    postgres::{
        db::Db,
        rows::{FromRow, Rows},
        statement::Statement,
        transaction::Transaction,
        wire::{Row, Values, Wrong},
    },
};

/// The query methods of `tokio_postgres`, with the same names and arguments, for a [`Db`] and a
/// [`Transaction`].
///
/// With this trait, a program can be migrated from `tokio_postgres` one statement at a time. Import
/// this trait instead of `tokio_postgres::GenericClient`. Each connection prepares the text of a
/// statement once. To decode rows into your own types, use [`Statement`] instead.
///
/// ```
/// use trunkline::{Db, Result, postgres::GenericClient};
///
/// async fn owner_of(client: &impl GenericClient, id: i64) -> Result<Option<String>> {
///     let row = client.query_opt("select owner from account where id = $1", &[&id]).await?;
///     Ok(row.map(|row| row.get("owner")))
/// }
///
/// async fn rename(db: &Db, id: i64, owner: &str) -> Result<Option<String>> {
///     let transaction = db.begin().await?;
///     let before = owner_of(&transaction, id).await?;
///     transaction.execute("update account set owner = $2 where id = $1", &[&id, &owner]).await?;
///     transaction.commit().await?;
///     Ok(before)
/// }
/// ```
pub trait GenericClient: Sync {
    /// Runs a statement and reads its reply. The other methods call this method.
    ///
    /// # Errors
    /// The errors of [`Db::run`] and [`Transaction::run`].
    fn answer<R: Rows + Send>(
        &self,
        text: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<R>> + Send;

    /// Runs a statement and returns all of its rows.
    fn query(&self, text: &str, params: &[&(dyn ToSql + Sync)]) -> impl Future<Output = Result<Vec<AnyRow>>> + Send {
        self.answer(text, params)
    }

    /// Runs a statement that returns exactly one row.
    fn query_one(&self, text: &str, params: &[&(dyn ToSql + Sync)]) -> impl Future<Output = Result<AnyRow>> + Send {
        self.answer(text, params)
    }

    /// Runs a statement that returns at most one row.
    fn query_opt(
        &self,
        text: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Option<AnyRow>>> + Send {
        self.answer(text, params)
    }

    /// Runs a statement and returns the number of rows that it affected.
    fn execute(&self, text: &str, params: &[&(dyn ToSql + Sync)]) -> impl Future<Output = Result<u64>> + Send {
        self.answer(text, params)
    }
}

impl GenericClient for Db {
    async fn answer<R: Rows + Send>(&self, text: &str, params: &[&(dyn ToSql + Sync)]) -> Result<R> {
        self.run(&Statement::of(text), params).await
    }
}

impl GenericClient for Transaction {
    async fn answer<R: Rows + Send>(&self, text: &str, params: &[&(dyn ToSql + Sync)]) -> Result<R> {
        self.run(&Statement::of(text), params).await
    }
}

/// A row whose columns are read by name or by number, like `tokio_postgres::Row`.
#[derive(Debug, Clone)]
pub struct AnyRow(Row);

impl AnyRow {
    /// Returns the value of a column. `column` is the column's name or its number, counted from 0.
    ///
    /// # Panics
    /// Panics if the column does not exist, or if its value does not fit the type.
    /// [`AnyRow::try_get`] returns an error instead.
    pub fn get<'a, T: FromSql<'a>>(&'a self, column: impl Column) -> T {
        self.try_get(column).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    /// Returns the value of a column. `column` is the column's name or its number, counted from 0.
    ///
    /// # Errors
    /// The column does not exist, or its value does not fit the type.
    pub fn try_get<'a, T: FromSql<'a>>(&'a self, column: impl Column) -> Result<T, Wrong> {
        self.0.try_get(column.at(self.columns())?)
    }

    /// Returns the names and types of the columns.
    #[must_use]
    pub fn columns(&self) -> &[(String, Type)] {
        self.0.columns()
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns().len()
    }

    /// Returns true if the row has no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns().is_empty()
    }
}

impl FromRow for AnyRow {
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok(Self(row.keep()))
    }
}

/// The number or the name of a column of an [`AnyRow`]. The comparison of names ignores case,
/// unless two names differ only in case.
pub trait Column: Copy {
    /// Returns the number of the column.
    ///
    /// # Errors
    /// The column does not exist.
    fn at(self, columns: &[(String, Type)]) -> Result<usize, Wrong>;
}

impl Column for usize {
    fn at(self, columns: &[(String, Type)]) -> Result<usize, Wrong> {
        let count = columns.len();
        (self < count).then_some(self).ok_or_else(|| format!("there is no column {self} among {count}").into())
    }
}

impl Column for &str {
    fn at(self, columns: &[(String, Type)]) -> Result<usize, Wrong> {
        let same = columns.iter().position(|(name, _)| name == self);
        let like = || columns.iter().position(|(name, _)| name.eq_ignore_ascii_case(self));
        same.or_else(like).ok_or_else(|| format!("there is no column {self:?}").into())
    }
}
