use std::time::Duration;

use crate::workloads::Workload;

#[derive(Debug, Clone, Copy)]
pub struct Turn {
    pub time: Duration,
    pub cpu: Duration,
}

/// All turns of a way at a workload, with one delay.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The delay of the network in each direction.
    pub delay: Duration,
    pub workload: Workload,
    pub way: &'static str,
    pub turns: Vec<Turn>,
}

/// The median and the spread of several values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    /// The lowest value after the lowest tenth of the values is dropped, because a single turn may
    /// be an outlier.
    pub low: f64,
    /// The highest value after the highest tenth of the values is dropped.
    pub high: f64,
}

impl Spread {
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        let tenth = values.len() / 10;
        let tenths = (values[tenth], values[values.len() - 1 - tenth]);
        Some(Self { median: f64::midpoint(low, high), least, most, low: tenths.0, high: tenths.1 })
    }
}

impl Spread {
    /// Returns true if the turns differ more than threefold, even without the lowest and the
    /// highest tenth. Their median is then meaningless.
    pub fn scatters(&self) -> bool {
        self.high > 3.0 * self.low
    }
}

impl Measured {
    /// Returns the time per turn, in milliseconds.
    pub fn milliseconds(&self) -> Option<Spread> {
        Spread::of(self.turns.iter().map(|turn| turn.time.as_secs_f64() * 1e3).collect())
    }

    /// Returns the client's processor time per statement, in microseconds, over all turns. The
    /// counter is too coarse for a single turn.
    pub fn cpu(&self) -> Option<f64> {
        let all: f64 = self.turns.iter().map(|turn| turn.cpu.as_secs_f64() * 1e6).sum();
        (!self.turns.is_empty()).then(|| all / (self.turns.len() * self.workload.statements) as f64)
    }
}
