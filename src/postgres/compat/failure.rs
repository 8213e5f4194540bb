//! Errors with the methods of `tokio_postgres::Error`.

use std::{error, fmt, sync::Arc};

use tokio_postgres::error::{ErrorPosition, SqlState};

use crate::{
    error::{Kind, server::ServerError},
    postgres::wire::WireError,
};

type Cause = Box<dyn error::Error + Send + Sync>;

/// An error from the server or from a connection.
#[derive(Debug)]
pub struct Error(Box<Reason>);

#[derive(Debug)]
enum Reason {
    Db(DbError),
    Connect(crate::Error),
    Closed,
    /// A parameter could not be encoded.
    ToSql(Arc<dyn error::Error + Send + Sync>),
    /// A column could not be decoded.
    FromSql(usize, Cause),
    Column(String),
    Parameters {
        given: usize,
        expected: usize,
    },
    RowCount,
    ColumnCount,
    Other(Cause),
}

impl Error {
    pub(super) fn from_sql(column: usize, cause: Cause) -> Self {
        Self(Box::new(Reason::FromSql(column, cause)))
    }

    pub(super) fn column(name: String) -> Self {
        Self(Box::new(Reason::Column(name)))
    }

    pub(super) fn parameters(given: usize, expected: usize) -> Self {
        Self(Box::new(Reason::Parameters { given, expected }))
    }

    pub(super) fn row_count() -> Self {
        Self(Box::new(Reason::RowCount))
    }

    pub(super) fn column_count() -> Self {
        Self(Box::new(Reason::ColumnCount))
    }

    pub(super) fn closed() -> Self {
        Self(Box::new(Reason::Closed))
    }

    pub(super) fn other(cause: impl Into<Cause>) -> Self {
        Self(Box::new(Reason::Other(cause.into())))
    }

    pub(super) fn connect(error: crate::Error) -> Self {
        Self(Box::new(Reason::Connect(error)))
    }

    pub(super) fn server(error: Arc<ServerError>) -> Self {
        Self(Box::new(Reason::Db(DbError(error))))
    }

    /// Returns the server's error, if the server reported one.
    #[must_use]
    pub fn as_db_error(&self) -> Option<&DbError> {
        match &*self.0 {
            Reason::Db(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the code of the server's error, if the server reported one.
    #[must_use]
    pub fn code(&self) -> Option<&SqlState> {
        match &*self.0 {
            Reason::Db(error) => Some(error.code()),
            Reason::Connect(error) => error.sqlstate(),
            _ => None,
        }
    }

    /// Returns true if the connection was closed, also by an error of the server.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &*self.0 {
            Reason::Closed => true,
            Reason::Db(error) => error.0.is_fatal(),
            _ => false,
        }
    }

    /// Returns the cause of the error.
    #[must_use]
    pub fn into_source(self) -> Option<Cause> {
        match *self.0 {
            Reason::Db(error) => Some(Box::new(error)),
            Reason::Connect(error) => Some(Box::new(error)),
            Reason::ToSql(cause) => Some(Box::new(cause)),
            Reason::FromSql(_, cause) | Reason::Other(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<WireError> for Error {
    fn from(failure: WireError) -> Self {
        match failure {
            WireError::Server { error, .. } | WireError::Lost(Some(error)) | WireError::Unsent(Some(error)) => {
                Self::server(error)
            }
            WireError::Lost(None) | WireError::Unsent(None) | WireError::Silent { .. } => Self::closed(),
            WireError::Encode(cause) => Self(Box::new(Reason::ToSql(cause))),
            other => Self::other(other.to_string()),
        }
    }
}

impl From<&WireError> for Error {
    fn from(failure: &WireError) -> Self {
        failure.clone().into()
    }
}

impl From<Error> for crate::Error {
    /// Converts an error from a queue's statement in a transaction of this module.
    fn from(error: Error) -> Self {
        let (what, is_closed) = ("the transaction", error.is_closed());
        match *error.0 {
            Reason::Db(DbError(error)) if is_closed => {
                Self::new(Kind::Unknown { what, silence: None, source: Box::new(error) })
            }
            Reason::Db(DbError(error)) => Self::of_server(what, error),
            Reason::Closed => Self::new(Kind::Unknown { what, silence: None, source: Box::new(Error::closed()) }),
            Reason::Connect(error) => error,
            other => Self::new(Kind::Foreign(Box::new(Error(Box::new(other))))),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Reason::Db(error) => write!(out, "db error: {error}"),
            Reason::Connect(error) => write!(out, "{error}"),
            Reason::Closed => write!(out, "connection closed"),
            Reason::ToSql(cause) => write!(out, "error serializing a parameter: {cause}"),
            Reason::FromSql(column, cause) => write!(out, "error deserializing column {column}: {cause}"),
            Reason::Column(name) => write!(out, "invalid column `{name}`"),
            Reason::Parameters { given, expected } => {
                write!(out, "expected {expected} parameters but got {given}")
            }
            Reason::RowCount => write!(out, "query returned an unexpected number of rows"),
            Reason::ColumnCount => write!(out, "query returned an unexpected number of columns"),
            Reason::Other(cause) => write!(out, "{cause}"),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &*self.0 {
            Reason::Db(error) => Some(error),
            Reason::Connect(error) => Some(error),
            Reason::ToSql(cause) => Some(&**cause),
            Reason::FromSql(_, cause) | Reason::Other(cause) => Some(&**cause),
            _ => None,
        }
    }
}

/// An error or a notice from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DbError(pub(super) Arc<ServerError>);

impl DbError {
    /// Returns the severity in English: `ERROR`, `FATAL`, `WARNING` and so on.
    #[must_use]
    pub fn severity(&self) -> &str {
        &self.0.severity
    }

    /// Returns the error code.
    #[must_use]
    pub fn code(&self) -> &SqlState {
        &self.0.code
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the detail.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// Returns the hint.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Returns the position of the error in the statement.
    #[must_use]
    pub fn position(&self) -> Option<&ErrorPosition> {
        self.0.position.as_ref()
    }

    /// Returns the context of the error: the call stack of the functions.
    #[must_use]
    pub fn where_(&self) -> Option<&str> {
        self.0.context.as_deref()
    }

    /// Returns the schema of the object that the error concerns.
    #[must_use]
    pub fn schema(&self) -> Option<&str> {
        self.0.schema.as_deref()
    }

    /// Returns the table that the error concerns.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// Returns the column that the error concerns.
    #[must_use]
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    /// Returns the data type that the error concerns.
    #[must_use]
    pub fn datatype(&self) -> Option<&str> {
        self.0.datatype.as_deref()
    }

    /// Returns the constraint that the error concerns.
    #[must_use]
    pub fn constraint(&self) -> Option<&str> {
        self.0.constraint.as_deref()
    }

    /// Returns the file in the server's source code that reported the error.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// Returns the line in that file.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.0.line
    }

    /// Returns the function in the server's source code that reported the error.
    #[must_use]
    pub fn routine(&self) -> Option<&str> {
        self.0.routine.as_deref()
    }
}

impl fmt::Display for DbError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl error::Error for DbError {}
