//! The metrics with their names and help texts.

use super::{
    ask::Counts,
    kept::Picture,
    text::{
        Exposition,
        Kind::{Counter, Gauge},
    },
};

const STATES: [&str; 6] = ["due", "delayed", "leased", "to_retry", "dead", "archived"];

/// Returns the exposition for a database whose state cannot be read.
pub fn down() -> String {
    let mut text = Exposition::default();
    up(&mut text, 0);
    text.into_string()
}

pub fn all(picture: &Picture) -> String {
    let mut text = Exposition::default();
    up(&mut text, 1);
    of_database(&mut text, picture);
    of_catalog(&mut text, picture);
    of_counts(&mut text, picture);
    of_stores(&mut text, picture);
    text.into_string()
}

fn up(text: &mut Exposition, up: u8) {
    let help = "1 if the database answered, contains the schema, and its state could be read.";
    text.metric("trunkline_up", Gauge, help).add(&[], up);
}

fn of_database(text: &mut Exposition, picture: &Picture) {
    let Some(database) = picture.database.as_ref().map(|kept| &kept.answer) else { return };
    text.metric("trunkline_schema_version", Gauge, "The last migration of the schema.")
        .add(&[], database.schema_version);
    let help =
        "How full the server's notification queue is, from 0 to 1. Once it is full, transactions that notify fail.";
    text.metric("trunkline_notification_queue_ratio", Gauge, help).add(&[], database.notifications);
    let help = "Sessions of other roles whose activity this role cannot see. Grant it pg_read_all_stats.";
    text.metric("trunkline_hidden_sessions", Gauge, help).add(&[], database.hidden_sessions);
    let help = "How long the oldest session or prepared transaction has kept vacuum from removing dead rows.";
    let mut seconds = text.metric("trunkline_horizon_age_seconds", Gauge, help);
    for (holder, age, _) in &database.holders {
        if let Some(age) = age {
            seconds.add(&[("holder", holder)], age);
        }
    }
    let help = "For how many transactions the oldest session, prepared transaction, slot or standby has kept vacuum from removing dead rows.";
    let mut transactions = text.metric("trunkline_horizon_age_transactions", Gauge, help);
    for (holder, _, age) in &database.holders {
        transactions.add(&[("holder", holder)], age);
    }
}

fn of_catalog(text: &mut Exposition, picture: &Picture) {
    let mut paused = text.metric("trunkline_queue_paused", Gauge, "1 if the queue is paused.");
    for (queue, is_paused, ..) in &picture.queues {
        paused.add(&[("queue", queue)], u8::from(*is_paused));
    }
    let help = "All rows (batches of messages) that were ever enqueued, according to the queue's sequence, including rows of transactions that were rolled back.";
    let mut rows = text.metric("trunkline_queue_enqueued_rows_total", Counter, help);
    for (queue, _, enqueued, _) in &picture.queues {
        if let Some(enqueued) = enqueued {
            rows.add(&[("queue", queue)], enqueued);
        }
    }
}

fn of_counts(text: &mut Exposition, picture: &Picture) {
    let counted = || picture.counts.iter().filter_map(|(queue, kept)| Some((queue, kept, kept.answer.as_ref()?)));
    let mut messages = text.metric("trunkline_queue_messages", Gauge, "Messages by state.");
    for (queue, _, counts) in counted() {
        for (state, messages_in_it) in STATES.iter().zip(messages_of(picture, queue, counts)) {
            messages.add(&[("queue", queue), ("state", state)], messages_in_it);
        }
    }
    let help = "How long the oldest due message has been due; 0 if no message is due.";
    let mut oldest = text.metric("trunkline_queue_oldest_due_seconds", Gauge, help);
    for (queue, ..) in &picture.queues {
        if let Some(alarms) = picture.alarms_of(queue) {
            oldest.add(&[("queue", queue)], alarms.oldest_due);
        }
    }
    let help = "How far the stored floor is behind the oldest message, or behind now if the queue is empty. It matters only if many rows are dead.";
    let mut lag = text.metric("trunkline_queue_floor_lag_seconds", Gauge, help);
    for (queue, _, counts) in counted() {
        if let Some(seconds) = counts.floor_lag {
            lag.add(&[("queue", queue)], seconds);
        }
    }
    let help = "The age of the queue's counts and floor lag. Large queues are counted less often.";
    let mut age = text.metric("trunkline_stats_age_seconds", Gauge, help);
    for (queue, kept, _) in counted() {
        age.add(&[("queue", queue)], kept.at.elapsed().as_secs_f64());
    }
    let mut took = text.metric(
        "trunkline_stats_duration_seconds",
        Gauge,
        "How long the server took to count the queue's messages.",
    );
    for (queue, _, counts) in counted() {
        took.add(&[("queue", queue)], counts.took.as_secs_f64());
    }
    let help = "1 if the queue could not be counted: the role may not read it, or the server returned an error.";
    let mut failed = text.metric("trunkline_stats_failed", Gauge, help);
    for (queue, kept) in &picture.counts {
        failed.add(&[("queue", queue)], u8::from(kept.answer.is_none()));
    }
}

/// Returns the numbers of messages by state. A lookup after the count may have shown that there are
/// dead letters, or none.
fn messages_of(picture: &Picture, queue: &str, counts: &Counts) -> [i64; STATES.len()] {
    let [due, delayed, leased, to_retry, mut dead, archived] = counts.messages;
    if let Some(alarms) = picture.alarms_of(queue) {
        dead = if alarms.has_dead { dead.max(1) } else { 0 };
    }
    [due, delayed, leased, to_retry, dead, archived]
}

fn of_stores(text: &mut Exposition, picture: &Picture) {
    let Some(stores) = picture.stores.as_ref().map(|kept| &kept.answer) else { return };
    let mut bytes = text.metric("trunkline_queue_bytes", Gauge, "Bytes on disk of a queue's tables.");
    for (queue, table, heap, toast, indexes, _) in stores {
        for (part, size) in [("heap", heap), ("toast", toast), ("indexes", indexes)] {
            bytes.add(&[("queue", queue), ("table", table), ("part", part)], size);
        }
    }
    let help = "Dead rows that vacuum has not removed yet, according to the server's statistics.";
    let mut dead = text.metric("trunkline_queue_dead_rows", Gauge, help);
    for (queue, table, _, _, _, rows) in stores {
        dead.add(&[("queue", queue), ("table", table)], rows);
    }
}
