//! The complete text of a server error from `tokio_postgres`.

use std::fmt;

/// A server error, printed with the detail and the hint that `tokio_postgres` omits.
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
