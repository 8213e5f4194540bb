//! Writes one section per suite: its figure and one table per case, each followed by the disturbed
//! and missing contenders.

use std::fmt::Write;

use crate::{
    report::{
        binds, columns, foot, fsync, grid,
        markdown::{Table, code},
        measure::Measure,
        race::{Race, races, shown},
        settings, tenths,
    },
    results::{Results, Row},
};

/// The suites in the order of the report, each with its caption.
const SUITES: &[(&str, &str)] = &[
    ("headline", "The rows that the README names, as fast as they go, for five minutes."),
    ("throughput", "At full speed."),
    ("processes", "Programs as they are: one message per call, at full speed."),
    (
        "latency",
        "At the same requested rate for all; from the time at which a message was due to be sent until the handler has it.",
    ),
    ("old-snapshot", "While another session holds a snapshot, so that nothing that was deleted can be cleaned up."),
    ("layer-comparison", "What each layer adds to the SQL under it."),
    ("send", "The time of the call alone."),
    ("read", "The time of the call alone; what it reads is put there before."),
    ("ack", "The time of the call alone; the message was sent and read before."),
    ("grid", "Producers × consumers over a seeded queue, in the format of hasql-queue's own figures."),
    (
        "idle",
        "The cost of waiting: no caller sends until all consumers have fallen asleep, and then callers send at the rate of the case.",
    ),
    ("distance", "With a network between client and server."),
    (
        "fsync",
        "While each fsync of the server takes at least the time in the column. A commit waits that long; commits, and messages in one commit, can share the wait. \
         Callers send one message at a time and wait until it is durable; each of a peer's has a connection, ours share two.",
    ),
    (
        "stripes",
        "A queue on several servers of this machine, each with an fsync of 5 ms at least. *jobs*: one row per message, so that each server has as many callers \
         as it can serve. The other callers wait for their message, and so send as many as there are callers.",
    ),
    (
        "lanes",
        "The same with four priorities in turn, with a unique key for each message (kept for ten minutes), and without. *Keys*: whose messages are handled in \
         order; a row that broke it says how often.",
    ),
    ("exactly-once", "A backlog taken, written to a final table and gone, all in the same transactions."),
    ("burst", "A large backlog drained."),
    ("soak", "For a long time."),
];
/// The maximum number of contenders per case up to which all cases share one table.
const A_FEW: usize = 4;

/// Returns the sections of all suites that have rows. `figures` lists the drawn files, named
/// `SUITE.svg`.
pub fn sections(results: &Results, figures: &[&str]) -> String {
    let mut names: Vec<&str> = SUITES.iter().map(|(name, _)| *name).collect();
    for row in &results.rows {
        if !names.contains(&row.suite.as_str()) {
            names.push(&row.suite);
        }
    }
    names.into_iter().map(|name| section(results, name, figures)).collect()
}

fn section(results: &Results, suite: &str, figures: &[&str]) -> String {
    let mut races = races(results.rows.iter().filter(|row| row.suite == suite));
    if ["send", "read", "ack"].contains(&suite) {
        races.sort_by_key(|race| step(race.first()));
    }
    if races.is_empty() {
        return String::new();
    }
    let mut text = format!("## {suite}\n\n");
    if let Some((_, about)) = SUITES.iter().find(|(name, _)| *name == suite) {
        let _ = writeln!(text, "{about}\n");
    }
    for figure in figures.iter().filter(|figure| figure_of(suite).contains(figure)) {
        let _ = writeln!(text, "![{suite}]({figure})\n");
    }
    match suite {
        "grid" => text += &grid::tables(&races),
        "fsync" => {
            let rows: Vec<&Row> = races.iter().flat_map(|race| race.rows.iter().copied()).collect();
            text += &fsync::table(&rows);
            text += &table(&races, true);
        }
        _ => text += &tables(&races),
    }
    text
}

/// Returns the sort key of a single step: the call, then the payload, then the batch.
fn step(row: &Row) -> (&str, usize, usize) {
    let call = row.case.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
    let call = ["-single", "-batch", "-payload"].iter().find_map(|kind| call.strip_suffix(kind)).unwrap_or(call);
    (call, row.told.payload, row.told.batch)
}

fn figure_of(suite: &str) -> &'static [&'static str] {
    match suite {
        "throughput" => &["throughput.svg"],
        "latency" => &["latency.svg"],
        "old-snapshot" => &["old-snapshot.svg"],
        "layer-comparison" => &["layers.svg"],
        "distance" => &["distance.svg"],
        "fsync" => &["fsync.svg"],
        _ => &[],
    }
}

fn tables(races: &[Race]) -> String {
    if races.iter().all(|race| race.rows.len() <= A_FEW) {
        return table(races, true);
    }
    let one =
        |race: &Race| format!("### {}\n\n{}", race.name(races), table(&[Race { rows: race.rows.clone() }], false));
    races.iter().map(one).collect()
}

/// Makes one table of several races, with a column for the case if `cases` is set.
fn table(races: &[Race], cases: bool) -> String {
    let rows: Vec<&Row> = races.iter().flat_map(|race| race.rows.iter().copied()).collect();
    let varied = settings::varied(&rows);
    let columns = columns::of(&rows[0].suite);
    let titles = varied.iter().map(|setting| setting.name).chain(columns.iter().map(|column| column.title));
    let mut table = Table::new(["contender", "case"].into_iter().chain(titles));
    for race in races {
        for row in columns::ranked(race) {
            let settings = varied.iter().map(|setting| Some((setting.of)(row)));
            let figures = columns.iter().map(|column| (column.cell)(race, row));
            let case = cases.then(|| code(&row.case));
            table.row(
                [Some(name(row) + scattered(columns::chief(race), row)), case]
                    .into_iter()
                    .chain(settings)
                    .chain(figures),
            );
        }
    }
    let scattered = races.iter().flat_map(|race| {
        let chief = columns::chief(race);
        race.measured().filter(|row| chief.scatters(row))
    });
    let scattered = foot::scatter(scattered);
    let binding = if rows[0].suite == "exactly-once" { binds::table(&rows) } else { String::new() };
    format!(
        "{}{}{}{scattered}{binding}{}",
        foot::in_common(&rows),
        tenths::table(&rows),
        table.text(),
        foot::foot(&rows)
    )
}

/// Returns a double dagger if the rounds differ too much for a comparison.
fn scattered(chief: &Measure, row: &Row) -> &'static str {
    if chief.scatters(row) { " ‡" } else { "" }
}

/// Returns the contender's name, with a dagger if a round was disturbed.
fn name(row: &Row) -> String {
    let name = shown(&row.contender);
    if row.rounds.iter().any(|round| round.disturbed.is_some()) { name + " †" } else { name }
}
