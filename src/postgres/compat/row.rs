//! Rows, whose columns are read by number or by name.

use std::{fmt, sync::Arc};

use postgres_types::FromSql;

use super::{
    failure::Error,
    statement::{Column, Statement},
};
use crate::postgres::wire;

/// A row of a reply.
#[derive(Clone)]
pub struct Row {
    pub(super) statement: Statement,
    pub(super) values: wire::Row,
}

/// The number or the name of a column.
pub trait RowIndex {
    /// Returns the position of the column among columns with these names.
    fn position<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Option<usize>;
}

impl RowIndex for usize {
    fn position<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Option<usize> {
        (*self < names.count()).then_some(*self)
    }
}

impl RowIndex for str {
    fn position<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Option<usize> {
        let same = names.clone().position(|name| name == self);
        same.or_else(|| names.clone().position(|name| name.eq_ignore_ascii_case(self)))
    }
}

impl<T: RowIndex + ?Sized> RowIndex for &T {
    fn position<'a>(&self, names: impl Iterator<Item = &'a str> + Clone) -> Option<usize> {
        T::position(self, names)
    }
}

impl Row {
    /// Returns the columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        self.statement.columns()
    }

    /// Returns true if the row has no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns().is_empty()
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns().len()
    }

    /// Returns the value of a column. `index` is the column's number, counted from 0, or its name.
    ///
    /// # Panics
    /// Panics if the column does not exist, or if its value does not fit the type.
    #[track_caller]
    pub fn get<'a, I: RowIndex + fmt::Display, T: FromSql<'a>>(&'a self, index: I) -> T {
        match self.try_get(&index) {
            Ok(value) => value,
            Err(error) => panic!("error retrieving column {index}: {error}"),
        }
    }

    /// Returns the value of a column. `index` is the column's number, counted from 0, or its name.
    ///
    /// # Errors
    /// The column does not exist, or its value does not fit the type.
    pub fn try_get<'a, I: RowIndex + fmt::Display, T: FromSql<'a>>(&'a self, index: I) -> Result<T, Error> {
        let at = index.position(self.columns().iter().map(Column::name));
        let at = at.ok_or_else(|| Error::column(index.to_string()))?;
        self.values.try_get(at).map_err(|cause| Error::from_sql(at, cause))
    }

    /// Returns the total size of all values in bytes.
    #[must_use]
    pub fn raw_size_bytes(&self) -> usize {
        self.values.bytes()
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Row").field("columns", &self.columns()).finish()
    }
}

/// The name of a column of a [`SimpleQueryRow`].
#[derive(Debug, Clone)]
pub struct SimpleColumn(pub(super) String);

impl SimpleColumn {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// A row in the text format.
#[derive(Debug, Clone)]
pub struct SimpleQueryRow {
    pub(super) columns: Arc<[SimpleColumn]>,
    pub(super) values: Vec<Option<String>>,
}

impl SimpleQueryRow {
    /// Returns the columns.
    #[must_use]
    pub fn columns(&self) -> &[SimpleColumn] {
        &self.columns
    }

    /// Returns true if the row has no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the value of a column. `index` is the column's number, counted from 0, or its name.
    ///
    /// # Panics
    /// Panics if the column does not exist.
    #[track_caller]
    pub fn get<I: RowIndex + fmt::Display>(&self, index: I) -> Option<&str> {
        match self.try_get(&index) {
            Ok(value) => value,
            Err(error) => panic!("error retrieving column {index}: {error}"),
        }
    }

    /// Returns the value of a column. `index` is the column's number, counted from 0, or its name.
    ///
    /// # Errors
    /// The column does not exist.
    pub fn try_get<I: RowIndex + fmt::Display>(&self, index: I) -> Result<Option<&str>, Error> {
        let at = index.position(self.columns.iter().map(SimpleColumn::name));
        let value = at.and_then(|at| self.values.get(at)).ok_or_else(|| Error::column(index.to_string()))?;
        Ok(value.as_deref())
    }
}

/// A part of the reply to a text with several statements.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SimpleQueryMessage {
    /// A row.
    Row(SimpleQueryRow),
    /// The end of a statement, with the number of rows.
    CommandComplete(u64),
    /// The columns of the rows that follow.
    RowDescription(Arc<[SimpleColumn]>),
}
