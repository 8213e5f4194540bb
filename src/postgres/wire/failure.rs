use std::{error::Error as StdError, fmt, sync::Arc};

use tokio_postgres::error::SqlState;

use crate::error::server::ServerError;

/// Why a group has no answer that can be used.
#[derive(Debug, Clone)]
pub(crate) enum WireError {
    /// The server refused the statement of that place in its group (one past the last, without a
    /// text: the commit); the whole group was rolled back, for certain.
    Server { statement: usize, text: Option<Arc<str>>, error: Arc<ServerError> },
    /// The connection ended before the answer, and why, where that is known: the outcome is
    /// unknown.
    Lost(Option<Arc<ServerError>>),
    /// A parameter cannot be written; nothing was sent.
    Encode(Arc<dyn StdError + Send + Sync>),
    /// The server said something that is not the protocol.
    Protocol(&'static str),
    /// The group left a transaction open where others come next: the connection was closed, and the
    /// server rolls back.
    LeftOpen,
    /// The reply is larger than this many bytes; the statement took effect.
    TooLarge(usize),
    /// The reply has more rows than the statement can return; the statement took effect.
    TooManyRows(usize),
}

impl WireError {
    pub fn encode(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Encode(Arc::from(cause.into()))
    }

    /// The statement was prepared for something that is no longer so. Nothing of its group has
    /// happened, so that it may be prepared again and run again: a type that does not fit may be
    /// that of a table which was dropped and created again.
    pub fn is_outdated(&self) -> bool {
        let Self::Server { error, .. } = self else { return false };
        [SqlState::FEATURE_NOT_SUPPORTED, SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DATATYPE_MISMATCH]
            .contains(&error.code)
    }

    /// "Current transaction is aborted": an earlier error of the group has the reason.
    pub fn only_follows(&self) -> bool {
        matches!(self, Self::Server { error, .. } if error.code == SqlState::IN_FAILED_SQL_TRANSACTION)
    }

    /// The same of a statement that could not be prepared, which is known by its place among
    /// others.
    pub fn of_statement(self, statement: usize, text: &str) -> Self {
        match self {
            Self::Server { error, .. } => Self::Server { statement, text: Some(text.into()), error },
            other => other,
        }
    }

    /// The server takes no writes.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Server { error, .. } if error.code == SqlState::READ_ONLY_SQL_TRANSACTION)
    }

    #[cfg(test)]
    pub fn server(&self) -> Option<&ServerError> {
        match self {
            Self::Server { error, .. } | Self::Lost(Some(error)) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { error, .. } => fmt::Display::fmt(error, out),
            Self::Lost(Some(error)) => write!(out, "the connection was closed: {error}"),
            Self::Lost(None) => out.write_str("the connection was closed"),
            Self::Encode(cause) => write!(out, "a parameter cannot be written: {cause}"),
            Self::Protocol(what) => write!(out, "the server does not speak the protocol: {what}"),
            Self::LeftOpen => out.write_str("a transaction was left open"),
            Self::TooLarge(limit) => write!(out, "the answer is larger than {limit} bytes"),
            Self::TooManyRows(most) => write!(out, "the answer has more than {most} rows"),
        }
    }
}

impl StdError for WireError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Server { error, .. } | Self::Lost(Some(error)) => Some(&**error),
            Self::Encode(cause) => Some(&**cause),
            _ => None,
        }
    }
}
