//! Prints to the terminal.

use trunkline_programs::say;

use crate::{
    Choice,
    choose::{chosen, name},
    drivers,
    results::{Outcome, Round, Row, Spread},
    suites::Plan,
};

/// Prints the names of the rows.
pub fn list(choice: &Choice) {
    for plan in chosen(choice) {
        say(name(&plan));
    }
    if drivers::is_chosen(choice) {
        say(drivers::NAME);
    }
}

/// Formats a number with three significant digits.
pub fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e4 => format!("{:.0} k", value / 1e3),
        value if value >= 1e3 => format!("{:.2} k", value / 1e3),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

fn spread(spread: Option<Spread>) -> String {
    spread.map_or_else(
        || "-".to_owned(),
        |spread| {
            let Spread { median, least, most } = spread;
            let middle = if spread.scatters() { "says nothing".to_owned() } else { short(median) };
            format!("{middle} ({}, {})", short(least), short(most))
        },
    )
}

/// Formats one turn as a line.
pub fn round(plan: &Plan, turn: u32, round: &Round) -> String {
    let mut words = vec![format!("{turn} {:60}", name(plan))];
    for (what, value) in [("sent/s", round.sent_per_second()), ("received/s", round.received_per_second())] {
        words.extend(value.map(|value| format!("{} {what}", short(value))));
    }
    words.extend(round.payloads_per_second(&plan.told).map(|bytes| format!("{:.2} MB/s", bytes / 1e6)));
    if let Some(latency) = round.latency {
        let p99 = latency.p99().map_or_else(|| "-".to_owned(), |p99| short(p99 as f64));
        words.push(format!("p50 {} µs, p99 {p99} µs", short(latency.p50 as f64)));
    }
    if let (Some(client), Some(server)) = (round.client_cpu_us(), round.server_cpu_us()) {
        words.push(format!("CPU {client:.1} + {server:.1} µs"));
    }
    words.extend(round.statements_per_second.map(|statements| format!("{} statements/s", short(statements))));
    words.extend(round.disordered.map(|count| match count {
        0 => "in order".to_owned(),
        count => format!("{count} OUT OF ORDER"),
    }));
    words.extend(round.disturbed.iter().map(|why| format!("(disturbed: {why})")));
    words.join("  ")
}

/// Formats a row as one line, with each figure as median (minimum, maximum).
pub fn row(row: &Row) -> String {
    let name = format!("{}/{}/{}", row.suite, row.case, row.contender);
    match &row.outcome {
        Outcome::Missing(why) => format!("{name:60}  SKIPPED: {why}"),
        Outcome::Stalled(why) => format!("{name:60}  STALLED: {why}"),
        Outcome::Failed(why) => format!("{name:60}  FAILED: {why}"),
        Outcome::Measured => format!(
            "{name:60}  sent/s {}  received/s {}  p50 µs {}  p99 µs {}",
            spread(row.over(Round::sent_per_second)),
            spread(row.over(Round::received_per_second)),
            spread(row.over(|round| Some(round.latency?.p50 as f64))),
            spread(row.over(|round| Some(round.latency?.p99()? as f64))),
        ),
    }
}
