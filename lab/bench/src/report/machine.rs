//! Describes the machine and the server of the measurements, and their stability.

use std::{collections::BTreeMap, fmt::Write};

use crate::{
    report::{markdown::Table, number, settings},
    results::{Results, Row, Server},
};

pub fn section(results: &Results) -> String {
    let mut servers: Vec<&Server> = Vec::new();
    for row in &results.rows {
        if !servers.contains(&&row.server) {
            servers.push(&row.server);
        }
    }
    let titles = [
        "PostgreSQL",
        "fsync",
        "synchronous_commit",
        "wal_level",
        "commit_delay",
        "connection",
        "processors",
        "memory",
        "rustc",
        "rows",
    ];
    let mut table = Table::of_words(titles);
    for server in servers {
        let rows = results.rows.iter().filter(|row| row.server == *server).count();
        table.row(
            [
                server.version.clone(),
                server.fsync.clone(),
                server.synchronous_commit.clone(),
                server.wal_level.clone(),
                server.commit_delay.clone(),
                server.connection.clone(),
                format!("{} × {}, shared with the contenders", server.processors, processor(server)),
                memory(server),
                known(&server.rustc),
                rows.to_string(),
            ]
            .map(Some),
        );
    }
    format!("## Machine and server\n\n{}{}{}", table.text(), disk(results), steadiness(results))
}

/// States the range of the durable writes per second by each method of `pg_test_fsync`. Omits
/// servers with fsync off, whose commits do not wait for the disk.
fn disk(results: &Results) -> String {
    let waiting = results.rows.iter().filter(|row| row.server.fsync != "off");
    let mut looks: Vec<&str> = waiting.map(|row| &*row.disk).filter(|disk| !disk.is_empty()).collect();
    looks.sort_unstable();
    looks.dedup();
    let mut methods: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for method in looks.iter().flat_map(|look| look.split(", ")) {
        let Some((name, rate)) = method.split_once(' ') else { continue };
        let Ok(rate) = rate.parse() else { continue };
        methods.entry(name).or_default().push(rate);
    }
    let range = |(name, rates): (&str, Vec<f64>)| {
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        let upper = if least < most { format!(" to {}", number::rate(most)) } else { String::new() };
        format!("{name} {}{upper}", number::rate(least))
    };
    let ranges: Vec<String> = methods.into_iter().map(range).collect();
    match ranges.is_empty() {
        true => String::new(),
        false => format!(
            "\n`pg_test_fsync` ran {} times on the servers with fsync on. Writes of 8 KiB a second: {}.\n\n",
            looks.len(),
            ranges.join(", ")
        ),
    }
}

fn memory(server: &Server) -> String {
    if server.memory == 0 { known("") } else { format!("{:.1} GiB", server.memory as f64 / f64::from(1 << 30)) }
}

/// Returns the text, or `not kept` for values that the results of old runs lack.
fn known(text: &str) -> String {
    if text.is_empty() { "not kept".to_owned() } else { text.to_owned() }
}

fn processor(server: &Server) -> &str {
    if server.processor.is_empty() { "a processor without a name" } else { &server.processor }
}

/// Describes when the measurements were made, the speed of the disk, and the number of disturbed
/// rounds.
fn steadiness(results: &Results) -> String {
    let mut text = String::new();
    let times = results.rows.iter().map(|row| row.measured_at);
    if let Some((first, last)) = times.clone().min().zip(times.max()) {
        let _ = writeln!(text, "- Measured from {} to {}.", number::date(first), number::date(last));
    }
    if let Some((least, median, most)) = settings::disk(&results.rows.iter().collect::<Vec<&Row>>()) {
        let _ = writeln!(
            text,
            "- The disk made {} writes of 8 KiB a second durable (median; least {}, most {}), looked at before and after \
             every round.",
            number::rate(median),
            number::rate(least),
            number::rate(most)
        );
    }
    let rounds: Vec<_> = results.rows.iter().flat_map(|row| &row.rounds).collect();
    let stolen = rounds.iter().map(|round| round.stolen).fold(0.0, f64::max);
    let disturbed = rounds.iter().filter(|round| round.disturbed.is_some()).count();
    let _ = writeln!(
        text,
        "- Of {} rounds, {disturbed} were disturbed, marked † below; the machine's host kept at most {} of the processors for \
         others.",
        rounds.len(),
        number::percent(stolen)
    );
    text + "\n"
}
