//! The history of a process: one line before each operation and one line after it, in a separate
//! file.
//!
//! Each line is one `write` to a file that is open for appending. So lines that were written before
//! a SIGKILL are in the file afterwards.

mod became;

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use self::became::Became;

/// A time in microseconds since the epoch, by this machine's clock. All processes share this clock,
/// and no fault changes it.
pub type Micros = u64;

pub fn now() -> Micros {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_micros() as u64)
}

/// A message as it was delivered: id, attempt, tag.
pub type Got = (i64, i32, u64);
/// A lease as a call names it: id, attempt.
pub type Named = (i64, i32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    Enqueue,
    /// Enqueues in a transaction of the caller, which commits or rolls back.
    EnqueueIn,
    HandOver,
    /// Enqueues with a unique key. `Replace` replaces the waiting message with that key.
    EnqueueUnique,
    Replace,
    Take,
    /// Takes with a consumer, which repeats a take if its connection broke. The messages of the
    /// first try are lost, and the caller sees no error.
    TakeWaiting,
    HandedOver,
    Lease,
    /// Takes in a transaction, with entries in the ledger.
    TakeIn,
    /// Acknowledges in a transaction, with entries in the ledger.
    AckIn,
    Ack,
    Archive,
    Retry,
    Bury,
    Extend,
    Release,
    /// Runs a worker's handler. The history does not show how its message was settled.
    Handle,
    /// A handler of a client, not of a worker. The client has leased the message through a
    /// partition.
    Start,
    Cancel,
    Reschedule,
    Replay,
    Discard,
    Purge,
    Prune,
    Pause,
    Resume,
    Limit,
    /// Gives up a partition that `lease_partition` leased.
    ReleasePartition,
    /// Makes the ticks of schedules, until the process is asked to end.
    Tick,
    /// Reads waiting messages, without a lease.
    Peek,
    Find,
    Stats,
    /// Reads a page of dead letters.
    DeadLetters,
    /// Reads a page of the archive.
    Archived,
}

impl Verb {
    /// Returns true if the call delivers messages with a statement that other calls may wait for.
    pub fn dequeues(self) -> bool {
        self.takes() || matches!(self, Self::Lease | Self::TakeIn)
    }

    /// Returns true if the call delivers messages at most once.
    pub fn takes(self) -> bool {
        matches!(self, Self::Take | Self::TakeWaiting | Self::HandedOver)
    }

    /// Returns true if an `Ok` does not include the messages that an earlier try took.
    pub fn repeats(self) -> bool {
        matches!(self, Self::TakeWaiting | Self::HandedOver)
    }

    pub fn ends(self) -> bool {
        matches!(self, Self::Ack | Self::AckIn | Self::Archive | Self::Retry | Self::Bury | Self::Release)
    }

    /// Returns true if a successful call has removed its messages from the queue's table.
    pub fn removes(self) -> bool {
        matches!(self, Self::Ack | Self::AckIn | Self::Archive | Self::Bury)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub verb: Verb,
    pub queue: String,
    /// The maximum number of messages that a dequeue returns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n: u64,
    /// Tags of the messages to enqueue, or of the messages that a handler receives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<u64>,
    /// The leases. In a call that names only ids, `attempt` is 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<Named>,
    /// A delay, or the duration of a lease, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ms: u64,
    /// The time at which a handler's message was delivered, as its job reports it. Not all
    /// libraries report that time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since: Micros,
    /// The latest time at which the hold on a partition ends. Only calls that continue to read the
    /// partition set it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub over: Micros,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Call {
    pub fn new(verb: Verb, queue: &str) -> Self {
        Self { verb, queue: queue.to_owned(), n: 0, tags: Vec::new(), named: Vec::new(), ms: 0, since: 0, over: 0 }
    }

    pub fn n(self, n: usize) -> Self {
        Self { n: n as u64, ..self }
    }

    pub fn tags(self, tags: Vec<u64>) -> Self {
        Self { tags, ..self }
    }

    pub fn named(self, named: Vec<Named>) -> Self {
        Self { named, ..self }
    }

    pub fn ms(self, ms: u64) -> Self {
        Self { ms, ..self }
    }

    pub fn over(self, over: Micros) -> Self {
        Self { over, ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    Invoked(Call),
    /// The messages of a transaction that is not committed yet. If the work is repeated, a later
    /// line replaces this one.
    Took(Vec<Got>),
    /// The ids of enqueued or changed messages, the deliveries, and the ids whose lease was
    /// refused. The call had its effect on all other ids.
    Ok {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ids: Vec<i64>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        got: Vec<Got>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lost: Vec<i64>,
    },
    /// Another message has the unique key; this is its id.
    Held(i64),
    /// The new message replaced the message with the unique key. Contains its id.
    Replaced(i64),
    /// The library or the server reports that nothing was done.
    Failed(String),
    /// Either everything or nothing was done.
    Unknown(String),
    /// The caller dropped the call. Its messages must return to the queue.
    Dropped,
}

impl Said {
    pub fn ok() -> Self {
        Self::Ok { ids: Vec::new(), got: Vec::new(), lost: Vec::new() }
    }

    pub fn ids(ids: Vec<i64>) -> Self {
        Self::Ok { ids, got: Vec::new(), lost: Vec::new() }
    }

    pub fn got(got: Vec<Got>) -> Self {
        Self::Ok { ids: Vec::new(), got, lost: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub at: Micros,
    pub op: u64,
    #[serde(flatten)]
    pub said: Said,
}

/// The history that a running process writes.
#[derive(Debug)]
pub struct Log {
    file: File,
    next: AtomicU64,
}

impl Log {
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create_new(true).append(true).open(path)?;
        Ok(Self { file, next: AtomicU64::new(1) })
    }

    /// Records that an operation begins, and returns its number.
    pub fn invoked(&self, call: Call) -> u64 {
        let op = self.next.fetch_add(1, Ordering::Relaxed);
        self.say(op, Said::Invoked(call));
        op
    }

    /// Writes a line. If the write fails, the process ends, because a history with gaps proves
    /// nothing.
    pub fn say(&self, op: u64, said: Said) {
        let written =
            serde_json::to_vec(&Line { at: now(), op, said }).map_err(io::Error::other).and_then(|mut line| {
                line.push(b'\n');
                (&self.file).write_all(&line)
            });
        if let Err(error) = written {
            eprintln!("the history cannot be written: {error}");
            std::process::exit(3);
        }
    }
}

/// The end of an operation, as far as its process knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    Failed,
    /// The outcome is unknown, or the process died before the operation ended.
    Unknown,
    Dropped,
}

#[derive(Debug, Clone)]
pub struct Op {
    /// The name of the process, which is the name of its file.
    pub process: String,
    pub nr: u64,
    pub call: Call,
    pub began: Micros,
    /// The end time; `Micros::MAX` if the process recorded no end.
    pub ended: Micros,
    pub outcome: Outcome,
    pub ids: Vec<i64>,
    pub got: Vec<Got>,
    pub lost: Vec<i64>,
    pub why: String,
    pub became: Became,
}

impl Op {
    /// Returns the operation's name in reports, such as `producer-1.0:17`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.process, self.nr)
    }

    /// Returns true if the operation may have happened, at least partly.
    pub fn may_have_happened(&self) -> bool {
        self.outcome != Outcome::Failed
    }
}

/// Returns the operations of a history, ordered by their start. Ignores a last line that a kill cut
/// short.
pub fn read(process: &str, text: &str) -> Result<Vec<Op>, String> {
    let mut ops: Vec<Op> = Vec::new();
    let mut at = std::collections::HashMap::new();
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let said = match serde_json::from_str::<Line>(line) {
            Ok(said) => said,
            Err(_) if lines.peek().is_none() && !line.ends_with('\n') => break,
            Err(error) => return Err(format!("the history of {process} has a line that is none: {error}: {line}")),
        };
        if let Said::Invoked(call) = said.said {
            at.insert(said.op, ops.len());
            ops.push(Op {
                process: process.to_owned(),
                nr: said.op,
                call,
                began: said.at,
                ended: Micros::MAX,
                outcome: Outcome::Unknown,
                ids: Vec::new(),
                got: Vec::new(),
                lost: Vec::new(),
                why: String::new(),
                became: Became::New,
            });
            continue;
        }
        let Some(op) = at.get(&said.op).map(|at| &mut ops[*at]) else {
            return Err(format!("the history of {process} ends operation {}, which did not begin", said.op));
        };
        if let Said::Took(got) = said.said {
            op.got = got;
            continue;
        }
        op.ended = said.at;
        op.outcome = match said.said {
            Said::Ok { ids, got, lost } => {
                (op.ids, op.lost) = (ids, lost);
                if !got.is_empty() {
                    op.got = got;
                }
                Outcome::Ok
            }
            Said::Held(id) => {
                (op.ids, op.became) = (vec![id], Became::Duplicate);
                Outcome::Ok
            }
            Said::Replaced(id) => {
                (op.ids, op.became) = (vec![id], Became::Replaced);
                Outcome::Ok
            }
            Said::Failed(why) => {
                op.why = why;
                Outcome::Failed
            }
            Said::Unknown(why) => {
                op.why = why;
                Outcome::Unknown
            }
            Said::Dropped | Said::Invoked(_) | Said::Took(_) => Outcome::Dropped,
        };
    }
    Ok(ops)
}

#[cfg(test)]
mod tests;
