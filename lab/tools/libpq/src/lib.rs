//! libpq, so that tests can compare it with the driver. The library is loaded at run time from the
//! installation of the server's programs. So the tests need neither headers nor a C compiler, and
//! each major version is tested with its own libpq.

mod calls;

use std::fmt;

pub use calls::{Connection, Library};

/// The outcome of a statement.
#[derive(Debug)]
pub enum Outcome {
    /// The statement succeeded.
    Done(Answer),
    /// The server refused the statement.
    Refused(Refusal),
    /// The connection is lost. Contains the server's last error, if there was one.
    Lost(Option<Refusal>),
}

/// The answer to a statement, in the binary format.
#[derive(Debug)]
pub struct Answer {
    /// The name and the type of each column.
    pub columns: Vec<(String, u32)>,
    /// The rows; `None` is null.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// The server's command tag: `INSERT 0 1`.
    pub tag: String,
    /// The number of rows that were inserted, updated, deleted or selected.
    pub affected: u64,
}

/// An error of the server.
#[derive(Debug)]
pub struct Refusal {
    /// `ERROR` or `FATAL`.
    pub severity: String,
    /// The SQLSTATE.
    pub code: String,
    /// The message, in one line.
    pub message: String,
    /// More details.
    pub detail: Option<String>,
    /// A suggestion for the user.
    pub hint: Option<String>,
}

/// The state of a connection's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No transaction is open.
    Idle,
    /// A transaction is open.
    Open,
    /// A transaction is open, but has failed.
    Failed,
    /// The connection is lost or busy.
    Other,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.severity, self.message)?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(out, "\nDETAIL: {detail}"))?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(out, "\nHINT: {hint}"))
    }
}
