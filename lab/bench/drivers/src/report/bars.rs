use std::time::Duration;

use super::{
    Report,
    number::{head, line, short},
};
use crate::{
    measured::{Measured, Spread},
    ways::{OUR_ARRAYS, OURS, PIPELINED, PIPELINED_TOGETHER, SEQUENCE, THEIR_ARRAYS},
    workloads::{ENTRIES, GETS, INSERTS, SELECTS, STREAM_WHOLE, STREAMS, WORKLOADS},
};

const NEAR: Duration = Duration::ZERO;
const FAR: Duration = Duration::from_millis(5);

/// A promised ratio, and the measured ratio.
struct Bar {
    what: String,
    bound: Bound,
    /// The measured ratio; `None` if it was not measured.
    measured: Option<f64>,
}

#[derive(Clone, Copy)]
enum Bound {
    Least(f64),
    Most(f64),
}

impl Bound {
    fn told(self) -> String {
        match self {
            Self::Least(bound) => format!("≥ {bound}"),
            Self::Most(bound) => format!("≤ {bound}"),
        }
    }

    fn is_held(self, by: f64) -> bool {
        match self {
            Self::Least(bound) => by >= bound,
            Self::Most(bound) => by <= bound,
        }
    }
}

/// Lists the promises, and whether each was kept.
pub fn section(report: &Report) -> String {
    let mut text = "## Bars\n\nA ratio is their time by ours, of medians; beside it, of the least turns, which a busy machine moves less.\n\n".to_owned();
    text += &head(&["bar", "asked", "medians", "", "least turns"].map(str::to_owned));
    let least = bars(report, &|spread| spread.least);
    for (Bar { what, bound, measured }, least) in bars(report, &|spread| spread.median).into_iter().zip(least) {
        let told = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        let held = match measured.map(|measured| bound.is_held(measured)) {
            None => "not measured, or it scatters",
            Some(true) => "held",
            Some(false) => "**missed**",
        };
        text += &line(&[what, bound.told(), told(measured), held.to_owned(), told(least.measured)]);
    }
    text.push('\n');
    text
}

fn bars(report: &Report, of: &dyn Fn(Spread) -> f64) -> Vec<Bar> {
    let steady = |spread: &Spread| !spread.scatters();
    let time = |delay, workload, way| report.row(delay, workload, way)?.milliseconds().filter(steady).map(of);
    let ratio = |delay, workload, theirs| Some(time(delay, workload, theirs)? / time(delay, workload, OURS)?);
    let cpu = |workload, way| report.row(NEAR, workload, way).and_then(Measured::cpu);
    let mut bars = Vec::new();
    let mut bar = |what: String, bound, measured| bars.push(Bar { what, bound, measured });
    for workload in [ENTRIES, INSERTS] {
        let together = ratio(NEAR, workload, PIPELINED_TOGETHER);
        bar(format!("{workload}: tokio-postgres pipelined between `begin` and `commit`"), Bound::Least(2.0), together);
        let each = ratio(NEAR, workload, PIPELINED);
        bar(format!("{workload}: tokio-postgres pipelined, a transaction each"), Bound::Least(20.0), each);
    }
    for workload in [SELECTS, GETS] {
        let pipelined = ratio(NEAR, workload, PIPELINED);
        bar(format!("{workload}: tokio-postgres pipelined"), Bound::Least(2.0), pipelined);
        let costs = cpu(workload, PIPELINED).zip(cpu(workload, OURS)).map(|(theirs, ours)| ours / theirs);
        bar(format!("{workload}: our client's processor time by theirs, pipelined"), Bound::Most(0.2), costs);
    }
    for workload in ["get ×100", "update ×100"] {
        let trips = time(FAR, workload, OURS).map(|time| time / (2e3 * FAR.as_secs_f64()));
        bar(format!("{workload}, 5 ms each way: round trips"), Bound::Most(1.3), trips);
        let sequence = ratio(FAR, workload, SEQUENCE);
        bar(format!("{workload}, 5 ms each way: tokio-postgres in sequence"), Bound::Least(50.0), sequence);
    }
    for workload in STREAMS {
        let times = time(FAR, workload, OURS).zip(time(FAR, STREAM_WHOLE, OURS));
        let longer = times.map(|(chunks, whole)| chunks / whole);
        bar(format!("{workload}, 5 ms each way: the same rows at once"), Bound::Most(1.2), longer);
    }
    for workload in WORKLOADS.iter().map(|workload| workload.name) {
        let fastest = fastest(report, workload, of).zip(time(NEAR, workload, OURS));
        let ratio = fastest.map(|(theirs, ours)| theirs / ours);
        bar(format!("{workload}: the fastest of tokio-postgres' ways"), Bound::Least(1.0), ratio);
        if let Some(ours) = time(NEAR, workload, OUR_ARRAYS) {
            let ratio = time(NEAR, workload, THEIR_ARRAYS).map(|theirs| theirs / ours);
            bar(format!("{workload}: the same statement with arrays, by tokio-postgres"), Bound::Least(1.0), ratio);
        }
    }
    bars
}

/// Returns the time of the fastest way of tokio-postgres. Its way with arrays counts only if
/// `trunkline, arrays` has no row: then `trunkline` itself uses arrays.
fn fastest(report: &Report, workload: &str, of: &dyn Fn(Spread) -> f64) -> Option<f64> {
    let apart = report.row(NEAR, workload, OUR_ARRAYS).is_some();
    let is_it = |row: &&Measured| {
        let theirs = row.way.starts_with("tokio-postgres") && !(apart && row.way == THEIR_ARRAYS);
        theirs && row.delay == NEAR && row.workload.name == workload
    };
    let rows = report.measured.iter().filter(is_it);
    rows.filter_map(|row| row.milliseconds().filter(|spread| !spread.scatters()).map(of)).min_by(f64::total_cmp)
}
