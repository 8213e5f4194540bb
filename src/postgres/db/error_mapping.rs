//! The errors that a caller receives for the failure of a statement.

use std::{io, sync::Arc};

use tokio_postgres::types::WrongType;

use crate::{
    error::{Error, Kind},
    postgres::wire::WireError,
};

/// Converts the failure of one of the library's statements to an error.
pub(super) fn told(what: &'static str, failure: WireError) -> Error {
    match failure {
        // The outcome is unknown: this is the last error of a backend that exited, and the
        // statement may have been committed before that.
        WireError::Server { error, .. } | WireError::Lost(Some(error)) if error.is_fatal() => {
            Error::new(Kind::Unknown { what, source: Box::new(error) })
        }
        WireError::Server { error, .. } => Error::of_server(what, error),
        WireError::LeftOpen => Error::new(Kind::LeftOpen(what.to_owned())),
        WireError::TooLarge(limit) => Error::new(Kind::TooMuch { text: what.to_owned(), limit }),
        WireError::TooManyRows(_) => Error::new(Kind::Answer(failure.to_string().into())),
        WireError::Encode(cause) => Error::invalid(format!("{what}: a parameter cannot be written: {cause}")),
        WireError::Unsent(why) => {
            let why = why.map_or_else(String::new, |why| format!(": {}", why.told()));
            let text = format!("the connection was closed before {what} was sent{why}");
            Error::new(Kind::Unreachable(io::Error::new(io::ErrorKind::ConnectionReset, text)))
        }
        lost => Error::new(Kind::Unknown { what, source: Box::new(lost) }),
    }
}

/// Converts the failure to set up a new connection, on which no caller has sent a statement yet.
pub(super) fn not_set_up(failure: WireError) -> Error {
    match failure {
        WireError::Server { error, .. } | WireError::Lost(Some(error)) if error.is_fatal() => {
            Error::new(Kind::Refused(error))
        }
        failure => told("connect", failure).without_effect("the connection broke while it was set up".to_owned()),
    }
}

/// Adds advice to an error about a parameter whose type does not fit.
fn advised(cause: &dyn std::error::Error) -> Arc<dyn std::error::Error + Send + Sync> {
    let text = format!(
        "{cause}; pass a text and cast it in the statement, as in $1::text::numeric, or implement ToSql for a type of your own"
    );
    Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(text))
}

/// Converts the failure of a user's statement to an error. `first` is the index in the pipeline of
/// the group's first statement.
pub(crate) fn told_to_user(first: usize, text: &str, failure: WireError) -> Error {
    match failure {
        WireError::Server { error, .. } if error.is_fatal() => told("a statement", WireError::Lost(Some(error))),
        WireError::Server { statement, text, error, .. } => {
            Error::new(Kind::Statement { place: first + statement, text, error })
        }
        WireError::Encode(cause) => {
            let cause = if cause.is::<WrongType>() { advised(&*cause) } else { cause };
            Error::new(Kind::Parameters { text: text.to_owned(), cause })
        }
        WireError::LeftOpen => Error::new(Kind::LeftOpen(text.to_owned())),
        WireError::TooLarge(limit) => Error::new(Kind::TooMuch { text: text.to_owned(), limit }),
        WireError::TooManyRows(_) => {
            Error::new(Kind::Rows { text: text.to_owned(), cause: failure.to_string().into() })
        }
        lost => told("a statement", lost),
    }
}
