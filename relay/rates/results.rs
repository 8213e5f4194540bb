//! What was measured, as `relay/results.json` has it; the guide's table is made of that by a test.

use std::{
    fs,
    io::{Seek, Write},
    path::Path,
    process::Command,
    time::Instant,
};

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
    /// Messages of a turn, of so many bytes.
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

/// Flushes of a page, a second.
pub fn fsyncs(folder: &Path) -> std::io::Result<f64> {
    let path = folder.join("trunkline-fsync");
    let mut file = fs::File::create(&path)?;
    let (began, mut count) = (Instant::now(), 0);
    while count < 5 || count < 500 && began.elapsed().as_secs_f64() < 1.0 {
        file.rewind()?;
        file.write_all(&[0; 8192])?;
        file.sync_data()?;
        count += 1;
    }
    let rate = f64::from(count) / began.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(rate)
}

/// The first line that a program prints, or nothing.
pub fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}
