use std::time::Duration;

use super::{
    Report,
    number::{head, line, short},
};
use crate::{
    measured::{Measured, Spread},
    ways::{
        OUR_ARRAYS, OURS, PIPELINED, PIPELINED_TOGETHER, SEQUENCE, THEIR_ARRAYS, is_bulk, is_rival, is_tokio_postgres,
    },
    workloads::{ENTRIES, GETS, INSERTS, SELECTS, STREAM_WHOLE, STREAMS, WORKLOADS},
};

const NEAR: Duration = Duration::ZERO;
const FAR: Duration = Duration::from_millis(5);
/// The name for the ways of all other drivers together. The report names the fastest of these ways.
const ALL: &str = "all rivals";

/// A promised ratio, and the measured ratio.
struct Bar {
    what: String,
    bound: Bound,
    /// The measured ratio; `None` if it was not measured.
    measured: Option<f64>,
}

impl Bar {
    fn is_held(&self) -> Option<bool> {
        self.measured.map(|measured| self.bound.is_held(measured))
    }
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

/// Lists the promises, and whether each was kept. Broken promises come first.
pub fn section(report: &Report) -> String {
    let least = bars(report, &|spread| spread.least);
    let mut bars: Vec<(Bar, Bar)> = bars(report, &|spread| spread.median).into_iter().zip(least).collect();
    bars.sort_by_key(|(bar, _)| bar.is_held() != Some(false));
    let missed = bars.iter().filter(|(bar, _)| bar.is_held() == Some(false)).count();
    let measured = bars.iter().filter(|(bar, _)| bar.measured.is_some()).count();
    let mut text = format!(
        "## Bars\n\nA ratio is their time by ours, of medians; beside it, of the least turns, which a busy machine moves less. \
         {missed} of {measured} are missed; they come first.\n\n"
    );
    text += &head(&["bar", "asked", "medians", "", "least turns"].map(str::to_owned));
    for (bar, least) in bars {
        let told = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        let held = match bar.is_held() {
            None => "not measured, or it scatters",
            Some(true) => "held",
            Some(false) => "**missed**",
        };
        text += &line(&[bar.what, bar.bound.told(), told(bar.measured), held.to_owned(), told(least.measured)]);
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
        let has = |is_it: &dyn Fn(&str) -> bool| report.at(NEAR, workload).any(|row| is_it(row.way));
        // Without a row `trunkline, arrays`, the row `trunkline` itself uses arrays, and is
        // compared with all ways. Otherwise it is compared only with ways without arrays.
        let apart = has(&|way| way == OUR_ARRAYS);
        let is_like_ours = |way: &str| !(apart && is_bulk(way));
        let mut beside = |what: &str, ours, is_theirs: &dyn Fn(&str) -> bool| {
            let ratio = fastest(report, workload, is_theirs, of).zip(time(NEAR, workload, ours));
            let by = ratio.filter(|_| what.ends_with(ALL)).map(|((_, way), _)| format!(" ({way})"));
            let what = format!("{workload}: {what}{}", by.unwrap_or_default());
            bar(what, Bound::Least(1.0), ratio.map(|((theirs, _), ours)| theirs / ours));
        };
        let others = has(&|way| is_rival(way) && !is_tokio_postgres(way));
        beside("the fastest of tokio-postgres' ways", OURS, &|way| is_tokio_postgres(way) && is_like_ours(way));
        if others {
            beside(&format!("the fastest of {ALL}"), OURS, &|way| is_rival(way) && is_like_ours(way));
        }
        if apart {
            beside("the same statement with arrays, by tokio-postgres", OUR_ARRAYS, &|way| way == THEIR_ARRAYS);
        }
        if apart && others {
            let what = format!("the same statement with arrays, by the fastest of {ALL}");
            beside(&what, OUR_ARRAYS, &|way| is_rival(way) && is_bulk(way));
        }
    }
    bars
}

/// Returns the fastest of these ways, and its time.
fn fastest(
    report: &Report,
    workload: &str,
    is_theirs: &dyn Fn(&str) -> bool,
    of: &dyn Fn(Spread) -> f64,
) -> Option<(f64, &'static str)> {
    let theirs = report.at(NEAR, workload).filter(|row| is_theirs(row.way));
    let steady = |row: &Measured| row.milliseconds().filter(|spread| !spread.scatters()).map(of);
    theirs.filter_map(|row| Some((steady(row)?, row.way))).min_by(|one, other| one.0.total_cmp(&other.0))
}
