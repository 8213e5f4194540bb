//! Compares the first tenth of a long run with its last tenth.

use crate::{
    report::{markdown::Table, measure::Measure, number, race::shown},
    results::{Latency, Row, Sample, Spread},
};

/// The server's processor time per received message in the last tenth of a long run.
pub const LATE_SERVER_CPU: Measure = Measure {
    of: |row| {
        let (_, last) = tenths(row)?;
        last.cpu.map(|median| Spread { median, least: median, most: median })
    },
    show: number::time,
    more: false,
};

/// The bytes of all tables and indexes at the end of a long run, however many messages it handled.
pub const LATE_SIZE: Measure = Measure {
    of: |row| {
        let (_, last) = tenths(row)?;
        (last.size > 0.0).then_some(Spread { median: last.size, least: last.size, most: last.size })
    },
    show: number::bytes,
    more: false,
};

pub struct Tenth {
    pub received: f64,
    /// The server's processor time per received message; `None` if none was received.
    pub cpu: Option<f64>,
    pub dead: f64,
    pub size: f64,
}

/// Returns the samples of the first round that has any.
pub fn series(row: &Row) -> &[Sample] {
    row.rounds.iter().map(|round| round.series.as_slice()).find(|series| !series.is_empty()).unwrap_or_default()
}

/// Returns the first and the last tenth, or `None` if there are too few samples to distinguish
/// them.
pub fn tenths(row: &Row) -> Option<(Tenth, Tenth)> {
    let series = series(row);
    let length = (series.len() / 10).max(1);
    (series.len() >= 2).then(|| (tenth(&series[..length]), tenth(&series[series.len() - length..])))
}

fn tenth(samples: &[Sample]) -> Tenth {
    let counted = samples.iter().filter(|sample| sample.received > 0.0 && sample.server_cpu_us.is_finite());
    let (received, time) = counted.fold((0.0, 0.0), |(received, time), sample| {
        (received + sample.received, time + sample.server_cpu_us * sample.received)
    });
    let last = samples.last();
    Tenth {
        received: received / samples.len() as f64,
        cpu: (received > 0.0).then(|| time / received),
        dead: last.map_or(0.0, |sample| sample.dead as f64),
        size: last.map_or(0.0, |sample| sample.size as f64),
    }
}

/// Formats a percentile of the first and of the last window of the run.
fn parts(row: &Row, of: fn(&Latency) -> Option<u64>) -> Option<String> {
    let parts = row.rounds.iter().map(|round| &round.windows).find(|parts| parts.len() > 1)?;
    let shown = |part: Option<&Latency>| part.and_then(of).map(|us| number::time(us as f64));
    Some(format!("{} → {}", shown(parts.first())?, shown(parts.last())?))
}

/// Makes a table with one row per contender, the cheapest in the last tenth first. The table is
/// empty if no row has samples.
pub fn table(rows: &[&Row]) -> String {
    let mut rows: Vec<_> = rows.iter().filter_map(|row| tenths(row).map(|tenths| (*row, tenths))).collect();
    let late = |tenth: &Tenth| tenth.cpu.unwrap_or(f64::INFINITY);
    rows.sort_by(|(_, (_, a)), (_, (_, b))| late(a).total_cmp(&late(b)));
    let mut table = Table::new([
        "first tenth → last tenth",
        "received/s",
        "server CPU a message",
        "grew",
        "dead tuples",
        "tables and indexes",
        "p50, first and last part",
        "p99, first and last part",
    ]);
    for (row, (first, last)) in rows {
        let cpu = |tenth: &Tenth| tenth.cpu.map_or_else(|| number::NONE.into(), number::time);
        let name = shown(&row.contender);
        table.row([
            Some(name),
            Some(format!("{} → {}", number::rate(first.received), number::rate(last.received))),
            Some(format!("{} → {}", cpu(&first), cpu(&last))),
            first.cpu.zip(last.cpu).filter(|(first, _)| *first > 0.0).map(|(first, last)| number::times(last / first)),
            Some(format!("{} → {}", number::rate(first.dead), number::rate(last.dead))),
            Some(format!("{} → {}", number::bytes(first.size), number::bytes(last.size))),
            parts(row, |part| Some(part.p50)),
            parts(row, Latency::p99),
        ]);
    }
    table.text()
}
