//! The reasons why a group has no usable reply.

use std::{error::Error as StdError, fmt, sync::Arc};

use tokio_postgres::error::SqlState;

use crate::error::server::ServerError;

/// The reason why a group has no usable reply.
#[derive(Debug, Clone)]
pub(crate) enum WireError {
    /// The server refused the statement at that place in its group, and rolled back the whole
    /// group. A failed commit has the place after the last statement, and no text.
    Server { statement: usize, text: Option<Arc<str>>, error: Arc<ServerError> },
    /// The connection ended before the reply; the server's reason is included if it is known. The
    /// outcome is unknown.
    Lost(Option<Arc<ServerError>>),
    /// A parameter cannot be encoded; nothing was sent.
    Encode(Arc<dyn StdError + Send + Sync>),
    /// The server violated the protocol.
    Protocol(&'static str),
    /// The group left a transaction open on a shared connection. The connection was closed, so the
    /// server rolls back.
    LeftOpen,
    /// The reply is larger than this number of bytes; the statement took effect.
    TooLarge(usize),
    /// The reply has more rows than the statement can return; the statement took effect.
    TooManyRows(usize),
}

impl WireError {
    pub fn encode(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Encode(Arc::from(cause.into()))
    }

    /// Returns true if the statement was prepared for an object that has changed since then. No
    /// part of its group has taken effect, so the group may be prepared and run again. A type that
    /// does not fit may also come from a table that was dropped and created again. Errors with a
    /// context come from the body of a function or procedure. A procedure may have committed by
    /// then, so its call must not run twice.
    pub fn is_outdated(&self) -> bool {
        let Self::Server { error, .. } = self else { return false };
        error.context.is_none()
            && [SqlState::FEATURE_NOT_SUPPORTED, SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DATATYPE_MISMATCH]
                .contains(&error.code)
    }

    /// Returns true if this error is only a consequence of an earlier error in the group ("current
    /// transaction is aborted").
    pub fn only_follows(&self) -> bool {
        matches!(self, Self::Server { error, .. } if error.code == SqlState::IN_FAILED_SQL_TRANSACTION)
    }

    /// Sets the place and the text of a statement that could not be prepared.
    pub fn of_statement(self, statement: usize, text: &str) -> Self {
        match self {
            Self::Server { error, .. } => Self::Server { statement, text: Some(text.into()), error },
            other => other,
        }
    }

    /// Returns true if the server does not accept writes.
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
