//! The results of a run: one row per contender and case, with all of its rounds.

mod server;
mod told;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::{server::Server, told::Told};

/// The rows of a run, in the format of `results.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Results {
    /// The runs that made the rows. Published results have one run per part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Header>,
    pub rows: Vec<Row>,
}

impl Results {
    /// Returns the run, if all rows belong to one run.
    pub fn run(&self) -> Option<&Header> {
        match &self.runs[..] {
            [run] => Some(run),
            _ => None,
        }
    }
}

/// A run, with its options and the times at which it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The time at which the run began, which is also its name: `2026-11-22T00-13-59`.
    pub id: String,
    pub made: Made,
    /// The start and end of each uninterrupted part of the run, as Unix timestamps in seconds.
    pub sittings: Vec<(u64, u64)>,
    /// The names of all planned rows of the run.
    pub planned: Vec<String>,
    /// The parts of a whole run that this run omits.
    pub left_out: Vec<String>,
}

/// The conditions under which a row was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The commit, followed by `+` if the tree had uncommitted changes.
    pub commit: String,
    /// The arguments of the program.
    pub arguments: String,
    /// The build profile: `release` or `debug`.
    pub build: String,
}

/// One contender in one case of a suite.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The suite: `layer-comparison`, `throughput`, …
    pub suite: String,
    /// The measured case: `send-single`, `drain`, …
    pub case: String,
    /// The contender: `queue`, `river`, …
    pub contender: String,
    /// The contender's description of its own version.
    pub version: String,
    pub runtime: String,
    pub settings: String,
    pub told: Told,
    pub server: Server,
    /// The durable writes per second by each method of the server's own `pg_test_fsync`, at the
    /// start of the run.
    #[serde(default)]
    pub disk: String,
    /// The time at which the row's measurement ended, in seconds since 1970.
    pub measured_at: u64,
    /// The id of the row's run.
    #[serde(default)]
    pub run: String,
    #[serde(default)]
    pub made: Made,
    /// The major version of PostgreSQL that the row requires; `None` means the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major: Option<u32>,
    /// The number of rounds that were requested.
    #[serde(default)]
    pub planned_rounds: u32,
    pub outcome: Outcome,
    pub rounds: Vec<Round>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Measured,
    /// The reason why the contender cannot run here.
    Missing(String),
    /// The last output of a contender that was silent for too long.
    Stalled(String),
    Failed(String),
}

/// One turn of a row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Round {
    pub sent: u64,
    pub received: u64,
    pub seconds: f64,
    /// The latencies in microseconds; `None` if none were reported.
    pub latency: Option<Latency>,
    /// The latencies of each part of the time, if there are several parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Latency>,
    /// The client's processor time per message, in microseconds.
    pub client_cpu_us: Option<f64>,
    /// The server's processor time per message, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// Bytes of the write-ahead log per message.
    pub wal_bytes: Option<f64>,
    /// Transactions per message.
    pub transactions: Option<f64>,
    /// Statements per message, if the server counts them.
    pub statements: Option<f64>,
    /// The number of processors that the client used over the whole round.
    pub client_cpu: Option<f64>,
    /// The number of processors that the server used over the whole round.
    pub server_cpu: Option<f64>,
    /// Statements per second over the whole round, if the server counts them.
    pub statements_per_second: Option<f64>,
    /// The step of the counters of processor time, in seconds. Rows of older runs used the kernel's
    /// ticks.
    #[serde(default = "tick")]
    pub cpu_step: f64,
    /// Bytes of the write-ahead log per second.
    #[serde(default)]
    pub wal_per_second: Option<f64>,
    /// Bytes per second that the server read from disk.
    #[serde(default)]
    pub read_per_second: Option<f64>,
    /// Bytes per second that the server wrote to disk.
    #[serde(default)]
    pub written_per_second: Option<f64>,
    /// The peak memory of the contender's processes, in bytes.
    #[serde(default)]
    pub client_memory: Option<u64>,
    /// The average number of the contender's sessions in each wait state while the clock ran:
    /// `running`, `Client:ClientRead`, `IO:WALSync`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<String, f64>,
    /// The number of dead rows before the round; `None` if the server's statistics lacked it.
    pub dead_before: Option<u64>,
    /// The number of dead rows after the round.
    pub dead_after: Option<u64>,
    /// The number of messages that arrived out of the order of their keys, if they have keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disordered: Option<u64>,
    /// Allocations per step, if they are counted.
    pub allocations: Option<f64>,
    /// Allocated bytes per step, if they are counted.
    pub allocated_bytes: Option<f64>,
    /// The number of 8 KiB writes per second that the disk made durable before the round.
    pub fsyncs_before: f64,
    /// The same number after the round.
    pub fsyncs_after: f64,
    /// The share of the processors that the machine's host gave to other machines.
    pub stolen: f64,
    /// A description of the disturbance of the round, if there was one.
    pub disturbed: Option<String>,
    /// Samples over time, if the suite measures changes over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Sample>,
}

/// The kernel's tick, in seconds.
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

/// A sample of a long run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the start.
    pub at: f64,
    /// Sent messages per second since the previous sample.
    pub sent: f64,
    /// Received messages per second since the previous sample.
    pub received: f64,
    /// The server's processor time per received message since the previous sample, in microseconds.
    pub server_cpu_us: f64,
    pub dead: u64,
    /// Bytes of all tables and indexes of the database.
    pub size: u64,
}

impl Latency {
    /// Returns the percentile, if at least one sample lies beyond it: p99 needs 100 samples, p99.9
    /// needs 1,000.
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
    /// Returns `suite/case/contender`, with `@` and the version if the row ran on another major
    /// version of PostgreSQL.
    pub fn name(&self) -> String {
        let name = format!("{}/{}/{}", self.suite, self.case, self.contender);
        self.major.map_or(name.clone(), |major| format!("{name}@{major}"))
    }

    /// Returns true if the row was measured in fewer rounds than were requested.
    pub fn lacks_rounds(&self) -> bool {
        self.outcome == Outcome::Measured && self.rounds.len() < self.planned_rounds as usize
    }

    /// Returns the median over the rounds, with the minimum and the maximum. Returns `None` if no
    /// round has the figure.
    pub fn over(&self, figure: impl Fn(&Round) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(figure).collect())
    }
}

/// The minimum number of counter steps for which a processor time is meaningful.
const STEPS: f64 = 20.0;

impl Round {
    /// Returns true if this processor time is long enough to be meaningful, given the step of its
    /// counter.
    pub fn bears(&self, seconds: f64) -> bool {
        seconds >= STEPS * self.cpu_step
    }

    fn messages(&self) -> f64 {
        self.sent.max(self.received) as f64
    }

    /// Returns the client's processor time per message, in microseconds, if it is meaningful.
    pub fn client_cpu_us(&self) -> Option<f64> {
        self.client_cpu_us.filter(|each| self.bears(each * self.messages() / 1e6))
    }

    pub fn server_cpu_us(&self) -> Option<f64> {
        self.server_cpu_us.filter(|each| self.bears(each * self.messages() / 1e6))
    }

    /// Returns the number of processors that the client used, if it is meaningful.
    pub fn client_cpu(&self) -> Option<f64> {
        self.client_cpu.filter(|share| self.bears(share * self.seconds))
    }

    pub fn server_cpu(&self) -> Option<f64> {
        self.server_cpu.filter(|share| self.bears(share * self.seconds))
    }

    pub fn sent_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.sent > 0).then(|| self.sent as f64 / self.seconds)
    }

    /// Returns the bytes of payloads that were sent per second, if each payload has at least a
    /// kilobyte.
    pub fn payloads_per_second(&self, told: &Told) -> Option<f64> {
        let bytes = (told.payload >= 1_000).then_some(told.payload as f64)?;
        self.sent_per_second().map(|rate| rate * bytes)
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

    /// Returns true if the rounds differ more than threefold, so that their median is meaningless.
    pub fn scatters(&self) -> bool {
        self.most > 3.0 * self.least
    }
}
