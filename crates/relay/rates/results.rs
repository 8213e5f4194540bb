//! The measurements in `crates/relay/results.json`. A test generates the guide's table from them.

use std::process::Command;

use serde::{Deserialize, Serialize};

/// A run, with everything that a reader needs to judge its figures.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// The command that made the run.
    pub command: String,
    /// The commit that was built.
    pub commit: String,
    pub cores: usize,
    pub postgres: String,
    /// The number of messages per round, of `bytes` bytes each.
    pub messages: usize,
    pub bytes: usize,
    pub brokers: Vec<Measured>,
}

/// The results for one broker: messages per second, one figure per round.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measured {
    pub broker: String,
    /// Syncs per second in PostgreSQL's data folder, measured before the first round.
    pub fsyncs: f64,
    pub relay: Vec<f64>,
    pub plain: Vec<f64>,
    /// The rates of the broker's own tool, or the reason why there are none.
    pub own_tool: Result<Vec<f64>, String>,
    /// Time from commit to broker at 100 messages per second, in milliseconds.
    pub p50: Vec<f64>,
    pub p99: Vec<f64>,
}

/// Returns the first line that a program prints, or an empty text.
pub fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}
