use std::time::Duration;

use super::{
    Report,
    number::{head, line, short},
};
use crate::{
    measured::Measured,
    ways::{OUR_ARRAYS, OURS, PIPELINED, PIPELINED_TOGETHER, SEQUENCE},
    workloads::{ENTRIES, GETS, INSERTS, SELECTS, WORKLOADS},
};

const NEAR: Duration = Duration::ZERO;
const FAR: Duration = Duration::from_millis(5);

/// A promise in numbers: so many times at least.
struct Bar {
    what: String,
    least: f64,
    /// Nothing where it was not measured.
    measured: Option<f64>,
}

/// What was promised, and whether it was held.
pub fn section(report: &Report) -> String {
    let mut text = "## Bars\n\nMedians of one run; \"times\" is how many times faster or less.\n\n".to_owned();
    let cells = ["bar", "times, at least", "measured", ""].map(str::to_owned);
    text += &head(&cells);
    for Bar { what, least, measured } in bars(report) {
        let (measured, held) = match measured {
            None => ("-".to_owned(), "not measured"),
            Some(times) => (short(times), if times >= least { "held" } else { "**missed**" }),
        };
        text += &line(&[what, short(least), measured, held.to_owned()]);
    }
    text.push('\n');
    text
}

fn bars(report: &Report) -> Vec<Bar> {
    let ratio =
        |delay, workload, theirs| Some(report.time(delay, workload, theirs)? / report.time(delay, workload, OURS)?);
    let cpu = |workload, way| report.row(NEAR, workload, way).and_then(Measured::cpu);
    let bar = |what: String, least, measured| Bar { what, least, measured };
    let mut bars = Vec::new();
    for workload in [ENTRIES, INSERTS] {
        let together = ratio(NEAR, workload, PIPELINED_TOGETHER);
        bars.push(bar(format!("{workload}: tokio-postgres pipelined between `begin` and `commit`"), 2.0, together));
        bars.push(bar(format!("{workload}: tokio-postgres pipelined"), 20.0, ratio(NEAR, workload, PIPELINED)));
    }
    for workload in [SELECTS, GETS] {
        bars.push(bar(format!("{workload}: tokio-postgres pipelined"), 2.0, ratio(NEAR, workload, PIPELINED)));
        let costs = cpu(workload, PIPELINED).zip(cpu(workload, OURS)).map(|(theirs, ours)| theirs / ours);
        bars.push(bar(format!("{workload}: the client's processor time of that"), 5.0, costs));
    }
    for workload in ["get ×100", "update ×100"] {
        // A round trip is 10 ms then.
        let trips = report.time(FAR, workload, OURS).map(|time| 13.0 / time);
        bars.push(bar(format!("{workload}, 5 ms each way: 1.3 round trips"), 1.0, trips));
        let sequence = ratio(FAR, workload, SEQUENCE);
        bars.push(bar(format!("{workload}, 5 ms each way: tokio-postgres in sequence"), 50.0, sequence));
    }
    for workload in WORKLOADS {
        bars.push(bar(
            format!("{}: the fastest of tokio-postgres' ways", workload.name),
            1.0,
            fastest(report, workload.name),
        ));
    }
    bars
}

/// The fastest of theirs by the fastest of ours.
fn fastest(report: &Report, workload: &str) -> Option<f64> {
    let least = |is_it: &dyn Fn(&str) -> bool| {
        let rows =
            report.measured.iter().filter(|row| row.delay.is_zero() && row.workload.name == workload && is_it(row.way));
        rows.filter_map(|row| Some(row.milliseconds()?.median)).min_by(f64::total_cmp)
    };
    let (ours, theirs) =
        (least(&|way| way == OURS || way == OUR_ARRAYS), least(&|way| way.starts_with("tokio-postgres")));
    Some(theirs? / ours?)
}
