use std::sync::Arc;

use bytes::Bytes;
use postgres_types::{FromSql, Type, WrongType};

/// The parameters and columns of a statement, in types.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub parameters: Vec<Type>,
    pub columns: Vec<(String, Type)>,
}

/// One row, still as it came.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(super) columns: Arc<Columns>,
    /// A length and a value for each column.
    pub(super) values: Bytes,
}

type Wrong = Box<dyn std::error::Error + Send + Sync>;

impl Row {
    /// A column of one of our own statements, whose type is known.
    ///
    /// # Panics
    /// The statement has no such column, or one of another type: a mistake in this library that every use of it shows.
    pub fn get<'a, T: FromSql<'a>>(&'a self, at: usize) -> T {
        self.try_get(at).unwrap_or_else(|wrong| panic!("column {at}: {wrong}"))
    }

    pub fn try_get<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T, Wrong> {
        let (_, ty) = self.columns.columns.get(at).ok_or("there is no such column")?;
        if !T::accepts(ty) {
            return Err(WrongType::new::<T>(ty.clone()).into());
        }
        T::from_sql_nullable(ty, self.raw(at)?)
    }

    fn raw(&self, at: usize) -> Result<Option<&[u8]>, Wrong> {
        let mut rest = &self.values[..];
        for _ in 0..at {
            rest = value(rest)?.1;
        }
        Ok(value(rest)?.0)
    }
}

/// The value at the front, and what follows it.
fn value(bytes: &[u8]) -> Result<(Option<&[u8]>, &[u8]), Wrong> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or("the row ends early")?;
    match usize::try_from(i32::from_be_bytes(*length)) {
        Ok(length) => {
            let (value, rest) = rest.split_at_checked(length).ok_or("the row ends early")?;
            Ok((Some(value), rest))
        }
        Err(_) => Ok((None, rest)),
    }
}
