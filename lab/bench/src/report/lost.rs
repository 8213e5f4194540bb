//! Lists the comparisons in which a peer was better than our best comparable row. Comparable rows
//! make the same promise, or are called in the same way. The list comes first in the report.

use std::fmt::Write;

use crate::{
    report::{
        like::{Class, PROMISES, SQL},
        markdown::{Table, code, codes},
        measure::{self, Measure},
        number,
        race::{Race, is_ours, races},
        tenths,
    },
    results::{Results, Row},
};

/// The compared measures, each with its name in a sentence.
const COMPARED: &[(Measure, &str)] = &[
    (measure::RATE, "messages/s"),
    (measure::P50, "latency p50"),
    (measure::P99, "latency p99"),
    (measure::SERVER_CPU, "server CPU a message"),
    (tenths::LATE_SERVER_CPU, "server CPU a message in the last tenth of the time"),
    (measure::WAL, "WAL a message"),
    (tenths::LATE_SIZE, "tables and indexes at the end"),
];
/// The costs of waiting. They are not divided by the number of messages, which may be zero.
const IDLE: &[(Measure, &str)] = &[
    (measure::SERVER_USE, "server CPU while waiting"),
    (measure::STATEMENTS_PER_SECOND, "statements/s while waiting"),
    (measure::WAL_PER_SECOND, "WAL/s while waiting"),
];
/// The value below which shares of a processor and statements per second count as zero.
const NOTHING: f64 = 1e-3;
/// The ratio below which two values count as equal, because they would not differ in the third
/// digit.
const SAME: f64 = 1.005;
/// The share of the requested rate that is sufficient. A contender that reaches it does not lose to
/// faster contenders.
const KEPT_UP: f64 = 0.99;

/// A comparison in which a peer was ahead of our best row.
struct Lost<'a> {
    place: String,
    measure: &'static Measure,
    what: &'static str,
    /// Our best row, if one was measured.
    ours: Option<(&'a Row, f64)>,
    /// The row, value and ratio of each peer that was ahead, largest ratio first.
    ahead: Vec<(&'a Row, f64, f64)>,
}

pub fn section(results: &Results) -> String {
    let races = races(&results.rows);
    let mut all: Vec<Lost> = races.iter().flat_map(|race| lost(race, &races)).collect();
    all.sort_by(|a, b| b.worst().total_cmp(&a.worst()));
    let mut text = String::from("## What was lost\n\n");
    let mut table = Table::of_words(["where and what", "by", "who was ahead, and Trunkline's best row"]);
    for lost in &all {
        let where_and_what = format!("{}, {}", lost.place, lost.what);
        table.row([Some(where_and_what), Some(number::times(lost.worst())), Some(lost.sentence())]);
    }
    if !all.is_empty() {
        let _ = writeln!(
            text,
            "Every comparison in which a peer was ahead of Trunkline's best row by more than the third digit, the worst first. \
             Compared are {}; in `idle` also {}. Client CPU, client memory and dead tuples are only in the tables. \
             Rows are compared with rows that promise a consumer the same (at most, at least or exactly once), and SQL functions also with \
             SQL functions. Each measure has its own best row. *At the end*: of rows that handled different numbers of messages. \
             *Within the spread*: the rounds of the two overlap.\n",
            names(COMPARED),
            names(IDLE)
        );
    }
    text += &table.text();
    text += &scattered(&races);
    text + &without(&races)
}

fn names(measures: &[(Measure, &str)]) -> String {
    measures.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
}

/// Lists rows that could not be compared because their rounds differ too much.
fn scattered(races: &[Race]) -> String {
    let mut names: Vec<String> = Vec::new();
    for race in races.iter().filter(|race| has_both(race)) {
        for (measure, what) in compared(race) {
            let rows = race.measured().filter(|row| measure.scatters(row));
            names.extend(rows.map(|row| format!("{} {}, {what}", code(&row.contender), code(&row.case))));
        }
    }
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "Not compared, because their rounds scatter more than threefold and so say nothing: {}.\n\n",
            names.join("; ")
        ),
    }
}

fn compared(race: &Race) -> impl Iterator<Item = &'static (Measure, &'static str)> {
    COMPARED.iter().chain(if race.first().suite == "idle" { IDLE } else { &[] })
}

/// Lists the suites without a lost comparison, and those without any comparison.
fn without(races: &[Race]) -> String {
    let (mut won, mut alone) = (Vec::new(), Vec::new());
    let mut suites: Vec<&str> = Vec::new();
    for race in races {
        let suite = race.first().suite.as_str();
        if !suites.contains(&suite) {
            suites.push(suite);
        }
    }
    for suite in suites {
        let members: Vec<&Race> = races.iter().filter(|race| race.first().suite == suite).collect();
        if !members.iter().any(|race| has_both(race)) {
            alone.push(suite);
        } else if members.iter().all(|race| lost(race, races).is_empty()) {
            won.push(suite);
        }
    }
    let mut text = String::new();
    if !won.is_empty() {
        let _ = writeln!(text, "Nothing was lost in {}.\n", codes(won));
    }
    if !alone.is_empty() {
        let _ = writeln!(text, "Without a peer, or without a row of Trunkline: {}.\n", codes(alone));
    }
    text
}

/// Returns true if a peer was measured and one of our rows ran, even if it failed.
fn has_both(race: &Race) -> bool {
    race.rows.iter().any(|row| is_ours(&row.contender)) && race.measured().any(|row| !is_ours(&row.contender))
}

/// Compares rows with the same promise, and then rows that are called through SQL. Skips the second
/// comparison if our best row is itself called through SQL.
fn lost<'a>(race: &Race<'a>, races: &[Race]) -> Vec<Lost<'a>> {
    let mut all: Vec<Lost<'a>> = Vec::new();
    for class in PROMISES.iter().chain([&SQL]) {
        let Some(like) = within(race, class) else { continue };
        let place = format!("{} {}, {}", code(&race.first().suite), code(&race.name(races)), class.name);
        for (measure, what) in compared(race) {
            let lost = compare(&like, measure, what, place.clone());
            all.extend(lost.filter(|lost| !all.iter().any(|other| other.what == *what && other.ours_is(lost))));
        }
    }
    all
}

/// Returns the rows of a class, if both a peer and one of our contenders are among them.
fn within<'a>(race: &Race<'a>, class: &Class) -> Option<Race<'a>> {
    let rows: Vec<&Row> = race.rows.iter().copied().filter(|row| (class.has)(row)).collect();
    let like = Race { rows };
    has_both(&like).then_some(like)
}

fn compare<'a>(race: &Race<'a>, measure: &'static Measure, what: &'static str, place: String) -> Option<Lost<'a>> {
    let ours = race.our_best(measure);
    let peers = race.measured().filter(|row| !is_ours(&row.contender) && !measure.scatters(row));
    if !race.measured().any(|row| is_ours(&row.contender)) {
        // Our contender ran and did not finish. The comparison is lost without a figure, and is
        // listed for one measure only.
        let ahead: Vec<_> = peers.filter_map(|row| Some((row, measure.median(row)?, f64::INFINITY))).collect();
        return (measure.more && !ahead.is_empty()).then_some(Lost { place, measure, what, ours, ahead });
    }
    let (_, best) = ours?;
    if measure.more && race.first().told.rate.is_some_and(|rate| best >= KEPT_UP * rate) {
        return None;
    }
    let mut ahead: Vec<(&Row, f64, f64)> = peers
        .filter_map(|row| {
            let value = measure.median(row)?;
            let ratio = measure.better(value.max(NOTHING), best.max(NOTHING));
            (ratio > SAME).then_some((row, value, ratio))
        })
        .collect();
    ahead.sort_by(|a, b| b.2.total_cmp(&a.2));
    (!ahead.is_empty()).then_some(Lost { place, measure, what, ours, ahead })
}

impl Lost<'_> {
    fn ours_is(&self, other: &Self) -> bool {
        self.ours.zip(other.ours).is_some_and(|((one, _), (other, _))| std::ptr::eq(one, other))
    }

    fn worst(&self) -> f64 {
        self.ahead.iter().map(|(.., ratio)| *ratio).fold(1.0, f64::max)
    }

    fn sentence(&self) -> String {
        let show = self.measure.show;
        let callers = |row: &Row| match self.same_callers() {
            true => String::new(),
            // Names the number of callers, because with more callers more messages are sent, and
            // each message waits longer.
            false => format!(" with {} callers", row.told.producers),
        };
        let told = |(row, value, ratio): &(&Row, f64, f64)| {
            let overlap = if self.overlaps(row) { ", within the spread" } else { "" };
            let times =
                if ratio.is_finite() { format!(" ({}{overlap})", number::times(*ratio)) } else { String::new() };
            format!("{} {}{}{times}", code(&row.contender), show(*value), callers(row))
        };
        let ahead: Vec<String> = self.ahead.iter().map(told).collect();
        let ours = match self.ours {
            Some((row, value)) => format!("ours {} {}{}", code(&row.contender), show(value), callers(row)),
            None => "no row of Trunkline was measured".into(),
        };
        format!("{}; {ours}", ahead.join(", "))
    }

    fn same_callers(&self) -> bool {
        let ours = self.ours.map(|(row, _)| row.told.producers);
        ours.is_none_or(|ours| self.ahead.iter().all(|(row, ..)| row.told.producers == ours))
    }

    fn overlaps(&self, peer: &Row) -> bool {
        let Some((theirs, ours)) = (self.measure.of)(peer).zip(self.ours.and_then(|(row, _)| (self.measure.of)(row)))
        else {
            return false;
        };
        theirs.least <= ours.most && ours.least <= theirs.most
    }
}
