//! The reasons why the reply to a group cannot be used.

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use tokio_postgres::error::SqlState;

use crate::error::{of_silence, server::ServerError};

/// The portal of a pipelined transaction's `begin`. The server keeps it until the transaction ends,
/// and names it in an error if the transaction is not open.
pub(super) const BEGIN: &str = "trunkline_begin";

/// The reason why the reply to a group cannot be used.
#[derive(Debug, Clone)]
pub(crate) enum WireError {
    /// The server rejected the statement with this index in the group, and rolled back the whole
    /// group. If the commit failed, the index is the number of statements, and there is no text.
    /// `before_bind` is true if the server has not begun to run the statement.
    Server { statement: usize, text: Option<Arc<str>>, error: Arc<ServerError>, before_bind: bool },
    /// The connection ended before the reply. Contains the server's reason, if it is known. The
    /// outcome is unknown.
    Lost(Option<Arc<ServerError>>),
    /// The connection ended before the statement was sent. Contains the server's reason, if it is
    /// known.
    Unsent(Option<Arc<ServerError>>),
    /// The server sent nothing for this time while a reply was due, so the connection was closed.
    /// The outcome is unknown if the statement was sent.
    Silent { limit: Duration, sent: bool },
    /// A parameter could not be encoded. Nothing was sent.
    Encode(Arc<dyn StdError + Send + Sync>),
    /// The server violated the protocol.
    Protocol(&'static str),
    /// The group left a transaction open on a shared connection. The connection was closed, and the
    /// server rolls the transaction back.
    LeftOpen,
    /// The reply is larger than this number of bytes. The statement took effect.
    TooLarge(usize),
    /// The reply has more than this number of rows, which the statement cannot return. The
    /// statement took effect.
    TooManyRows(usize),
}

impl WireError {
    pub fn encode(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Encode(Arc::from(cause.into()))
    }

    /// Returns true if the statement was prepared for an object that has changed since then. No
    /// part of its group has taken effect, so the group can be prepared again and repeated. A type
    /// mismatch counts too, because a table may have been dropped and created again, and so does a
    /// parameter whose type no longer exists.
    ///
    /// Errors of running statements with a context do not count, because they come from the body of
    /// a function or procedure. A procedure may have committed before the error, so its call must
    /// not be repeated.
    pub fn is_outdated(&self) -> bool {
        let Self::Server { error, before_bind, .. } = self else { return false };
        // Accepts this context, which the server adds to any error with
        // log_parameter_max_length_on_error.
        let is_of_portal = |context: &str| context.starts_with("unnamed portal ");
        let has_changed =
            [SqlState::FEATURE_NOT_SUPPORTED, SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DATATYPE_MISMATCH]
                .contains(&error.code);
        // Compares the text, because the server never translates it.
        let is_of_type =
            error.code == SqlState::INTERNAL_ERROR && error.message.starts_with("cache lookup failed for type ");
        (has_changed || is_of_type) && (*before_bind || error.context.as_deref().is_none_or(is_of_portal))
    }

    /// Returns true if the statement may have failed because its text names a type that has been
    /// dropped or renamed since then, or because an encoded parameter contains the type's number.
    /// No part of its group has taken effect. As above, errors of running statements with a context
    /// do not count.
    pub fn may_be_of_types(&self) -> bool {
        let Self::Server { error, before_bind, .. } = self else { return false };
        let is_missing = ["42", "3F"].iter().any(|class| error.code.code().starts_with(class));
        self.is_outdated() || is_missing && (*before_bind || error.context.is_none())
    }

    /// Returns true if this error is only a consequence of an earlier error in the transaction:
    /// "current transaction is aborted", or its `begin` has failed.
    pub fn only_follows(&self) -> bool {
        let Self::Server { error, .. } = self else { return false };
        error.code == SqlState::IN_FAILED_SQL_TRANSACTION
            || error.code == SqlState::INVALID_CURSOR_NAME && error.message.contains(BEGIN)
    }

    /// Converts the failure of a preparation, without which the statement itself is not sent.
    pub fn before_sending(self) -> Self {
        match self {
            Self::Lost(why) => Self::Unsent(why),
            Self::Silent { limit, .. } => Self::Silent { limit, sent: false },
            Self::Server { error, .. } if error.is_fatal() => Self::Unsent(Some(error)),
            other => other,
        }
    }

    /// Adds the index and the text of a statement that could not be prepared.
    pub fn of_statement(self, statement: usize, text: &str) -> Self {
        match self {
            Self::Server { error, .. } => Self::Server { statement, text: Some(text.into()), error, before_bind: true },
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
            Self::Server { error, .. } | Self::Lost(Some(error)) | Self::Unsent(Some(error)) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { error, .. } => fmt::Display::fmt(error, out),
            Self::Lost(Some(error)) | Self::Unsent(Some(error)) => write!(out, "the connection was closed: {error}"),
            Self::Lost(None) | Self::Unsent(None) => out.write_str("the connection was closed"),
            Self::Silent { limit, .. } => out.write_str(&of_silence(*limit)),
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
            Self::Server { error, .. } | Self::Lost(Some(error)) | Self::Unsent(Some(error)) => Some(&**error),
            Self::Encode(cause) => Some(&**cause),
            _ => None,
        }
    }
}
