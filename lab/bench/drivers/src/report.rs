//! Shows the results as tables.

mod number;
mod workloads;
mod sources;
mod steps;
mod bars;
mod verbs;
mod csv;
mod html;

pub use self::{csv::csv, html::pages};
use std::time::Duration;

use crate::{measured::Measured, queue::Verb};

pub struct Report {
    /// The server and the machine, in one line.
    pub machine: String,
    pub made: Made,
    pub measured: Vec<Measured>,
    pub verbs: Vec<Verb>,
}

/// The conditions under which the measurements were made.
#[derive(Debug, Clone, Default)]
pub struct Made {
    pub arguments: String,
    /// The commit, which the parent process passes. A trailing `+` means that the sources had
    /// uncommitted changes.
    pub commit: String,
    pub rounds: usize,
    pub seconds: f64,
}

impl Made {
    fn told(&self) -> String {
        let Self { arguments, commit, rounds, seconds } = self;
        let commit = if commit.is_empty() { "not known" } else { commit };
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        format!(
            "Made by `trunkline-bench drivers {arguments}`, commit `{commit}`, {build} build. A way had {rounds} turns at a workload, or fewer \
             (at least five) once it had {seconds} s of them, and one if that took more than three seconds.\n\n"
        )
    }
}

impl Report {
    pub fn markdown(&self) -> String {
        let mut text = format!("{HEAD}{}{}\n\n", self.made.told(), self.machine);
        for section in [sources::section, bars::section, steps::section, workloads::section, verbs::section] {
            text += &section(self);
        }
        text
    }

    /// Returns the delays, the shortest first.
    fn delays(&self) -> Vec<Duration> {
        let measured = self.measured.iter().map(|row| row.delay);
        let mut delays: Vec<Duration> = measured.chain(self.verbs.iter().map(|row| row.delay)).collect();
        delays.sort_unstable();
        delays.dedup();
        delays
    }

    /// Returns the rows of a workload at a delay.
    fn at(&self, delay: Duration, workload: &str) -> impl Iterator<Item = &Measured> {
        self.measured.iter().filter(move |row| (row.delay, row.workload.name) == (delay, workload))
    }

    fn row(&self, delay: Duration, workload: &str, way: &str) -> Option<&Measured> {
        self.at(delay, workload).find(|row| row.way == way)
    }

    /// Returns the median in milliseconds, or `None` if the turns vary too much.
    fn time(&self, delay: Duration, workload: &str, way: &str) -> Option<f64> {
        let spread = self.row(delay, workload, way)?.milliseconds()?;
        (!spread.scatters()).then_some(spread.median)
    }
}

const HEAD: &str = "\
# Ways of driving Postgres, side by side

What it is, and how to read it: [lab/bench/README.md](../bench/README.md#ways-of-driving-postgres). A figure is the median of its turns in milliseconds, in brackets the least and
the most; one whose turns scatter more than threefold says nothing, and is not compared. Client and server share the machine.

";

#[cfg(test)]
mod tests;
