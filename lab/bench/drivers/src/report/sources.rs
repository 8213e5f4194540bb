use std::{fmt::Write, time::Duration};

use super::{
    Report,
    number::{away, head, line, short},
};
use crate::ways::{OUR_ARRAYS, OURS, SEQUENCE, SEQUENCE_TOGETHER, TEXT};

/// A source of gain, the workloads that show it, and the ways that use it. The report compares the
/// first of these ways that has a row.
struct Source {
    name: &'static str,
    workloads: &'static [&'static [&'static str]],
    ways: &'static [&'static str],
}

const READ: &[&str] = &["get ×100", "select list ×100", "select in ×20"];
const SENT: &[&str] = &["delete ×100, select", "mixed ×100, select"];
const WRITTEN: &[&str] = &["insert ×100 returning", "upsert ×100", "insert many ×1000", "update ×100", "replace ×100"];

const SOURCES: [Source; 5] = [
    Source {
        name: "binary protocol: prepared, each awaited",
        workloads: &[READ, SENT, WRITTEN],
        ways: &[SEQUENCE_TOGETHER, SEQUENCE],
    },
    Source { name: "`unnest`: one statement for all rows", workloads: &[WRITTEN], ways: &[OUR_ARRAYS, OURS] },
    Source { name: "fire-and-forget: writes are sent, not awaited", workloads: &[SENT], ways: &[OURS] },
    Source { name: "pipelining: reads share one Sync", workloads: &[READ], ways: &[OURS] },
    Source { name: "together", workloads: &[READ, SENT, WRITTEN], ways: &[OUR_ARRAYS, OURS] },
];
/// The combination of all other sources.
const TOGETHER: &Source = &SOURCES[4];
/// The workload whose time shows the cost of a delay.
const SHOWN: &str = READ[0];

/// Summarizes the gains by source, and their growth with the delay.
pub fn section(report: &Report) -> String {
    let delays = report.delays();
    let mut text = format!(
        "## Where the gain comes from\n\nHow many times faster each source is than `{TEXT}`: the geometric mean of the workloads that have it, in \
         brackets the least and the most. All but the first have the binary protocol, too.\n\n"
    );
    let mut cells = vec!["source".to_owned(), "workloads".to_owned()];
    cells.extend(delays.iter().copied().map(away));
    text += &head(&cells);
    let all = SOURCES.each_ref().map(|source| (source, gains(report, source, &delays)));
    if all.iter().all(|(_, gains)| gains.iter().all(Vec::is_empty)) {
        return String::new();
    }
    for (source, gains) in all {
        let count = gains.first().map_or(0, Vec::len);
        let mut cells = vec![source.name.to_owned(), count.to_string()];
        cells.extend(gains.iter().map(|gains| told(gains)));
        text += &line(&cells);
    }
    text.push('\n');
    text + &growth(report, &delays)
}

/// Returns the gains at each delay. Includes only workloads with a gain at every delay.
fn gains(report: &Report, source: &Source, delays: &[Duration]) -> Vec<Vec<f64>> {
    let gain = |delay: Duration, workload| {
        let time = |way| report.time(delay, workload, way);
        Some(time(TEXT)? / time(way(report, source, workload)?)?)
    };
    let all = source.workloads.iter().copied().flatten();
    let rows: Vec<Vec<f64>> = all.filter_map(|name| delays.iter().map(|delay| gain(*delay, name)).collect()).collect();
    (0..delays.len()).map(|at| rows.iter().map(|row| row[at]).collect()).collect()
}

fn way(report: &Report, source: &Source, workload: &str) -> Option<&'static str> {
    let has_row = |way: &&&str| report.measured.iter().any(|row| (row.workload.name, row.way) == (workload, **way));
    source.ways.iter().find(has_row).copied()
}

fn mean(gains: &[f64]) -> Option<f64> {
    let sum: f64 = gains.iter().map(|gain| gain.ln()).sum();
    (!gains.is_empty()).then(|| (sum / gains.len() as f64).exp())
}

fn told(gains: &[f64]) -> String {
    let least = gains.iter().copied().min_by(f64::total_cmp);
    let most = gains.iter().copied().max_by(f64::total_cmp);
    let all = mean(gains).zip(least).zip(most);
    all.map_or_else(
        || "-".to_owned(),
        |((mean, least), most)| format!("{}× ({}, {})", short(mean), short(least), short(most)),
    )
}

/// Describes how much the gain grows from the shortest to the longest delay.
fn growth(report: &Report, delays: &[Duration]) -> String {
    let [near, .., far] = delays else { return String::new() };
    let means: Vec<f64> = gains(report, TOGETHER, delays).iter().filter_map(|gains| mean(gains)).collect();
    let [first, .., last] = means[..] else { return String::new() };
    let mut text = format!(
        "Together they gain {}× at {} and {}× at {}, {} times as much",
        short(first),
        away(*near),
        short(last),
        away(*far),
        short(last / first)
    );
    let cost = |way| {
        let longer = report.time(*far, SHOWN, way)? - report.time(*near, SHOWN, way)?;
        Some(short(longer / (far.saturating_sub(*near).as_secs_f64() * 1e3)))
    };
    if let Some((plain, ours)) = cost(TEXT).zip(way(report, TOGETHER, SHOWN).and_then(cost)) {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            ": at {SHOWN} a millisecond each way costs {plain} ms in text and in sequence, and {ours} ms together"
        );
    }
    text + ".\n\n"
}
