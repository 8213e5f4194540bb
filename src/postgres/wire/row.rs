//! Rows in the binary format. The caller decodes them column by column.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::{BufMut, Bytes, BytesMut};
use postgres_types::{FromSql, Type, WrongType};

use super::WireError;
use crate::error::{Error, Kind, Result};

/// The time for which a description is not doubted. A program whose types do not fit prepares its
/// statement again after this time, and not at each use.
const TRUSTED: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the columns of an answer have no other name")]
pub(crate) struct Columns {
    pub parameters: Vec<Type>,
    pub columns: Vec<(String, Type)>,
    /// The average row size in the last stream of this statement, or 0 if there was no stream.
    pub row_bytes: RowBytes,
    /// Properties of each column that are not needed for decoding. Empty if the server has not
    /// described them.
    pub facts: Vec<ColumnFacts>,
    /// The time of the server's description, if this value comes from one.
    pub described: Option<Instant>,
    /// The columns whose types the statement's text names, if it was made from a description.
    named_types: Mutex<Option<Arc<Self>>>,
    /// True if the statement may have other types now, so that it must be described again.
    outdated: AtomicBool,
}

/// Properties of a column that are not needed for decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnFacts {
    /// The OID of the column's table, or 0.
    pub table: u32,
    /// The number of the column in its table, or 0.
    pub number: i16,
    pub modifier: i32,
}

impl Columns {
    pub fn new(parameters: Vec<Type>, columns: Vec<(String, Type)>) -> Self {
        Self { parameters, columns, ..Self::default() }
    }

    pub fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::Relaxed)
    }

    pub fn set_outdated(&self) {
        self.outdated.store(true, Ordering::Relaxed);
        if let Some(types) = self.named_types.lock().unwrap_or_else(PoisonError::into_inner).take() {
            types.set_outdated();
        }
    }

    /// Records that the statement's text names the types of these columns. They become outdated
    /// with this statement.
    pub fn names_types_of(&self, types: Arc<Self>) {
        *self.named_types.lock().unwrap_or_else(PoisonError::into_inner) = Some(types);
    }

    /// Makes the next use of the statement describe it again, because a value does not fit its
    /// type. The server does not report that the type has changed: that of the table's column to
    /// which a parameter belongs, or the labels or fields of a user's type.
    pub fn doubt(&self) {
        if self.described.is_some_and(|at| at.elapsed() >= TRUSTED) {
            self.set_outdated();
        }
    }

    /// Doubts the types of the parameters if a parameter of another type was the failure.
    pub fn doubt_after(&self, failure: &WireError) {
        if matches!(failure, WireError::Encode(cause) if cause.is::<WrongType>()) {
            self.doubt();
        }
    }
}

/// The average size of a statement's rows in bytes, if it is known.
#[derive(Debug, Default)]
pub(crate) struct RowBytes(AtomicUsize);

impl RowBytes {
    pub fn get(&self) -> Option<usize> {
        Some(self.0.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    pub fn set(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(super) columns: Arc<Columns>,
    /// The encoded columns. Each column consists of a length and a value.
    pub(super) values: Bytes,
}

/// The reason why a column cannot be read as the requested type.
pub type Wrong = Box<dyn std::error::Error + Send + Sync>;

impl Row {
    /// Reads a column from the result of one of the library's own statements. Returns an error if
    /// the type is wrong, because a faulty server must not crash the program.
    pub fn read<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T> {
        self.try_get(at).map_err(|cause| Error::new(Kind::Answer(cause)))
    }

    pub fn columns(&self) -> &[(String, Type)] {
        &self.columns.columns
    }

    /// Creates a row from the body of a `DataRow` message.
    pub fn arrived(columns: Arc<Columns>, mut body: Bytes) -> Self {
        Self { columns, values: body.split_off(body.len().min(2)) }
    }

    /// Creates a row from encoded columns. Each column consists of a length and a value.
    #[cfg(test)]
    pub fn of(columns: Arc<Columns>, values: Bytes) -> Self {
        Self { columns, values }
    }

    pub fn bytes(&self) -> usize {
        self.values.len()
    }

    /// Returns a copy of the row with other values. For each column, `cell` receives the column's
    /// number and its old value, and appends the new value to the buffer. If `cell` returns
    /// `false`, the new value is null.
    pub fn rewritten(&self, mut cell: impl FnMut(usize, Option<&[u8]>, &mut BytesMut) -> bool) -> Result<Self, Wrong> {
        let mut old = Values::new(&self.columns, &self.values);
        let mut values = BytesMut::new();
        for column in 0..self.columns.columns.len() {
            let (value, at) = (old.skip()?, values.len());
            values.put_i32(-1);
            if cell(column, value, &mut values) {
                let length = (values.len() - at - 4) as i32;
                values[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(Self { columns: self.columns.clone(), values: values.freeze() })
    }

    pub fn try_get<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T, Wrong> {
        let mut values = Values::new(&self.columns, &self.values);
        for _ in 0..at {
            values.skip()?;
        }
        values.read()
    }
}

pub(crate) fn only(rows: &[Row]) -> Result<&Row> {
    rows.first().ok_or_else(|| Error::new(Kind::Answer("it has no row".into())))
}

/// The columns of a row, read from left to right.
#[derive(Debug)]
pub struct Values<'a> {
    columns: &'a Arc<Columns>,
    at: usize,
    rest: &'a [u8],
}

impl<'a> Values<'a> {
    pub(crate) fn new(columns: &'a Arc<Columns>, bytes: &'a [u8]) -> Self {
        Self { columns, at: 0, rest: bytes }
    }

    /// Returns the names and types of all columns.
    #[must_use]
    pub fn columns(&self) -> &'a [(String, Type)] {
        &self.columns.columns
    }

    /// Returns the row without decoding it. Call this method before any column is read.
    pub(crate) fn keep(&mut self) -> Row {
        self.at = self.columns.columns.len();
        Row { columns: self.columns.clone(), values: Bytes::copy_from_slice(std::mem::take(&mut self.rest)) }
    }

    /// Returns the number of columns that have been read so far.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Reads the next column. The value may borrow from the connection's buffer.
    ///
    /// # Errors
    /// There are no more columns, the column is null, or its type does not fit.
    pub fn read<T: FromSql<'a>>(&mut self) -> Result<T, Wrong> {
        let columns = self.columns();
        let (name, ty) = columns
            .get(self.at)
            .ok_or_else(|| format!("the statement has {} columns, fewer than are read", columns.len()))?;
        let value = if T::accepts(ty) {
            self.skip().and_then(|value| T::from_sql_nullable(ty, value))
        } else {
            if Type::from_oid(ty.oid()).is_none() {
                self.columns.doubt(); // the server reports any other change
            }
            Err(format!(
                "{}; cast it in the statement, for example to text, or implement FromSql for a type of your own",
                WrongType::new::<T>(ty.clone())
            )
            .into())
        };
        value.map_err(|wrong| format!("column {name:?}: {wrong}").into())
    }

    fn skip(&mut self) -> Result<Option<&'a [u8]>, Wrong> {
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or("the row is truncated")?;
        self.at += 1;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = rest;
            return Ok(None);
        };
        let (value, rest) = rest.split_at_checked(length).ok_or("the row is truncated")?;
        self.rest = rest;
        Ok(Some(value))
    }
}
