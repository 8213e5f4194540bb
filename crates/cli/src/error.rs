//! The error of a verb: a line that describes the error, and a line with advice.

use std::{fmt, io};

use trunkline::Metadata;

use crate::{clean::clean, own_words::own, text::Text};

/// The result of every verb.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error. It is displayed as a sentence, followed by a hint on a separate line if there is one.
#[derive(Debug)]
pub enum Error {
    /// A failure; exit code 1.
    Failed(String, Option<String>),
    /// An error of the database or the queue; exit code 1.
    Database(trunkline::Error),
    /// The arguments contradict each other; exit code 2.
    Usage(String, Option<String>),
    /// A check has found problems; the second field is the exit code.
    Found(String, u8),
    /// A signal arrived before or during a change; exit code 130.
    Interrupted(String, Option<String>),
    /// The reader of the output is gone. This is not an error for the user.
    OutputClosed,
    /// The program was started without a standard output; exit code 1.
    NoOutput,
}

impl Error {
    pub fn new(text: impl Into<String>) -> Self {
        Self::Failed(text.into(), None)
    }

    pub fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into(), None)
    }

    /// Creates the error of a check that found problems, with an exit code for programs.
    pub fn found(text: impl Into<String>, code: u8) -> Self {
        Self::Found(text.into(), code)
    }

    /// Creates the error of a change that a signal interrupted. `text` describes its outcome.
    pub fn interrupted(text: &str) -> Self {
        Self::Interrupted(format!("interrupted: {text}"), None)
    }

    pub fn code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Usage(..) => 2,
            Self::Found(_, code) => *code,
            Self::Interrupted(..) => 130,
            Self::Failed(..) | Self::Database(_) | Self::NoOutput => 1,
        }
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Failed(text, _) => Self::Failed(text, Some(hint.into())),
            Self::Database(error) => Self::Failed(told(&error), Some(hint.into())),
            Self::Usage(text, _) => Self::Usage(text, Some(hint.into())),
            Self::Interrupted(text, _) => Self::Interrupted(text, Some(hint.into())),
            found @ Self::Found(..) => found,
            Self::OutputClosed => Self::OutputClosed,
            Self::NoOutput => Self::NoOutput,
        }
    }

    /// Prefixes the error with the place, if there are several places.
    pub fn at(self, place: &str) -> Self {
        if place.is_empty() {
            return self;
        }
        let (told, hint) = self.told();
        let told = format!("{place}: {told}");
        if let Self::Interrupted(..) = self {
            let before = "on the servers before this one, if there are any, the command is done";
            let hint = hint.map_or_else(String::new, |hint| format!("{hint}; "));
            return Self::Interrupted(told, Some(hint + before));
        }
        Self::Failed(told, hint)
    }

    /// Returns the sentence and the hint.
    pub fn told(&self) -> (String, Option<String>) {
        match self {
            Self::Failed(text, hint) | Self::Interrupted(text, hint) => (text.clone(), hint.clone()),
            Self::Found(text, _) => (text.clone(), None),
            Self::Database(error) => (told(error), hint_of(error).map(str::to_owned)),
            Self::Usage(text, hint) => {
                let usual = || "`trunkline help` and `trunkline help VERB` show how".to_owned();
                (text.clone(), Some(hint.clone().unwrap_or_else(usual)))
            }
            Self::OutputClosed => ("standard output was closed".to_owned(), None),
            Self::NoOutput => (
                "standard output is closed, or is /dev/null opened for reading and writing: nothing was printed"
                    .to_owned(),
                Some("to discard the output, open it for writing alone, as >/dev/null does".to_owned()),
            ),
        }
    }

    /// Creates the error of a failed write to standard output.
    pub fn output(cause: &io::Error) -> Self {
        if cause.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::new(format!("cannot write to standard output: {cause}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, hint) = self.told();
        write!(out, "{}", clean(&text))?; // part of the text may come from the server
        hint.map_or(Ok(()), |hint| write!(out, "\nhint: {}", clean(&hint)))
    }
}

/// Replaces the names of Rust types in the library's errors, because users do not know them.
fn told(error: &trunkline::Error) -> String {
    let (text, metadata) = (std::any::type_name::<Text>(), std::any::type_name::<Metadata>());
    own(&error.to_string()).replace(text, "the text").replace(metadata, "the metadata")
}

fn hint_of(error: &trunkline::Error) -> Option<&'static str> {
    if error.is_no_queue() {
        return Some(
            "each queue has one payload type: create one with `trunkline queue create NAME --type text` (or jsonb; \
             bytea is the default), or list them with `trunkline queue list`",
        );
    }
    match error.sqlstate().map(tokio_postgres::error::SqlState::code) {
        Some("3D000") => Some("the server answers; is the name of the database right?"),
        Some("28000" | "28P01") => Some("the server answers; are the user, the password and pg_hba.conf right?"),
        None if error.is_outcome_unknown() => Some("check whether it took effect before you repeat it"),
        None if is_unanswered(error) => Some("is the server running, and is the address right?"),
        _ => None,
    }
}

/// Returns true if no server answered. An answer counts even if the program could not understand or
/// trust it.
pub fn is_unanswered(error: &trunkline::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, PermissionDenied, Unsupported};
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    let answered =
        |cause: &io::Error| [InvalidData, InvalidInput, PermissionDenied, Unsupported].contains(&cause.kind());
    error.is_closed() && error.sqlstate().is_none() && !cause.is_some_and(answered)
}

impl From<trunkline::Error> for Error {
    fn from(error: trunkline::Error) -> Self {
        Self::Database(error)
    }
}

impl From<trunkline_embedded::Error> for Error {
    fn from(error: trunkline_embedded::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) => Self::Failed(own(db.message()), db.hint().map(own)),
            None => Self::new(error.to_string()),
        }
    }
}

/// Returns true if the role lacks a right.
pub fn lacks_right(error: &trunkline::Error) -> bool {
    error.sqlstate().is_some_and(|state| state.code() == "42501")
}
