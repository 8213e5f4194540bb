//! The error type of this crate. An error describes what happened. The caller decides what to do.

pub(crate) mod server;
mod advice;
mod caught;
mod described;
mod permanent;
mod refusal;
mod shards;
mod text;
mod words;
mod work;
#[cfg(trunkline_mutant)]
pub(crate) mod mutant;

use std::{io, sync::Arc, time::Duration};

use tokio_postgres::error::{Severity, SqlState};

use self::server::ServerError;
use self::{
    advice::{advice, is_other_type, misses_queue, misses_queue_in, pooler_advice},
    words::{listed, no_queue, of_schema, of_shards, placed, reasons, shortened, unanswered},
};
pub(crate) use self::{
    caught::{caught, text_of},
    described::Described,
    refusal::{OneByOne, Search},
    words::of_silence,
    work::first_of,
};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error from a queue or from the database.
///
/// The type is opaque. It is cheap to clone, because one failure can affect many coalesced callers.
/// Methods such as [`Error::is_closed`] classify the error. Its text describes what happened and
/// what to do. [`std::error::Error::source`] returns the database's own error.
#[derive(Clone)]
pub struct Error(Arc<Kind>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    /// The server refused a connection.
    #[error("cannot connect to the database: {}", .0.told())]
    Refused(#[source] Arc<ServerError>),
    /// No server could be reached, or the client could not understand or trust the server's reply.
    #[error("cannot connect to the database: {0}")]
    Unreachable(#[source] io::Error),
    /// Several hosts were tried, and none of them accepted the connection.
    #[error("cannot connect to the database: {}", reasons(.0))]
    Nowhere(Vec<(String, Error)>),
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    #[error("{0}")]
    Postgres(#[source] Described),
    /// The server rejected one of this library's statements.
    #[error("{}{}", .error.told(), advice(what, .queue.as_deref(), .error))]
    Server {
        what: &'static str,
        queue: Option<String>,
        #[source]
        error: Arc<ServerError>,
    },
    /// The driver of the caller's transaction failed.
    #[error("the statement in the transaction failed: {0}")]
    Foreign(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The reply to one of this library's statements has an unexpected form.
    #[error(
        "the server's answer does not match the statement: {0}; check that `trunkline migrate` or Db::migrate created this schema"
    )]
    Answer(Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "a transaction was left open on a connection that others share: it was rolled back, and the connection closed; \
         begin transactions with Db::begin. The statement was {}", shortened(.0)
    )]
    LeftOpen(String),
    #[error(
        "the answer is larger than {limit} bytes and was not kept, though the statement took effect; ask for less, read it with \
         Transaction::stream, or allow more with max_answer in the connection string. The statement was {}", shortened(.text)
    )]
    TooMuch { text: String, limit: usize },
    /// The server rejected one of the user's statements.
    #[error("{}{}{}", .error.told(), placed(*.place, .text.as_deref()), pooler_advice(.error))]
    Statement {
        place: usize,
        text: Option<Arc<str>>,
        #[source]
        error: Arc<ServerError>,
    },
    /// A parameter from the user cannot be encoded.
    #[error("{cause}, for statement {}", shortened(.text))]
    Parameters { text: String, cause: Arc<dyn std::error::Error + Send + Sync> },
    /// The reply to one of the user's statements does not have the expected type.
    #[error("{cause}, in the answer to {}", shortened(.text))]
    Rows { text: String, cause: Box<dyn std::error::Error + Send + Sync> },
    #[error("the server rolled the transaction back instead of committing it, because a statement in it had failed")]
    RolledBack,
    #[error("{}", unanswered(.what, *.silence))]
    Unknown { what: &'static str, silence: Option<Duration>, source: Box<dyn std::error::Error + Send + Sync> },
    /// The task that was running the caller's statement has ended.
    #[error("{what} was not answered, because its task panicked or its runtime ended; {}", meanwhile(*.sent))]
    Ended { what: &'static str, sent: bool },
    /// The server reports fewer rows than the library inserted.
    #[error(
        "queue {queue:?} did not store what was enqueued: of {inserted} rows the server stored {stored}, because a trigger or a rule on \
         the table \"queue_{queue}\" skips rows; make it raise an exception instead"
    )]
    NotStored { queue: String, inserted: usize, stored: usize },
    #[error("{}", no_queue(.0))]
    NoQueue(String),
    #[error(
        "queue {queue:?} has payloads of type {column}, which {rust} cannot hold; open it with a matching Rust type"
    )]
    WrongType { queue: String, column: String, rust: &'static str },
    #[error("{rust} cannot be written as {column}: {cause}")]
    Encode { rust: &'static str, column: String, cause: Box<dyn std::error::Error + Send + Sync> },
    #[error("message {id} of queue {queue:?} cannot be read as {rust}: {cause}")]
    Decode { queue: String, id: i64, rust: &'static str, cause: Box<dyn std::error::Error + Send + Sync> },
    /// A message cannot be decoded. It was read as part of a page, and not dequeued.
    #[error(
        "{cause}; to see the page all the same, open the queue with payloads of `Readable`; to delete the message, run \
         `trunkline cancel {queue} {id}` while it waits, or `trunkline dead discard {queue} {id}` when it is dead"
    )]
    Page { queue: String, id: i64, cause: Error },
    #[error("a payload of {bytes} bytes is too large: at most {limit}; store it elsewhere and enqueue its address")]
    TooLarge { bytes: usize, limit: usize },
    #[error("the lease of {} of queue {queue:?} is lost: it ended, and another consumer may have the messages now", listed(.ids))]
    LeaseLost { queue: String, ids: Vec<i64> },
    /// A consumer's work failed, and its message is now a dead letter.
    #[error("the work on message {id} of queue {queue:?} failed, and the message is a dead letter now: {reason}")]
    Work { queue: String, id: i64, reason: String, cause: Option<Arc<dyn std::error::Error + Send + Sync>> },
    /// The errors of some of the servers that store the queue.
    #[error("{}", of_shards(.0))]
    Shards(Vec<(String, Error)>),
    #[error("{0}")]
    Invalid(String),
    #[error("{}", of_schema(.schema, *.found, *.wanted))]
    Schema { schema: String, found: i32, wanted: i32 },
}

fn meanwhile(sent: bool) -> &'static str {
    if sent { "it may or may not have happened" } else { "it did not happen: call it again" }
}

impl Error {
    pub(crate) fn new(kind: Kind) -> Self {
        Self(Arc::new(kind))
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(Kind::Invalid(text.into()))
    }

    /// Combines the errors from all hosts. If there is only one host, returns that host's error.
    pub(crate) fn nowhere(mut refusals: Vec<(String, Self)>) -> Self {
        match (refusals.pop(), refusals.is_empty()) {
            (None, _) => Self::invalid("the connection string names no host"),
            (Some((_, error)), true) => error,
            (Some(last), false) => {
                refusals.push(last);
                Self::new(Kind::Nowhere(refusals))
            }
        }
    }

    /// Creates the error for one of this library's statements that the server rejected.
    pub(crate) fn of_server(what: &'static str, error: Arc<ServerError>) -> Self {
        Self::new(Kind::Server { what, queue: None, error })
    }

    /// Creates the error for a call whose task has ended. `sent` is true if its statement was sent.
    pub(crate) fn ended(what: &'static str, sent: bool) -> Self {
        Self::new(Kind::Ended { what, sent })
    }

    /// Creates the error for a statement that was sent: the server's error, or an unknown outcome
    /// if the connection broke.
    pub(crate) fn of_statement(what: &'static str, error: tokio_postgres::Error) -> Self {
        if is_broken(&error) {
            Self::new(Kind::Unknown { what, silence: None, source: error.into() })
        } else {
            Self::new(Kind::Postgres(Described(error)))
        }
    }

    /// Replaces the name of the rejected statement with the operation that ran it, so that the
    /// advice mentions the operation.
    pub(crate) fn during(self, verb: &'static str) -> Self {
        match &*self.0 {
            Kind::Server { queue, error, .. } => {
                Self::new(Kind::Server { what: verb, queue: queue.clone(), error: error.clone() })
            }
            _ => self,
        }
    }

    /// Adds the queue's name to a server error, so that the advice can name the queue.
    pub(crate) fn about_queue(self, queue: &str) -> Self {
        match &*self.0 {
            Kind::Server { what, queue: None, error } => {
                Self::new(Kind::Server { what, queue: Some(queue.to_owned()), error: error.clone() })
            }
            _ => self,
        }
    }

    /// Converts an error about a missing table or function of the queue to [`Kind::NoQueue`]. Adds
    /// the queue's name to every other server error.
    pub(crate) fn or_no_queue(self, queue: &str) -> Self {
        self.about_queue(queue).or_missing(queue)
    }

    fn or_missing(self, queue: &str) -> Self {
        let missing = [
            SqlState::UNDEFINED_TABLE,
            SqlState::UNDEFINED_FUNCTION,
            SqlState::UNDEFINED_OBJECT,
            SqlState::INVALID_SCHEMA_NAME,
        ];
        match self.sqlstate() {
            Some(code) if missing.contains(code) => match &*self.0 {
                Kind::Server { error, .. } | Kind::Statement { error, .. } if !misses_queue(error, queue) => self,
                Kind::Postgres(Described(error)) if !misses_queue_in(error, queue) => self,
                _ => Self::new(Kind::NoQueue(queue.to_owned())),
            },
            _ => self,
        }
    }

    /// Returns true if a lease ended before it was acknowledged, retried or extended. The call did
    /// not change the messages in [`Error::lost_ids`].
    #[must_use]
    pub fn is_lease_lost(&self) -> bool {
        match &*self.0 {
            Kind::LeaseLost { .. } => true,
            Kind::Shards(parts) => parts.iter().all(|(_, error)| error.is_lease_lost()),
            _ => false,
        }
    }

    /// Returns the ids of the messages whose leases were lost. Returns an empty slice for every
    /// other error. For a queue on several shards, call this method on each error of
    /// [`Error::shards`].
    #[must_use]
    pub fn lost_ids(&self) -> &[i64] {
        match &*self.0 {
            Kind::LeaseLost { ids, .. } => ids,
            _ => &[],
        }
    }

    /// Returns true if the call may or may not have taken effect: the connection broke before the
    /// reply, the task that awaited the reply ended early, the reply could not be read, or the
    /// server stored only some of the rows.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        #[cfg(trunkline_mutant)]
        if mutant::is("unknown-as-failed") {
            return false;
        }
        match &*self.0 {
            Kind::Unknown { .. } | Kind::Answer(_) => true,
            Kind::Ended { sent, .. } => *sent,
            // The outcome is known if no row was stored. If only some were stored, the caller
            // cannot know which.
            Kind::NotStored { stored, .. } => *stored > 0,
            Kind::Shards(parts) => parts.iter().any(|(_, error)| error.is_outcome_unknown()),
            _ => false,
        }
    }

    /// Returns true if no connection to the database could be made, or if the connection broke.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &*self.0 {
            Kind::Refused(_) | Kind::Unreachable(_) | Kind::Nowhere(_) | Kind::Unknown { .. } => true,
            Kind::Shards(parts) => parts.iter().any(|(_, error)| error.is_closed()),
            _ => false,
        }
    }

    /// Returns true if the server did not answer within `answer_timeout`. It may only be slow.
    #[doc(hidden)]
    #[must_use]
    pub fn is_silence(&self) -> bool {
        matches!(&*self.0, Kind::Unknown { silence: Some(_), .. })
    }

    /// Converts the error of a broken connection, if the caller knows that the call had no effect.
    pub(crate) fn without_effect(self, text: String) -> Self {
        if !(self.is_outcome_unknown() && self.is_closed()) {
            return self;
        }
        Self::new(Kind::Unreachable(io::Error::new(io::ErrorKind::ConnectionReset, text)))
    }

    /// Returns true if the call shared a statement with other tasks, and the task that sent it
    /// ended before the reply, for example because its runtime ended.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(&*self.0, Kind::Ended { .. })
    }

    /// Returns true if the queue does not exist, or was dropped.
    #[must_use]
    pub fn is_no_queue(&self) -> bool {
        self.is_or_has(|kind| matches!(kind, Kind::NoQueue(_)))
    }

    /// Returns true if the queue's payload type and the Rust type do not match.
    #[must_use]
    pub fn is_wrong_type(&self) -> bool {
        self.is_or_has(|kind| match kind {
            Kind::WrongType { .. } => true,
            Kind::Server { error, .. } => is_other_type(error),
            _ => false,
        })
    }

    /// Returns the index of the statement in the pipeline that the server rejected, counted from 0.
    /// An index equal to the number of statements means that the commit failed. None of the
    /// statements that were sent together took effect.
    #[must_use]
    pub fn failed_statement(&self) -> Option<usize> {
        match &*self.0 {
            Kind::Statement { place, .. } => Some(*place),
            _ => None,
        }
    }

    /// Returns the code of the server's error, if there is one.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&SqlState> {
        match &*self.0 {
            Kind::Refused(error) | Kind::Server { error, .. } | Kind::Statement { error, .. } => Some(&error.code),
            Kind::Nowhere(refusals) | Kind::Shards(refusals) => refusals.iter().find_map(|(_, error)| error.sqlstate()),
            Kind::Postgres(Described(error)) => error.code(),
            Kind::Unknown { source, .. } => {
                let theirs = source.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::code);
                theirs.or_else(|| Some(&source.downcast_ref::<Arc<ServerError>>()?.code))
            }
            _ => None,
        }
    }
}

/// Returns true if no reply arrived, or if the reply was the last error of a backend that then
/// exited. The statement may have been committed before the backend exited.
pub(crate) fn is_broken(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        Some(db) => matches!(db.parsed_severity(), Some(Severity::Fatal | Severity::Panic)),
        None => {
            error.is_closed()
                || std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
        }
    }
}
