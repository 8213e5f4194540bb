//! What was measured, as `crates/relay/results.json` has it; the guide's table is made of that by a
//! test.

use std::process::Command;

use serde::{Deserialize, Serialize};

/// A run: all that is needed to read its figures.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// The command that made it.
    pub command: String,
    /// The commit that was built.
    pub commit: String,
    pub cores: usize,
    pub postgres: String,
    /// Messages of a turn, of `bytes` bytes.
    pub messages: usize,
    pub bytes: usize,
    pub brokers: Vec<Measured>,
}

/// One broker: messages a second, a figure a turn.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measured {
    pub broker: String,
    /// Of the folder of PostgreSQL, a second, before the first turn.
    pub fsyncs: f64,
    pub relay: Vec<f64>,
    pub plain: Vec<f64>,
    /// Of the broker's own tool; or why there is none.
    pub own_tool: Result<Vec<f64>, String>,
    /// From commit to broker at 100 a second, in milliseconds.
    pub p50: Vec<f64>,
    pub p99: Vec<f64>,
}

/// The first line that a program prints, or nothing.
pub fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}
