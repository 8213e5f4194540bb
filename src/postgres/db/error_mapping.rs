//! The errors that a caller receives for the failure of a statement.

use std::{io, sync::Arc};

use tokio_postgres::types::WrongType;

use crate::{
    error::{Error, Kind, of_silence},
    postgres::wire::WireError,
};

/// Converts the failure of one of the library's statements to an error.
pub(super) fn told(what: &'static str, failure: WireError) -> Error {
    match failure {
        // The outcome is unknown: this is the last error of a backend that exited, and the
        // statement may have been committed before that.
        WireError::Server { error, .. } | WireError::Lost(Some(error)) if error.is_fatal() => {
            Error::new(Kind::Unknown { what, silence: None, source: Box::new(error) })
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
        WireError::Silent { limit, sent: false } => {
            let text = format!("the connection was closed before {what} was sent: {}", of_silence(limit));
            Error::new(Kind::Unreachable(io::Error::new(io::ErrorKind::TimedOut, text)))
        }
        WireError::Silent { limit, sent: true } => {
            Error::new(Kind::Unknown { what, silence: Some(limit), source: Box::new(failure) })
        }
        lost => Error::new(Kind::Unknown { what, silence: None, source: Box::new(lost) }),
    }
}

/// Converts the failure to set up a new connection, on which no caller has sent a statement yet.
pub(super) fn not_set_up(failure: WireError) -> Error {
    match failure {
        WireError::Server { error, .. } | WireError::Lost(Some(error)) if error.is_fatal() => {
            Error::new(Kind::Refused(error))
        }
        WireError::Silent { limit, .. } => {
            let text = format!("{}, while the connection was set up", of_silence(limit));
            Error::new(Kind::Unreachable(io::Error::new(io::ErrorKind::TimedOut, text)))
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn error_of_a_silent_server_names_its_limit() {
        let silent = WireError::Silent { limit: Duration::from_secs(5), sent: true };
        let unknown = told("enqueue", silent.clone());
        assert!(unknown.is_outcome_unknown() && unknown.is_closed());
        let text = "the connection was closed before enqueue was answered: no answer in 5 s (answer_timeout); \
                    it may or may not have happened";
        assert_eq!(unknown.to_string(), text);
        let unsent = told("enqueue", silent.clone().before_sending());
        assert!(unsent.is_closed() && !unsent.is_outcome_unknown());
        assert!(unsent.to_string().ends_with("before enqueue was sent: no answer in 5 s (answer_timeout)"), "{unsent}");
        assert!(not_set_up(silent).to_string().contains("no answer in 5 s (answer_timeout)"));
    }
}
