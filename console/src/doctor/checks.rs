//! The checks, a file each. All answer the same columns: severity, queue, what, since, why, mend.

use trunkline::Description;

macro_rules! checks {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../../sql/doctor/", $name, ".sql")))),*] };
}

pub const OF_DATABASE: &[(&str, &str)] = checks![
    "snapshots",
    "hidden_sessions",
    "prepared",
    "slots",
    "standbys",
    "dead_rows",
    "vacuum_off",
    "indexes",
    "bloat",
    "numbers",
    "notifications",
    "settings",
    "rights",
    "versions",
    "progress",
];

pub const OF_QUEUE: &[(&str, &str)] = checks!["consumers", "floor", "sequence"];
/// What is derived from the messages of a queue with keys, and of one with uniqueness.
pub const OF_KEYS: &[(&str, &str)] = checks!["derived_keys"];
pub const OF_UNIQUENESS: &[(&str, &str)] = checks!["derived_claims"];

/// The checks of a queue.
pub fn of(queue: &Description) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let keys = if queue.lanes > 0 { OF_KEYS } else { &[] };
    let uniqueness = if queue.uniqueness { OF_UNIQUENESS } else { &[] };
    OF_QUEUE.iter().chain(keys).chain(uniqueness)
}

/// A check of one queue. `{name}` is its name as a literal, `{queue}` its table, `{id}` its sequence, and `{oldest}` answers when the oldest message is due,
/// by one probe of the index for each lane: from the floor on, below which there are only dead rows.
pub fn of_queue(text: &str, queue: &Description) -> String {
    let oldest = if queue.lanes > 0 {
        "select min(m.due_at) from trunkline.{lane} h, lateral (
             select m.due_at from trunkline.{queue} m where m.lane = h.lane and m.line = '' and (m.place, m.id + 0) >= (h.floor, 0)
             order by m.place, m.id + 0 limit 1) m"
            .to_owned()
    } else if queue.priorities > 1 {
        "select min(m.due_at) from generate_series(0, {last}) p (lane), lateral (
             select m.due_at from trunkline.{queue} m where m.lane = p.lane and (m.due_at, m.id + 0) >= ({floor}, 0)
             order by m.due_at, m.id + 0 limit 1) m"
            .replace("{last}", &(queue.priorities - 1).to_string())
    } else {
        "select m.due_at from trunkline.{queue} m
         where (m.due_at, m.id + 0) >= ({floor}, 0)
         order by m.due_at, m.id + 0 limit 1"
            .to_owned()
    };
    // A queue's name has no quotes: `[a-z][a-z0-9_.-]*`.
    let floor = "coalesce((select f.reached from trunkline.floor f where f.queue = {name} and f.reached <= now()), '-infinity')";
    text.replace("{oldest}", &oldest)
        .replace("{floor}", floor)
        .replace("{name}", &format!("'{}'", queue.name))
        .replace("{queue}", &format!("\"queue_{}\"", queue.name))
        .replace("{lane}", &format!("\"lane_{}\"", queue.name))
        .replace("{line}", &format!("\"line_{}\"", queue.name))
        .replace("{unique}", &format!("\"unique_{}\"", queue.name))
        .replace("{dead}", &format!("\"dead_{}\"", queue.name))
        .replace("{archive}", &format!("\"archive_{}\"", queue.name))
        .replace("{id}", &format!("\"id_{}\"", queue.name))
}
