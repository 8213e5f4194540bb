//! What a run leaves: one row a contender and case, with every round of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The rows of a run, as `results.json` keeps them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Results {
    /// The one run that made all of the rows; none where nobody kept that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Header>,
    pub rows: Vec<Row>,
}

/// A run: what was asked for, and when it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// When it began, which is its name: `2026-11-22T00-13-59`.
    pub id: String,
    pub made: Made,
    /// From when to when somebody worked at it, in seconds since 1970: it may have been
    /// interrupted.
    pub sittings: Vec<(u64, u64)>,
    /// The names of all of its rows.
    pub planned: Vec<String>,
    /// What a whole run has and this one was told to leave out.
    pub left_out: Vec<String>,
}

/// By what a row was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The commit; `+` behind it says that the tree had changes that no commit has.
    pub commit: String,
    /// The words behind the program's name.
    pub arguments: String,
    /// `release` or `debug`.
    pub build: String,
}

/// One contender in one case of a suite.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// `layer-comparison`, `throughput`, …
    pub suite: String,
    /// What is measured: `send-single`, `drain`, …
    pub case: String,
    /// `queue`, `river`, …
    pub contender: String,
    /// The contender's own words.
    pub version: String,
    pub runtime: String,
    pub settings: String,
    pub told: Told,
    pub server: Server,
    /// How many writes a second the server's own `pg_test_fsync` saw made durable, by way of doing
    /// it, at the start of the run.
    #[serde(default)]
    pub disk: String,
    /// Seconds since 1970 at its end.
    pub measured_at: u64,
    /// The run that it is of.
    #[serde(default)]
    pub run: String,
    #[serde(default)]
    pub made: Made,
    /// The major version of PostgreSQL that it was to be measured on; none is the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major: Option<u32>,
    /// How many rounds were asked for.
    #[serde(default)]
    pub planned_rounds: u32,
    pub outcome: Outcome,
    pub rounds: Vec<Round>,
}

/// What the contender was told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    pub case: String,
    pub payload: usize,
    pub batch: usize,
    pub producers: usize,
    /// 0 is the contender's own best documented setting.
    pub consumers: usize,
    /// Messages a second; none is as fast as it goes.
    pub rate: Option<f64>,
    pub backlog: usize,
    pub seconds: f64,
    /// `best`, `poll` or `notify`.
    pub wait: String,
    /// Milliseconds that the network takes each way.
    pub delay_ms: f64,
    /// Whether another session holds a snapshot all the while.
    pub held_snapshot: bool,
    /// Rows that were deleted under that snapshot before the clock starts.
    #[serde(default)]
    pub dead: u64,
    /// Parts of the time whose latencies are told apart; 0 is one.
    #[serde(default)]
    pub windows: u32,
    /// Messages that a consumer fetches at a time; 0 is as many as `batch`.
    #[serde(default)]
    pub dequeue_batch: usize,
    /// Threads of the contender's runtime; 0 is as many as it likes.
    #[serde(default)]
    pub threads: usize,
    /// Seconds without anything to do before the clock starts, in which consumers fall asleep.
    #[serde(default)]
    pub settle: f64,
    /// Milliseconds that an fsync of the server takes at least, on a server whose disk can be made
    /// slow: nought is as the disk is. None on any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync_ms: Option<f64>,
    /// Servers that hold the queue together; nought is one, which is no stripe.
    #[serde(default)]
    pub stripes: usize,
    /// Keys that the messages have in turn; nought is none.
    #[serde(default)]
    pub keys: usize,
    /// The messages whose latencies count, going by the lane of their keys: `its-lane`, where it is
    /// that of the backlog's key, or `other-lanes`. Empty is all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timed: String,
}

/// The server and the machine under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// `15.18`
    pub version: String,
    pub fsync: String,
    pub synchronous_commit: String,
    pub wal_level: String,
    pub commit_delay: String,
    /// `unix socket`, `TCP`
    pub connection: String,
    /// Processors that it shares with the contenders.
    pub processors: usize,
    /// The processor's name, where the system tells.
    pub processor: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Measured,
    /// It cannot run here: why.
    Missing(String),
    /// It said nothing for too long: what it said last.
    Stalled(String),
    Failed(String),
}

/// One turn of a row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Round {
    pub sent: u64,
    pub received: u64,
    pub seconds: f64,
    /// In microseconds; none where none are told.
    pub latency: Option<Latency>,
    /// Of each part of the time, where they are told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Latency>,
    /// Processor time a message, in microseconds.
    pub client_cpu_us: Option<f64>,
    pub server_cpu_us: Option<f64>,
    pub wal_bytes: Option<f64>,
    /// Transactions a message, and statements where the server counts them.
    pub transactions: Option<f64>,
    pub statements: Option<f64>,
    /// Whole figures of the round: the processors' use (1 is one processor), statements a second.
    pub client_cpu: Option<f64>,
    pub server_cpu: Option<f64>,
    pub statements_per_second: Option<f64>,
    /// The step, in seconds, of the counters that the processor times came from; rows of older runs
    /// had the kernel's ticks.
    #[serde(default = "tick")]
    pub cpu_step: f64,
    /// Bytes a second of the write-ahead log, and that the server read from disk and wrote to it.
    #[serde(default)]
    pub wal_per_second: Option<f64>,
    #[serde(default)]
    pub read_per_second: Option<f64>,
    #[serde(default)]
    pub written_per_second: Option<f64>,
    /// The most bytes of memory that the contender's processes held.
    #[serde(default)]
    pub client_memory: Option<u64>,
    /// Of the looks at the contender's sessions, the share in each state: `active`, `ClientRead`,
    /// `WALSync`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<String, f64>,
    /// None where the server's statistics did not know.
    pub dead_before: Option<u64>,
    pub dead_after: Option<u64>,
    /// Messages that came out of the order of their keys, where they have keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disordered: Option<u64>,
    /// Allocations a step and their bytes, where they are counted.
    pub allocations: Option<f64>,
    pub allocated_bytes: Option<f64>,
    /// How many 8 KiB writes a second the disk made durable, before and after.
    pub fsyncs_before: f64,
    pub fsyncs_after: f64,
    /// The share of the processors that the machine's host kept for others.
    pub stolen: f64,
    /// What moved under the measurement, if anything did.
    pub disturbed: Option<String>,
    /// What it was like over the time, where the suite is about that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Sample>,
}

/// The kernel's, in seconds.
pub const TICK: f64 = 0.01;

fn tick() -> f64 {
    TICK
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Latency {
    pub count: u64,
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

/// A moment of a long run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the start.
    pub at: f64,
    /// Messages a second since the sample before.
    pub sent: f64,
    pub received: f64,
    /// The server's processor time a received message since the sample before, in microseconds.
    pub server_cpu_us: f64,
    pub dead: u64,
    /// Bytes of all tables and indexes of the database.
    pub size: u64,
}

impl Latency {
    /// A percentile that has a sample beyond it: p99 needs a hundred samples, p99.9 a thousand.
    pub fn p99(&self) -> Option<u64> {
        (self.count >= 100).then_some(self.p99)
    }

    pub fn p999(&self) -> Option<u64> {
        (self.count >= 1000).then_some(self.p999)
    }

    pub fn p90(&self) -> Option<u64> {
        (self.count >= 10).then_some(self.p90)
    }
}

impl Row {
    /// `suite/case/contender`, and on which other PostgreSQL.
    pub fn name(&self) -> String {
        let name = format!("{}/{}/{}", self.suite, self.case, self.contender);
        self.major.map_or(name.clone(), |major| format!("{name}@{major}"))
    }

    /// The median over the rounds, with the least and the most; none where no round has the figure.
    pub fn over(&self, figure: impl Fn(&Round) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(figure).collect())
    }
}

/// Processor times below so many steps of their counter say nothing.
const STEPS: f64 = 20.0;

impl Round {
    /// Whether so many seconds of processor time can be told from the steps of their counter.
    pub fn bears(&self, seconds: f64) -> bool {
        seconds >= STEPS * self.cpu_step
    }

    fn messages(&self) -> f64 {
        self.sent.max(self.received) as f64
    }

    /// Processor time a message, in microseconds, where it can be told.
    pub fn client_cpu_us(&self) -> Option<f64> {
        self.client_cpu_us.filter(|each| self.bears(each * self.messages() / 1e6))
    }

    pub fn server_cpu_us(&self) -> Option<f64> {
        self.server_cpu_us.filter(|each| self.bears(each * self.messages() / 1e6))
    }

    /// Processors in use, where that can be told. A counter without steps tells nothing from
    /// little.
    pub fn client_cpu(&self) -> Option<f64> {
        self.client_cpu.filter(|share| self.bears(share * self.seconds))
    }

    pub fn server_cpu(&self) -> Option<f64> {
        self.server_cpu.filter(|share| self.bears(share * self.seconds))
    }

    pub fn sent_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.sent > 0).then(|| self.sent as f64 / self.seconds)
    }

    pub fn received_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.received > 0).then(|| self.received as f64 / self.seconds)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        Some(Self { median, least, most })
    }

    /// Whether the rounds differ so much that their median says nothing: more than threefold.
    pub fn scatters(&self) -> bool {
        self.most > 3.0 * self.least
    }
}
