//! What a transport says of a statement, in words that all of them share.

use std::{error::Error as _, fmt};

use bytes::{BufMut, BytesMut};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use trunkline::{
    Bytes, Error,
    postgres::{Answered, Rows},
};
use trunkline_libpq::{Outcome, Refusal};

type Wrong = Box<dyn std::error::Error + Send + Sync>;

/// A value as the wire has it, of whatever type, sent and read without a look at it.
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

/// `None` is null.
pub type Value = Option<Raw>;

pub fn raw(bytes: impl Into<Vec<u8>>) -> Value {
    Raw(Bytes::from(bytes.into())).into()
}

#[derive(Clone, PartialEq)]
pub enum Answer {
    Done {
        /// Names and types; none where there is no row, because the library tells them with a row.
        columns: Vec<(String, u32)>,
        rows: Vec<Vec<Value>>,
        affected: u64,
    },
    /// By the server: the code, and everything that it says for people.
    Refused {
        code: String,
        told: String,
    },
    /// The library did not send it, and says why.
    Unsent(String),
    /// The connection is gone, with the code of the server's last words.
    Lost {
        code: Option<String>,
    },
    Committed,
    /// What a `commit` comes to in a transaction that has failed.
    RolledBack,
}

impl Answer {
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Lost { .. })
    }

    /// "Current transaction is aborted."
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

    /// What the library's error says, and that it says the same to people.
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
    /// Of much, the beginning.
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
