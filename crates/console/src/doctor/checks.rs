//! The checks, one per file. All return the same columns: severity, queue, what, since, why, mend.

use trunkline::{Db, Description};

use crate::schema::Text;

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
    "payloads",
    "indexes",
    "functions",
    "bloat",
    "numbers",
    "notifications",
    "settings",
    "rights",
    "versions",
    "progress",
    "schedules",
    "failures",
    "relays",
    "drains",
    "triggers",
];

/// A check of a table that exists only where a drain has moved messages.
pub const MOVING: (&str, &str) = ("moving", include_str!("../../sql/doctor/moving.sql"));

/// Checks that are skipped on a standby. They read unlogged tables, which a standby does not have.
pub const OF_PRIMARY: &[&str] = &["versions", "progress", "failures"];

/// Checks whose remedies are for the examined server, even if it is a standby.
pub const OF_SERVER: &[&str] = &["snapshots", "prepared", "slots", "standbys", "notifications", "settings"];

/// SQL for the placeholder `{statement}`: the last statement of a session `a`, a row of
/// `pg_stat_activity`.
pub const STATEMENT: &str = include_str!("../../sql/doctor/statement.sql");

/// Checks of derived data in queues with keys.
const OF_KEYS: &[(&str, &str)] = checks!["derived_keys"];
/// Checks of derived data in queues with uniqueness.
const OF_UNIQUENESS: &[(&str, &str)] = checks!["derived_claims"];

const OF_QUEUE: &[(&str, &str)] = checks!["consumers", "floor", "sequence", "clocks", "dead_letters"];

/// The checks of each queue, in the order in which the doctor runs them.
pub const OF_QUEUES: &[&[(&str, &str)]] = &[OF_QUEUE, OF_KEYS, OF_UNIQUENESS];

/// Returns true if a check of [`OF_QUEUES`] applies to a queue.
pub fn applies(check: &str, queue: &Description) -> bool {
    let is_in = |checks: &[(&str, &str)]| checks.iter().any(|(name, _)| *name == check);
    (queue.partitions > 0 || !is_in(OF_KEYS)) && (queue.uniqueness || !is_in(OF_UNIQUENESS))
}

/// Returns the text of a check for one queue. Fills the placeholders of [`Text::with_tables`] and
/// these four:
///
/// `{oldest}` selects when the oldest message is due. It probes the index once for each partition
/// or priority. It starts at the floor, because there are only dead rows below it. `{last}` selects
/// the messages that are due last. `{of_keys}` adds a query for queues with keys. `{floor}` is the
/// floor.
pub fn of_queue(db: &Db, text: &str, queue: &Description) -> Text {
    let oldest = if queue.partitions > 0 {
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
    // Limits the scan from the end of the index to 1,000 messages, so that it stays cheap.
    let last = if queue.priorities > 1 {
        "select m.* from generate_series(0, {last}) p (lane), lateral (
             select m.enqueued_at, m.due_at, m.attempt, m.error from trunkline.{queue} m where m.lane = p.lane and m.due_at > now()
             order by m.due_at desc, m.id + 0 desc limit 1000) m"
            .replace("{last}", &(queue.priorities - 1).to_string())
    } else {
        "select m.enqueued_at, m.due_at, m.attempt, m.error from trunkline.{queue} m where m.due_at > now()
         order by m.due_at desc, m.id + 0 desc limit 1000"
            .to_owned()
    };
    let of_keys = if queue.partitions > 0 {
        "union all select format('%s partitions are leased until %s', count(*), max(h.held_until))
         from trunkline.{lane} h where h.lane >= 0 and h.served_at > now() + interval '1 minute' having count(*) > 0"
    } else {
        ""
    };
    let floor = "coalesce((select f.reached from trunkline.floor f where f.queue = {name} and f.reached <= now()), '-infinity')";
    let floor = Text::of(db, floor);
    let oldest = Text::of(db, &oldest).with_text("floor", &floor);
    Text::of(db, text)
        .with_text("oldest", &oldest)
        .with_text("last", &Text::of(db, &last))
        .with_text("of_keys", &Text::of(db, of_keys))
        .with_text("floor", &floor)
        .with_tables(&queue.name)
}
