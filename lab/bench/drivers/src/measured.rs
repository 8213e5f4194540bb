use std::time::Duration;

use crate::workloads::Workload;

/// One turn of a way at a workload.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    pub time: Duration,
    pub cpu: Duration,
}

/// All turns of a way at a workload, so far away.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Each way.
    pub delay: Duration,
    pub workload: Workload,
    pub way: &'static str,
    pub turns: Vec<Turn>,
}

/// The middle one, the least and the most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    /// The first and the last tenth begin and end there: one turn among many that was held up says
    /// nothing of the others.
    pub low: f64,
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
    /// Whether the turns, but for a tenth at each end, differ so much that their median says
    /// nothing: more than threefold.
    pub fn scatters(&self) -> bool {
        self.high > 3.0 * self.low
    }
}

impl Measured {
    /// Milliseconds a turn.
    pub fn milliseconds(&self) -> Option<Spread> {
        Spread::of(self.turns.iter().map(|turn| turn.time.as_secs_f64() * 1e3).collect())
    }

    /// Microseconds of the client's processor a statement, over all turns: what is counted is too
    /// coarse for one.
    pub fn cpu(&self) -> Option<f64> {
        let all: f64 = self.turns.iter().map(|turn| turn.cpu.as_secs_f64() * 1e6).sum();
        (!self.turns.is_empty()).then(|| all / (self.turns.len() * self.workload.statements) as f64)
    }
}
