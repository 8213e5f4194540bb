//! What came out, as tables.

mod number;
mod workloads;
mod steps;
mod bars;
mod verbs;
mod csv;

pub use self::csv::csv;
use std::time::Duration;

use crate::{measured::Measured, queue::Verb};

/// Everything that a run measured.
pub struct Report {
    /// The server and the machine, in a line.
    pub machine: String,
    pub measured: Vec<Measured>,
    pub verbs: Vec<Verb>,
}

impl Report {
    pub fn markdown(&self) -> String {
        let mut text = format!("{HEAD}{}\n\n", self.machine);
        for section in [bars::section, steps::section, workloads::section, verbs::section] {
            text += &section(self);
        }
        text
    }

    /// The delays, from near to far.
    fn delays(&self) -> Vec<Duration> {
        let measured = self.measured.iter().map(|row| row.delay);
        let mut delays: Vec<Duration> = measured.chain(self.verbs.iter().map(|row| row.delay)).collect();
        delays.sort_unstable();
        delays.dedup();
        delays
    }

    fn row(&self, delay: Duration, workload: &str, way: &str) -> Option<&Measured> {
        let is_it = |row: &&Measured| (row.delay, row.workload.name, row.way) == (delay, workload, way);
        self.measured.iter().find(is_it)
    }

    /// Milliseconds in the median.
    fn time(&self, delay: Duration, workload: &str, way: &str) -> Option<f64> {
        Some(self.row(delay, workload, way)?.milliseconds()?.median)
    }
}

const HEAD: &str = "\
# Ways of driving Postgres, side by side

Made by `cargo run --release -p trunkline-bench -- drivers --markdown bench/results/drivers.md --csv bench/results/drivers.csv`; what it is, and how to
read it: [bench/README.md](../README.md#ways-of-driving-postgres). A figure is the median of its turns in milliseconds, in brackets the least and the most. Client and server share the machine.

";
