//! A statement's outcome, in a form that all transports share.

use std::{error::Error as _, fmt};

use bytes::{BufMut, BytesMut};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use trunkline::{
    Bytes, Error,
    postgres::{Answered, Rows},
};
use trunkline_libpq::{Outcome, Refusal};

type Wrong = Box<dyn std::error::Error + Send + Sync>;

/// The bytes of a value of any type, as on the wire; they are neither encoded nor decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Raw(pub Bytes);

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Wrong> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl FromSql<'_> for Raw {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Wrong> {
        Ok(Self(Bytes::copy_from_slice(raw)))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A value, or `None` for null.
pub type Value = Option<Raw>;

pub fn raw(bytes: impl Into<Vec<u8>>) -> Value {
    Raw(Bytes::from(bytes.into())).into()
}

#[derive(Clone, PartialEq)]
pub enum Answer {
    Done {
        /// The names and types of the columns. Empty if there are no rows, because the library
        /// exposes columns only through a row.
        columns: Vec<(String, u32)>,
        rows: Vec<Vec<Value>>,
        affected: u64,
    },
    /// The server refused the statement, with this code and this complete message.
    Refused {
        code: String,
        told: String,
    },
    /// The library refused to send the statement, for this reason.
    Unsent(String),
    /// The connection was lost, with the code of the server's last message.
    Lost {
        code: Option<String>,
    },
    Committed,
    /// The outcome of a `commit` in a transaction that has failed.
    RolledBack,
}

impl Answer {
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Lost { .. })
    }

    /// Returns true if the error is "current transaction is aborted".
    pub fn only_follows(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "25P02")
    }

    pub fn of_libpq(outcome: Outcome) -> Self {
        let value = |value: Option<Vec<u8>>| value.map(|bytes| Raw(bytes.into()));
        match outcome {
            Outcome::Done(answer) => Self::Done {
                columns: if answer.rows.is_empty() { Vec::new() } else { answer.columns },
                rows: answer.rows.into_iter().map(|row| row.into_iter().map(value).collect()).collect(),
                affected: answer.affected,
            },
            Outcome::Refused(refusal) => Self::Refused { told: refusal.to_string(), code: refusal.code },
            Outcome::Lost(words) => Self::Lost { code: words.map(|Refusal { code, .. }| code) },
        }
    }

    /// Converts the library's error, and checks that its text starts with the server's message.
    pub fn of_error(error: &Error) -> Self {
        let code = error.sqlstate().map(|code| code.code().to_owned());
        match (code, error.source()) {
            (code, _) if error.is_closed() => {
                assert!(error.is_outcome_unknown(), "it was on its way: {error}");
                Self::Lost { code }
            }
            (Some(code), Some(cause)) => {
                let told = cause.to_string();
                let message = told.lines().next().and_then(|line| line.split_once(": ")).map(|(_, message)| message);
                assert!(message.is_some_and(|message| error.to_string().starts_with(message)), "{error}, for {told}");
                Self::Refused { code, told }
            }
            _ => Self::Unsent(error.to_string().split(", for statement ").next().unwrap_or_default().to_owned()),
        }
    }
}

impl Rows for Answer {
    fn read(answered: Answered<'_>) -> Result<Self, Wrong> {
        let columns = answered.rows().next().map_or(&[][..], |row| row.columns());
        let columns = columns.iter().map(|(name, ty)| (name.clone(), ty.oid())).collect();
        let rows = answered.rows().map(|mut row| row.columns().iter().map(|_| row.read()).collect());
        Ok(Self::Done { columns, rows: rows.collect::<Result<_, _>>()?, affected: answered.affected() })
    }
}

impl fmt::Debug for Answer {
    /// Shortens large answers.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 40;
        match self {
            Self::Done { columns, rows, affected } => {
                let short = |Raw(bytes): &Raw| (bytes.len(), bytes.slice(..bytes.len().min(MOST)));
                let row = |row: &Vec<Value>| row.iter().map(|value| value.as_ref().map(short)).collect::<Vec<_>>();
                let first: Vec<_> = rows.iter().take(3).map(row).collect();
                write!(out, "Done({affected} by {columns:?}, {} rows: {first:?})", rows.len())
            }
            Self::Refused { code, told } => write!(out, "Refused({code}, {told})"),
            Self::Unsent(why) => write!(out, "Unsent({why})"),
            Self::Lost { code } => write!(out, "Lost({code:?})"),
            Self::Committed => out.write_str("Committed"),
            Self::RolledBack => out.write_str("RolledBack"),
        }
    }
}
