//! The result of a statement. Rows are decoded from the connection's buffer directly into the
//! caller's values.

use std::sync::Arc;

use bytes::Bytes;
use postgres_types::FromSqlOwned;

use crate::postgres::wire::{Columns, Reply, Values, Wrong, frames};

/// A value of the caller's type that is read from a row, column by column from left to right.
///
/// This trait is implemented for tuples of up to ten columns. To implement it for your own type,
/// read each column in turn:
///
/// ```
/// # use trunkline::postgres::{FromRow, Values};
/// struct Account { id: i64, owner: String }
///
/// impl FromRow for Account {
///     fn from_row(
///         row: &mut Values<'_>,
///     ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
///         Ok(Self { id: row.read()?, owner: row.read()? })
///     }
/// }
/// ```
pub trait FromRow: Sized {
    /// Reads a row.
    ///
    /// # Errors
    /// A column is missing or null, or its type does not fit. The caller of the statement receives
    /// an error that names the column.
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong>;
}

/// The result of a statement. With a row type `T` that implements [`FromRow`], the result can be
/// one row (`T`), at most one row (`Option<T>`), all rows (`Vec<T>`), the number of affected rows
/// (`u64`), or nothing (`()`).
pub trait Rows: Sized {
    /// The maximum number of rows in a reply, if there is one. A large reply with more rows is
    /// discarded, and the result is an error.
    const MOST: Option<usize> = None;

    /// Reads a reply.
    ///
    /// # Errors
    /// The number of rows is not the expected one, or a row cannot be read.
    fn read(answered: Answered<'_>) -> Result<Self, Wrong>;

    /// Returns a result without rows, if [`Rows::add`] can add rows to it one by one.
    #[doc(hidden)]
    #[must_use]
    fn without_rows() -> Option<Self> {
        None
    }

    /// Adds a row to the result. The server may still be sending the next rows.
    #[doc(hidden)]
    fn add(&mut self, _row: Values<'_>) -> Result<(), Wrong> {
        Ok(())
    }
}

/// The reply to one statement.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'a> {
    pub(crate) answer: &'a Reply,
    pub(crate) place: usize,
    pub(crate) columns: &'a Arc<Columns>,
}

impl<'a> Answered<'a> {
    /// Returns the rows in the order in which the server sent them.
    #[must_use]
    pub fn rows(self) -> impl ExactSizeIterator<Item = Values<'a>> {
        self.answer.each(self.place, self.columns)
    }

    /// Returns the number of rows that were inserted, updated, deleted, copied or selected.
    #[must_use]
    pub fn affected(self) -> u64 {
        self.answer.affected(self.place)
    }
}

pub(crate) fn whole<T: FromRow>(mut row: Values<'_>) -> Result<T, Wrong> {
    let value = T::from_row(&mut row)?;
    match row.columns().len() - row.at() {
        0 => Ok(value),
        left => Err(format!("the statement has {} columns, {left} more than were read", row.columns().len()).into()),
    }
}

/// Adds the rows in these messages to `rows`. If a row cannot be read, replaces `rows` with the
/// error and ignores all later rows.
pub(crate) fn add_rows<R: Rows>(rows: &mut Result<R, Wrong>, columns: &Arc<Columns>, messages: &[Bytes]) {
    let arrived = messages.iter().flat_map(|chunk| frames(chunk)).filter(|(kind, _)| *kind == b'D');
    for (_, body) in arrived {
        let Ok(into) = rows else { return };
        let row = Values::new(columns, body.get(2..).unwrap_or_default());
        if let Err(wrong) = into.add(row) {
            *rows = Err(wrong);
        }
    }
}

impl Rows for () {
    fn read(_: Answered<'_>) -> Result<Self, Wrong> {
        Ok(())
    }
}

impl Rows for u64 {
    fn read(answered: Answered<'_>) -> Result<Self, Wrong> {
        Ok(answered.affected())
    }
}

impl<T: FromRow> Rows for T {
    const MOST: Option<usize> = Some(1);

    fn read(answered: Answered<'_>) -> Result<Self, Wrong> {
        let mut rows = answered.rows();
        match (rows.next(), rows.len()) {
            (Some(row), 0) => whole(row),
            (one, more) => Err(format!("one row was expected, not {}", more + usize::from(one.is_some())).into()),
        }
    }
}

impl<T: FromRow> Rows for Option<T> {
    const MOST: Option<usize> = Some(1);

    fn read(answered: Answered<'_>) -> Result<Self, Wrong> {
        let mut rows = answered.rows();
        match (rows.next(), rows.len()) {
            (row, 0) => row.map(whole).transpose(),
            (_, more) => Err(format!("one row at most was expected, not {}", more + 1).into()),
        }
    }
}

impl<T: FromRow> Rows for Vec<T> {
    fn read(answered: Answered<'_>) -> Result<Self, Wrong> {
        answered.rows().map(whole).collect()
    }

    fn without_rows() -> Option<Self> {
        Some(Self::new())
    }

    fn add(&mut self, row: Values<'_>) -> Result<(), Wrong> {
        self.push(whole(row)?);
        Ok(())
    }
}

impl<A: FromSqlOwned> FromRow for (A,) {
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok((row.read()?,))
    }
}

impl<A: FromSqlOwned, B: FromSqlOwned> FromRow for (A, B) {
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok((row.read()?, row.read()?))
    }
}

impl<A: FromSqlOwned, B: FromSqlOwned, C: FromSqlOwned> FromRow for (A, B, C) {
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok((row.read()?, row.read()?, row.read()?))
    }
}

impl<A: FromSqlOwned, B: FromSqlOwned, C: FromSqlOwned, D: FromSqlOwned> FromRow for (A, B, C, D) {
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok((row.read()?, row.read()?, row.read()?, row.read()?))
    }
}

impl<A: FromSqlOwned, B: FromSqlOwned, C: FromSqlOwned, D: FromSqlOwned, E: FromSqlOwned> FromRow for (A, B, C, D, E) {
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok((row.read()?, row.read()?, row.read()?, row.read()?, row.read()?))
    }
}

impl<A: FromSqlOwned, B: FromSqlOwned, C: FromSqlOwned, D: FromSqlOwned, E: FromSqlOwned, F: FromSqlOwned> FromRow
    for (A, B, C, D, E, F)
{
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok((row.read()?, row.read()?, row.read()?, row.read()?, row.read()?, row.read()?))
    }
}

impl<
    A: FromSqlOwned,
    B: FromSqlOwned,
    C: FromSqlOwned,
    D: FromSqlOwned,
    E: FromSqlOwned,
    F: FromSqlOwned,
    G: FromSqlOwned,
> FromRow for (A, B, C, D, E, F, G)
{
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok((row.read()?, row.read()?, row.read()?, row.read()?, row.read()?, row.read()?, row.read()?))
    }
}

impl<
    A: FromSqlOwned,
    B: FromSqlOwned,
    C: FromSqlOwned,
    D: FromSqlOwned,
    E: FromSqlOwned,
    F: FromSqlOwned,
    G: FromSqlOwned,
    H: FromSqlOwned,
> FromRow for (A, B, C, D, E, F, G, H)
{
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok((row.read()?, row.read()?, row.read()?, row.read()?, row.read()?, row.read()?, row.read()?, row.read()?))
    }
}

impl<
    A: FromSqlOwned,
    B: FromSqlOwned,
    C: FromSqlOwned,
    D: FromSqlOwned,
    E: FromSqlOwned,
    F: FromSqlOwned,
    G: FromSqlOwned,
    H: FromSqlOwned,
    I: FromSqlOwned,
> FromRow for (A, B, C, D, E, F, G, H, I)
{
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok((
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
        ))
    }
}

impl<
    A: FromSqlOwned,
    B: FromSqlOwned,
    C: FromSqlOwned,
    D: FromSqlOwned,
    E: FromSqlOwned,
    F: FromSqlOwned,
    G: FromSqlOwned,
    H: FromSqlOwned,
    I: FromSqlOwned,
    J: FromSqlOwned,
> FromRow for (A, B, C, D, E, F, G, H, I, J)
{
    fn from_row(row: &mut Values<'_>) -> Result<Self, Wrong> {
        Ok((
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
            row.read()?,
        ))
    }
}
