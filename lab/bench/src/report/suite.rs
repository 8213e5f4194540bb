//! A section a suite: its figure, a table a case, and at their feet who was disturbed and who is
//! missing.

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

/// The suites in the order in which they are told, and what each is about.
const SUITES: &[(&str, &str)] = &[
    ("throughput", "As fast as it goes."),
    (
        "latency",
        "At a rate that everybody is asked for; from the moment when a message was to be sent until the handler has it.",
    ),
    ("old-snapshot", "While another session holds a snapshot, so that nothing that was deleted can be cleaned up."),
    ("layer-comparison", "What each layer adds to the SQL under it."),
    ("send", "The time of the call alone."),
    ("read", "The time of the call alone; what it reads is put there before."),
    ("ack", "The time of the call alone; the message was sent and read before."),
    ("grid", "Producers × consumers over a seeded queue, as hasql-queue tells its own figures."),
    (
        "idle",
        "What waiting costs: nobody sends until all consumers have fallen asleep, and then so many messages a second.",
    ),
    ("distance", "With a network between client and server."),
    (
        "fsync",
        "While each fsync of the server takes at least so long: the time that a commit waits, and that commits, and messages in one, can share. \
         Callers send one message at a time and wait until it is durable; each of a peer's has a connection, ours share two.",
    ),
    (
        "stripes",
        "A queue on several servers of this machine, each with an fsync of 5 ms at least. *jobs*: a row a message, so that each server has as many callers \
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
/// A case with more contenders than this has a table of its own.
const A_FEW: usize = 4;

/// All suites that have rows; `figures` are the files that were drawn, `SUITE.svg`.
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

/// By the call, then from small to large.
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

/// The races one after the other in one table, with the case as a column where there is more than
/// one.
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

/// A double dagger where the rounds differ so much that the row says nothing.
fn scattered(chief: &Measure, row: &Row) -> &'static str {
    if chief.scatters(row) { " ‡" } else { "" }
}

/// Ours in bold; a dagger where something moved.
fn name(row: &Row) -> String {
    let name = shown(&row.contender);
    if row.rounds.iter().any(|round| round.disturbed.is_some()) { name + " †" } else { name }
}
