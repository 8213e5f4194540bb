//! The page that shows how a queue works: its workers, sessions, partitions and keys.

use std::time::SystemTime;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use trunkline::{Db, Description, Result};

use super::{
    chart::{self, Chart},
    point::{Flow, Point},
    pulse::Known,
    statement::{self, MOST, sql},
    words,
};
use crate::{
    metrics::ask::alone,
    reason::{lacks_right, reason},
    schema::Text,
};

/// A worker that reports to the database.
#[derive(Debug, Clone)]
pub struct WorkerRow {
    pub who: String,
    pub version: String,
    /// `works`, `ended`, or `silent` after half a minute without a report.
    pub state: &'static str,
    pub started: String,
    pub seen: String,
    pub running: String,
    pub rate: String,
    pub handled: String,
    pub failed: String,
    pub half: String,
    pub most: String,
}

/// The sessions of one program on one machine: the program, the machine, the number of sessions,
/// the time of the last activity.
pub type Sessions = (String, String, i64, String);

/// A partition of a queue with keys.
#[derive(Debug, Clone)]
pub struct PartitionRow {
    pub partition: i32,
    pub held: String,
    pub wanted: bool,
    /// The first message in the partition.
    pub first: Option<First>,
    pub lines: String,
}

/// The first message of a partition or of a key. The messages after it wait for it.
#[derive(Debug, Clone)]
pub struct First {
    pub id: i64,
    pub key: String,
    pub state: String,
    pub until: String,
}

/// A key with its own backlog.
#[derive(Debug, Clone)]
pub struct KeyRow {
    pub key: String,
    /// The key, encoded for a link.
    pub link: String,
    pub partition: i32,
    /// The reason why the key waits.
    pub why: String,
    pub first: Option<First>,
    pub error: String,
    pub waiting: String,
}

type Reported = (String, String, SystemTime, SystemTime, bool, Vec<i64>, f64, Option<f64>, Option<f64>);
type Session = (String, String, i64, Option<SystemTime>);
type Partition = (i32, Option<SystemTime>, bool, Option<i64>, Option<String>, Option<SystemTime>, String, i64);
type Key = (String, i32, Option<i64>, String, Option<SystemTime>, i32, Option<String>, i64, bool);

/// Everything that the page shows. Parts that the role may not see, or that the server did not
/// return in time, are missing, and `hidden` contains the reasons.
#[derive(Debug, Clone, Default)]
pub struct Workings {
    pub workers: Vec<WorkerRow>,
    /// The workers' reports of the last hour.
    pub charts: Vec<Chart>,
    pub sessions: Vec<Sessions>,
    pub partitions: Vec<PartitionRow>,
    pub keys: Vec<KeyRow>,
    /// The name of the database's shard, and whether the shard is being drained.
    pub shard: Option<(String, bool)>,
    pub hidden: Vec<String>,
    /// True if a part is missing for another reason than a right. A later reading may find it.
    has_failed: bool,
    /// True on a standby, which has no workers' reports.
    pub is_standby: bool,
    /// The time at which everything was read.
    pub at: String,
}

impl Workings {
    pub async fn of(db: &Db, queue: &Description) -> Self {
        let mut all = Self { at: words::time(SystemTime::now()), ..Self::default() };
        let name = queue.name.as_str();
        let is_standby = matches!(statement::readable(db).await, Ok((.., true)));
        let told: Option<Vec<Reported>> = match is_standby {
            true => None,
            false => all.seen("workers' reports", alone(db, Text::of(db, sql!("workers")), (name,), MOST).await),
        };
        all.is_standby = is_standby;
        all.workers = told.unwrap_or_default().into_iter().map(worker).collect();
        if !all.workers.is_empty() {
            let minutes: Option<Vec<Minute>> =
                all.seen("workers' reports", alone(db, Text::of(db, sql!("handlers")), (name,), MOST).await);
            all.charts = handlers(&minutes.unwrap_or_default());
        }
        let sessions: Option<Vec<Session>> =
            all.seen("sessions", alone(db, Text::of(db, sql!("sessions")), (name,), MOST).await);
        let last = |at: Option<SystemTime>| at.map_or_else(|| "just now".to_owned(), words::ago);
        let sessions = sessions.unwrap_or_default().into_iter();
        all.sessions = sessions.map(|(name, place, count, at)| (words::shown(&name), place, count, last(at))).collect();
        all.shard = all.seen("the shard", alone(db, Text::of(db, sql!("shard")), (), MOST).await);
        if queue.partitions > 0 {
            let fill = |text: &str| Text::of(db, text).with_tables(name);
            let partitions: Option<Vec<Partition>> =
                all.seen("partitions", alone(db, fill(sql!("partitions")), (), MOST).await);
            all.partitions = partitions.unwrap_or_default().into_iter().map(partition).collect();
            let keys: Option<Vec<Key>> = all.seen("keys", alone(db, fill(sql!("keys")), (), MOST).await);
            all.keys = keys.unwrap_or_default().into_iter().map(key).collect();
        }
        all
    }

    /// Returns true if no part is missing that a later reading may find.
    pub fn is_whole(&self) -> bool {
        !self.has_failed
    }

    /// Returns true if the role may not see a part. The page must not call that part empty.
    pub fn hides(&self, what: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden.split(':').next() == Some(what))
    }

    fn seen<V>(&mut self, what: &str, outcome: Result<V>) -> Option<V> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.has_failed |= !lacks_right(&error);
                self.hidden.push(format!("{what}: {}", reason(&error)));
                None
            }
        }
    }
}

fn worker((who, version, started, at, ended, numbers, rate, half, most): Reported) -> WorkerRow {
    let number = |place: usize| words::thousands(numbers.get(place).copied().unwrap_or_default());
    let is_silent = at.elapsed().is_ok_and(|passed| passed.as_secs() >= 30);
    let time = |seconds: Option<f64>| seconds.map_or_else(|| "–".to_owned(), chart::seconds);
    WorkerRow {
        who: words::shown(&who),
        version: words::shown(&version),
        state: if ended {
            "ended"
        } else if is_silent {
            "silent"
        } else {
            "works"
        },
        started: words::ago(started),
        seen: words::ago(at),
        running: format!("{} of {}", number(0), number(1)),
        rate: words::rate(if ended || is_silent { 0.0 } else { rate }),
        handled: number(2),
        failed: number(3),
        half: time(half),
        most: time(most),
    }
}

fn partition((partition, held, wanted, id, key, until, state, lines): Partition) -> PartitionRow {
    let held =
        held.map_or_else(|| "none".to_owned(), |until| format!("a worker, whose lease ends {}", words::ago(until)));
    PartitionRow {
        partition,
        held,
        wanted,
        first: first(id, &key.unwrap_or_default(), &state, until),
        lines: words::thousands(lines),
    }
}

fn first(id: Option<i64>, key: &str, state: &str, until: Option<SystemTime>) -> Option<First> {
    let until = until.map_or_else(String::new, words::ago);
    id.map(|id| First { id, key: words::shown(key), state: state.to_owned(), until })
}

fn key((key, partition, id, state, until, attempt, error, waiting, may_be_more): Key) -> KeyRow {
    let until_when = until.map_or_else(String::new, words::ago);
    let why = match state.as_str() {
        "retrying" => format!("its first message, which failed at attempt {attempt} and is due again {until_when}"),
        "leased" => format!("its first message, whose lease ends {until_when}"),
        "rests" => {
            format!("the end of a pause {until_when}: its rate is reached, or its first message is due again then")
        }
        "delayed" => format!("its first message, which is due {until_when}"),
        "due" => "nothing: it is due, and the partition's owner leases it next".to_owned(),
        _ => "nothing: no message of it waits any more".to_owned(),
    };
    let error = words::shown(&error.unwrap_or_default());
    let waiting = format!("{}{}", if may_be_more { "≥ " } else { "" }, words::thousands(waiting));
    let link = utf8_percent_encode(&key, NON_ALPHANUMERIC).to_string();
    KeyRow { first: first(id, &key, &state, until), key: words::shown(&key), link, partition, why, error, waiting }
}

/// A minute of reports: its age in minutes, handled and failed messages per second, and the 50th
/// and 99th percentiles of the handlers' times.
type Minute = (i32, f64, f64, Option<f64>, Option<f64>);

fn handlers(minutes: &[Minute]) -> Vec<Chart> {
    let line = |of: fn(&Minute) -> Option<f64>| -> chart::Values {
        minutes.iter().rev().filter_map(|minute| Some((f64::from(minute.0), of(minute)?))).collect()
    };
    vec![
        Chart::of("Handler time", chart::seconds, 2.0, &[("p50", line(|of| of.3)), ("p99", line(|of| of.4))]),
        Chart::of(
            "Handled per second",
            words::rate,
            2.0,
            &[("handled", line(|of| Some(of.1))), ("failed", line(|of| Some(of.2)))],
        ),
    ]
}

/// Returns charts of this console's own samples of the queue.
pub fn charts(known: &Known) -> Vec<Chart> {
    let line = |of: &dyn Fn(&Point) -> Option<f64>| -> chart::Values {
        let ago = |point: &Point| point.at.elapsed().as_secs_f64() / 60.0;
        known.points.iter().filter_map(|point| Some((ago(point), of(point)?))).collect()
    };
    let rate = |of: fn(&Flow) -> f64| line(&|point| point.flow.as_ref().map(of));
    vec![
        Chart::of("Depth", chart::number, 10.0, &[("messages", line(&|point| Some(point.depth as f64)))]),
        Chart::of("Oldest due", chart::seconds, 10.0, &[("lag", line(&|point| Some(point.oldest)))]),
        Chart::of(
            "Messages per second",
            words::rate,
            10.0,
            &[("in", rate(|flow| flow.came)), ("out", rate(|flow| flow.went)), ("died", rate(|flow| flow.died))],
        ),
    ]
}
