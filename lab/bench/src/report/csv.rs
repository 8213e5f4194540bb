//! Writes one line per round, so that readers can compute their own medians. A row without rounds
//! still has one line.

use crate::results::{Outcome, Results, Round, Row};

/// A column's title and the function that returns its cell.
type Column = (&'static str, fn(&Row, &Round) -> String);

const COLUMNS: &[Column] = &[
    ("suite", |row, _| row.suite.clone()),
    ("case", |row, _| row.case.clone()),
    ("contender", |row, _| row.contender.clone()),
    ("outcome", |row, _| outcome(row).0.into()),
    ("words", |row, _| outcome(row).1.into()),
    ("payload", |row, _| row.told.payload.to_string()),
    ("batch", |row, _| row.told.batch.to_string()),
    ("producers", |row, _| row.told.producers.to_string()),
    ("consumers", |row, _| row.told.consumers.to_string()),
    ("rate", |row, _| figure(row.told.rate)),
    ("backlog", |row, _| row.told.backlog.to_string()),
    ("wait", |row, _| row.told.wait.clone()),
    ("delay_ms", |row, _| figure(row.told.delay_ms.into())),
    ("held_snapshot", |row, _| row.told.held_snapshot.to_string()),
    ("dequeue_batch", |row, _| row.told.dequeue_batch.to_string()),
    ("threads", |row, _| row.told.threads.to_string()),
    ("settle", |row, _| figure(row.told.settle.into())),
    ("fsync_ms", |row, _| figure(row.told.fsync_ms)),
    ("stripes", |row, _| row.told.stripes.to_string()),
    ("keys", |row, _| row.told.keys.to_string()),
    ("timed", |row, _| row.told.timed.clone()),
    ("sleeper", |row, _| row.told.sleeper.to_string()),
    ("standby", |row, _| row.told.standby.to_string()),
    ("told_seconds", |row, _| figure(row.told.seconds.into())),
    ("sent", |_, round| round.sent.to_string()),
    ("received", |_, round| round.received.to_string()),
    ("seconds", |_, round| figure(round.seconds.into())),
    ("sent_per_second", |_, round| figure(round.sent_per_second())),
    ("received_per_second", |_, round| figure(round.received_per_second())),
    ("mean_us", |_, round| figure(round.latency.map(|latency| latency.mean))),
    ("p50_us", |_, round| whole(round.latency.map(|latency| latency.p50))),
    ("p90_us", |_, round| whole(round.latency.and_then(|latency| latency.p90()))),
    ("p99_us", |_, round| whole(round.latency.and_then(|latency| latency.p99()))),
    ("p999_us", |_, round| whole(round.latency.and_then(|latency| latency.p999()))),
    ("samples", |_, round| whole(round.latency.map(|latency| latency.count))),
    ("max_us", |_, round| whole(round.latency.map(|latency| latency.max))),
    ("client_cpu_us", |_, round| figure(round.client_cpu_us())),
    ("server_cpu_us", |_, round| figure(round.server_cpu_us())),
    ("wal_bytes", |_, round| figure(round.wal_bytes)),
    ("transactions", |_, round| figure(round.transactions)),
    ("statements", |_, round| figure(round.statements)),
    ("client_cpu", |_, round| figure(round.client_cpu())),
    ("server_cpu", |_, round| figure(round.server_cpu())),
    ("statements_per_second", |_, round| figure(round.statements_per_second)),
    ("cpu_step", |_, round| figure(round.cpu_step.into())),
    ("wal_per_second", |_, round| figure(round.wal_per_second)),
    ("read_per_second", |_, round| figure(round.read_per_second)),
    ("written_per_second", |_, round| figure(round.written_per_second)),
    ("client_memory", |_, round| whole(round.client_memory)),
    ("waits", |_, round| waits(round)),
    ("dead_before", |_, round| whole(round.dead_before)),
    ("dead_after", |_, round| whole(round.dead_after)),
    ("allocations", |_, round| figure(round.allocations)),
    ("allocated_bytes", |_, round| figure(round.allocated_bytes)),
    ("fsyncs_before", |_, round| figure(round.fsyncs_before.into())),
    ("fsyncs_after", |_, round| figure(round.fsyncs_after.into())),
    ("stolen", |_, round| figure(round.stolen.into())),
    ("disturbed", |_, round| round.disturbed.clone().unwrap_or_default()),
    ("version", |row, _| row.version.clone()),
    ("runtime", |row, _| row.runtime.clone()),
    ("settings", |row, _| row.settings.clone()),
    ("postgres", |row, _| row.server.version.clone()),
    ("fsync", |row, _| row.server.fsync.clone()),
    ("synchronous_commit", |row, _| row.server.synchronous_commit.clone()),
    ("wal_level", |row, _| row.server.wal_level.clone()),
    ("commit_delay", |row, _| row.server.commit_delay.clone()),
    ("connection", |row, _| row.server.connection.clone()),
    ("processors", |row, _| row.server.processors.to_string()),
    ("processor", |row, _| row.server.processor.clone()),
    ("measured_at", |row, _| row.measured_at.to_string()),
    ("run", |row, _| row.run.clone()),
    ("commit", |row, _| row.made.commit.clone()),
    ("arguments", |row, _| row.made.arguments.clone()),
    ("build", |row, _| row.made.build.clone()),
];
/// The columns of a round. In a row without rounds they are empty, not zero.
const ROUND: std::ops::Range<&str> = "sent".."version";

pub fn csv(results: &Results) -> String {
    let mut text = line(COLUMNS.iter().map(|(title, _)| (*title).to_owned()).chain(["round".into()]));
    for row in &results.rows {
        for (at, round) in row.rounds.iter().enumerate() {
            let cells = COLUMNS.iter().map(|(_, cell)| quoted(&cell(row, round)));
            text += &line(cells.chain([(at + 1).to_string()]));
        }
        if row.rounds.is_empty() {
            text += &line(without_round(row));
        }
    }
    text
}

fn without_round(row: &Row) -> impl Iterator<Item = String> {
    let at = |name: &str| COLUMNS.iter().position(|(title, _)| *title == name).unwrap_or(COLUMNS.len());
    let empty = at(ROUND.start)..at(ROUND.end);
    let none = Round::default();
    COLUMNS
        .iter()
        .enumerate()
        .map(move |(at, (_, cell))| if empty.contains(&at) { String::new() } else { quoted(&cell(row, &none)) })
        .chain([String::new()])
}

fn outcome(row: &Row) -> (&'static str, &str) {
    match &row.outcome {
        Outcome::Measured => ("measured", ""),
        Outcome::Missing(words) => ("missing", words),
        Outcome::Stalled(words) => ("stalled", words),
        Outcome::Failed(words) => ("failed", words),
    }
}

fn waits(round: &Round) -> String {
    round.waits.iter().map(|(wait, share)| format!("{wait} {share:.3}")).collect::<Vec<_>>().join("; ")
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(",") + "\n"
}

/// Formats a figure. Returns an empty text if the figure is missing or not a number.
fn figure(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default()
}

fn whole(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_comma_a_quote_and_a_line_end_are_quoted() {
        assert_eq!(super::quoted("plain"), "plain");
        assert_eq!(super::quoted("a, \"b\"\nc"), "\"a, \"\"b\"\"\nc\"");
    }
}
