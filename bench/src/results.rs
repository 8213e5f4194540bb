//! What a run leaves: one row a contender and case, with every round of it.

use serde::{Deserialize, Serialize};

/// Everything that was measured so far, as `bench/results/results.json` keeps it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Results {
    pub rows: Vec<Row>,
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
    /// How many writes a second the server's own `pg_test_fsync` saw made durable, by way of doing it, at the start of the run.
    #[serde(default)]
    pub disk: String,
    /// Seconds since 1970 at its end.
    pub measured_at: u64,
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
    pub dead_before: Option<u64>,
    pub dead_after: Option<u64>,
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

impl Row {
    /// The median over the rounds, with the least and the most; none where no round has the figure.
    pub fn over(&self, figure: impl Fn(&Round) -> Option<f64>) -> Option<Spread> {
        let mut values: Vec<f64> = self.rounds.iter().filter_map(figure).collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        Some(Spread { median, least, most })
    }
}

impl Round {
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
