//! libpq, so that tests can ask it what the driver was asked. It is loaded while they run, from
//! beside the server's programs: nobody needs its headers or a C compiler, and each major version
//! is met with its own.

mod calls;

use std::fmt;

pub use calls::{Connection, Library};

/// What became of a statement.
#[derive(Debug)]
pub enum Outcome {
    /// It ran.
    Done(Answer),
    /// The server refused it.
    Refused(Refusal),
    /// There is no connection any more. The server's last words, if it had any.
    Lost(Option<Refusal>),
}

/// The answer to a statement, in the binary format.
#[derive(Debug)]
pub struct Answer {
    /// The name and the type of each column.
    pub columns: Vec<(String, u32)>,
    /// Its rows; `None` is null.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// What the server says of it: `INSERT 0 1`.
    pub tag: String,
    /// Rows inserted, updated, deleted or selected.
    pub affected: u64,
}

/// What the server says of a statement that it refuses.
#[derive(Debug)]
pub struct Refusal {
    /// `ERROR` or `FATAL`.
    pub severity: String,
    /// The SQLSTATE.
    pub code: String,
    /// In one line.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

/// Whether a transaction is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// None is.
    Idle,
    /// One is.
    Open,
    /// One is, and has failed.
    Failed,
    /// There is no connection, or it is in the middle of something.
    Other,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.severity, self.message)?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(out, "\nDETAIL: {detail}"))?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(out, "\nHINT: {hint}"))
    }
}
