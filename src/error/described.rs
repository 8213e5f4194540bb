//! A server's error from `tokio_postgres`, with its complete text.

use std::fmt;

/// A server's error with its detail and hint, which `tokio_postgres` omits.
#[derive(Debug)]
pub(crate) struct Described(pub tokio_postgres::Error);

impl fmt::Display for Described {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(db) = self.0.as_db_error() else { return write!(out, "{}", self.0) };
        write!(out, "{}", db.message())?;
        db.detail().map_or(Ok(()), |detail| write!(out, " ({detail})"))?;
        db.hint().map_or(Ok(()), |hint| write!(out, ". {hint}"))
    }
}

impl std::error::Error for Described {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
