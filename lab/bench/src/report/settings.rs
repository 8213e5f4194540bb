//! Shows the settings of rows and of their servers. A caption states the settings that all rows
//! share. Each other setting has a column.

use crate::{
    report::{markdown::code, number},
    results::{Row, Spread},
};

/// A setting of a row or of its server.
pub struct Setting {
    pub name: &'static str,
    pub of: fn(&Row) -> String,
}

const SETTINGS: &[Setting] = &[
    Setting { name: "payload", of: |row| format!("{} B", number::whole(row.told.payload as f64)) },
    Setting { name: "batch", of: |row| number::whole(row.told.batch as f64) },
    Setting { name: "producers", of: |row| row.told.producers.to_string() },
    Setting { name: "consumers", of: consumers },
    Setting { name: "rate", of: rate },
    Setting { name: "backlog", of: |row| number::whole(row.told.backlog as f64) },
    Setting { name: "wait", of: |row| row.told.wait.clone() },
    Setting { name: "delay each way", of: delay },
    Setting { name: "dequeue batch", of: |row| count_or_unsaid(row.told.dequeue_batch) },
    Setting { name: "threads", of: |row| count_or_unsaid(row.told.threads) },
    Setting {
        name: "asleep before",
        of: |row| if row.told.settle > 0.0 { format!("{} s", row.told.settle) } else { UNSAID.into() },
    },
    Setting { name: "an fsync takes", of: fsync },
    Setting { name: "servers", of: |row| count_or_unsaid(row.told.stripes) },
    Setting { name: "messages", of: |row| count_or_unsaid(row.told.messages) },
    Setting { name: "keys", of: |row| count_or_unsaid(row.told.keys) },
    Setting {
        name: "latencies only of",
        of: |row| if row.told.timed.is_empty() { UNSAID.into() } else { row.told.timed.replace('-', " ") },
    },
    Setting { name: "held snapshot", of: |row| if row.told.held_snapshot { "yes" } else { UNSAID }.into() },
    Setting { name: "sleeping consumer", of: |row| if row.told.sleeper { "yes" } else { UNSAID }.into() },
    Setting { name: "synchronous standby", of: |row| if row.told.standby { "yes" } else { UNSAID }.into() },
    Setting { name: "PostgreSQL", of: |row| row.server.version.clone() },
    Setting { name: "fsync", of: |row| row.server.fsync.clone() },
    Setting { name: "synchronous_commit", of: |row| row.server.synchronous_commit.clone() },
    Setting { name: "wal_level", of: |row| row.server.wal_level.clone() },
    Setting { name: "commit_delay", of: |row| row.server.commit_delay.clone() },
    Setting { name: "connection", of: |row| row.server.connection.clone() },
    Setting { name: "processors", of: |row| row.server.processors.to_string() },
    Setting { name: "processor", of: |row| row.server.processor.clone() },
];

/// The duration, rounds and origin of a row. Each table's caption states them, but no case's name
/// does.
const PROVENANCE: &[Setting] = &[
    Setting { name: "seconds per round", of: seconds },
    Setting { name: "rounds", of: |row| row.rounds.len().to_string() },
    Setting { name: "commit", of: |row| kept(&row.made.commit) },
    Setting { name: "arguments", of: |row| code(&kept(&row.made.arguments)) },
    Setting { name: "build", of: |row| kept(&row.made.build) },
];

/// Returns `not kept` for an empty text, because rows of old runs lack the value.
fn kept(words: &str) -> String {
    if words.is_empty() { "not kept".into() } else { words.into() }
}

/// The value of a setting that captions omit.
const UNSAID: &str = "none";

/// Returns the settings that all rows share, as a sentence. Omits the machine, which has its own
/// section.
pub fn same(rows: &[&Row]) -> String {
    let same = SETTINGS
        .iter()
        .chain(PROVENANCE)
        .filter(|setting| !setting.varies(rows) && !setting.name.starts_with("processor"));
    let told = rows.first().map_or_else(Vec::new, |row| {
        same.filter(|setting| (setting.of)(row) != UNSAID).map(|setting| setting.told(row)).collect()
    });
    told.join(", ")
}

/// Returns the settings that differ between the rows, including their origin.
pub fn varied(rows: &[&Row]) -> Vec<&'static Setting> {
    SETTINGS.iter().chain(PROVENANCE).filter(|setting| setting.varies(rows)).collect()
}

/// Returns the settings that differ between the rows, without their origin.
pub fn apart(rows: &[&Row]) -> Vec<&'static Setting> {
    SETTINGS.iter().filter(|setting| setting.varies(rows)).collect()
}

/// Returns the minimum, median and maximum of the disk's durable writes per second around these
/// rows' rounds.
pub fn disk(rows: &[&Row]) -> Option<(f64, f64, f64)> {
    let rounds = rows.iter().flat_map(|row| &row.rounds);
    let mut rates: Vec<f64> =
        rounds.flat_map(|round| [round.fsyncs_before, round.fsyncs_after]).filter(|rate| *rate > 0.0).collect();
    rates.sort_by(f64::total_cmp);
    Some((*rates.first()?, rates[rates.len() / 2], *rates.last()?))
}

impl Setting {
    pub fn told(&self, row: &Row) -> String {
        format!("{} {}", self.name, (self.of)(row))
    }

    fn varies(&self, rows: &[&Row]) -> bool {
        rows.windows(2).any(|pair| (self.of)(pair[0]) != (self.of)(pair[1]))
    }
}

fn consumers(row: &Row) -> String {
    match row.told.consumers {
        0 => "the contender's own choice".into(),
        count => count.to_string(),
    }
}

fn count_or_unsaid(count: usize) -> String {
    if count == 0 { UNSAID.into() } else { count.to_string() }
}

fn rate(row: &Row) -> String {
    match row.told.rate {
        None => "unlimited".into(),
        Some(rate) => format!("{}/s", number::whole(rate)),
    }
}

/// Returns the duration of a round. A round that drains a backlog ends when the backlog is empty,
/// so its measured duration is returned.
fn seconds(row: &Row) -> String {
    if row.told.messages > 0 {
        return UNSAID.into();
    }
    let drains = ["drain", "ledger"].contains(&row.told.case.as_str());
    match row.over(|round| Some(round.seconds)).filter(|_| drains) {
        Some(Spread { least, most, .. }) if number::rate(least) == number::rate(most) => number::rate(most),
        Some(Spread { least, most, .. }) => format!("{} to {}", number::rate(least), number::rate(most)),
        None => number::whole(row.told.seconds),
    }
}

fn fsync(row: &Row) -> String {
    match row.told.fsync_ms {
        None => UNSAID.into(),
        Some(least) if least > 0.0 => format!("{least} ms or more"),
        Some(_) => "as the disk is".into(),
    }
}

fn delay(row: &Row) -> String {
    match row.told.delay_ms > 0.0 {
        true => format!("{} ms", number::whole(row.told.delay_ms)),
        false => UNSAID.into(),
    }
}
