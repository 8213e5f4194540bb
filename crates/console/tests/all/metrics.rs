//! The metrics match SQL.

mod prometheus;
mod stale;

use std::{collections::BTreeSet, time::Duration};

use tokio_postgres::Client;
use trunkline::{Db, Draft, Queue, Settings};
use trunkline_console::metrics::Metrics;
use trunkline_embedded::{Cluster, Stop, test_database};

use crate::web::connect;

/// Creates a queue with messages in every state: 10 due, 3 delayed, 4 leased, 2 to be retried, 1
/// dead, 2 archived.
pub async fn in_all_states(db: &Db, name: &str) -> Queue<i64> {
    // Uses leases that last longer than the test.
    db.create_queue(name, &Settings::new("int8").lease(Duration::from_secs(3600))).await.expect("created");
    let queue: Queue<i64> = db.queue(name).await.expect("opened");
    queue.enqueue_many(0..19).await.expect("enqueued");
    let later = |n| Draft::new(n).after(Duration::from_secs(3600));
    queue.enqueue_many((0..3).map(later)).await.expect("enqueued");
    let leased = queue.lease(9).await.expect("leased");
    queue.retry(&leased[..2], Duration::from_secs(600), "not yet").await.expect("retried");
    queue.bury(&leased[2..3], "never").await.expect("buried");
    queue.archive(&leased[3..5]).await.expect("archived");
    queue
}

/// Returns the value of a sample, by its name and labels as written.
fn value<'a>(text: &'a str, sample: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in\n{text}"))
}

fn count(text: &str, sample: &str) -> i64 {
    value(text, sample).parse().expect("a whole number")
}

fn seconds(text: &str, sample: &str) -> f64 {
    value(text, sample).parse().expect("a number")
}

/// Creates a database. Returns its connection string, a connection, and a client for SQL.
async fn database() -> (String, Db, Client) {
    let url = crate::migrated_database().await;
    let db = Db::connect(&url).await.expect("connected");
    let sql = connect(&url).await;
    (url, db, sql)
}

/// Returns a client that has no samples yet, and waits for them even on a busy machine.
fn metrics() -> Metrics {
    Metrics::new().patience(Duration::from_secs(60))
}

async fn fresh(db: &Db) -> String {
    metrics().exposition(db).await
}

#[test]
fn the_guide_has_a_row_for_each_metric() {
    let told = |text: &'static str, before: &str| -> BTreeSet<&'static str> {
        text.split(before).skip(1).filter_map(|rest| rest.split(['"', '`']).next()).collect()
    };
    let guide = told(include_str!("../../../../docs/metrics.md"), "\n| `");
    assert_eq!(
        guide,
        told(include_str!("../../src/metrics/exposed.rs"), "\"")
            .into_iter()
            .filter(|name| name.starts_with("trunkline_"))
            .collect()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_those_of_sql() {
    let (_, db, sql) = database().await;
    let queue = in_all_states(&db, "a.queue-with_1").await;
    let text = fresh(&db).await;
    let messages =
        |state| count(&text, &format!("trunkline_queue_messages{{queue=\"a.queue-with_1\",state=\"{state}\"}}"));
    let states = ["due", "delayed", "leased", "to_retry", "dead", "archived"];
    assert_eq!(states.map(messages), [10, 3, 4, 2, 1, 2]);
    let question = "select due, delayed, leased, to_retry, dead, extract(epoch from oldest_due)::float8 from trunkline.stats('a.queue-with_1')";
    let row = sql.query_one(question, &[]).await.expect("counted");
    for (at, state) in states[..5].iter().enumerate() {
        assert_eq!(messages(state), row.get::<_, i64>(at), "{state}");
    }
    let oldest = seconds(&text, "trunkline_queue_oldest_due_seconds{queue=\"a.queue-with_1\"}");
    assert!(oldest > 0.0 && oldest <= row.get::<_, f64>(5), "{oldest}");

    let of_queue = |name: &str| count(&text, &format!("{name}{{queue=\"a.queue-with_1\"}}"));
    let seconds_of = |name: &str| seconds(&text, &format!("{name}{{queue=\"a.queue-with_1\"}}"));
    let lag = seconds_of("trunkline_queue_floor_lag_seconds");
    assert!((0.0..60.0).contains(&lag), "a floor that was never kept is as old as its queue: {lag}");
    assert_eq!(of_queue("trunkline_queue_enqueued_rows_total"), 2);
    assert_eq!((of_queue("trunkline_queue_paused"), of_queue("trunkline_stats_failed")), (0, 0));
    assert!(seconds_of("trunkline_stats_age_seconds") < 10.0 && seconds_of("trunkline_stats_duration_seconds") > 0.0);
    assert_eq!(count(&text, "trunkline_up"), 1);
    let version: i32 = sql.query_one("select max(version) from trunkline.version", &[]).await.expect("told").get(0);
    assert_eq!(count(&text, "trunkline_schema_version"), i64::from(version));
    // the queue that all databases of the server share
    assert!(seconds(&text, "trunkline_notification_queue_ratio") < 0.05);
    assert_eq!(count(&text, "trunkline_hidden_sessions"), 0);

    db.pause_queue("a.queue-with_1").await.expect("paused");
    queue.enqueue(1).await.expect("enqueued");
    let text = fresh(&db).await;
    assert_eq!(count(&text, "trunkline_queue_paused{queue=\"a.queue-with_1\"}"), 1);
    assert_eq!(count(&text, "trunkline_queue_enqueued_rows_total{queue=\"a.queue-with_1\"}"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_those_of_sql_for_each_table() {
    let (_, db, sql) = database().await;
    db.create_queue("keyed", &Settings::new("text").partitions(4)).await.expect("created");
    db.create_queue("singular", &Settings::new("text").uniqueness(true)).await.expect("created");
    let keyed: Queue<String> = db.queue("keyed").await.expect("opened");
    let large = (0..40).map(|n| Draft::new("x".repeat(5000)).key(n.to_string()));
    keyed.enqueue_many(large).await.expect("enqueued");
    let text = fresh(&db).await;
    let of_all = ["queue", "dead", "archive"];
    let of_keyed = of_all.iter().chain(&["lane", "line"]).map(|table| ("keyed", table));
    for (queue, table) in of_all.iter().chain(&["unique"]).map(|table| ("singular", table)).chain(of_keyed) {
        let of = |part| {
            count(&text, &format!("trunkline_queue_bytes{{queue=\"{queue}\",table=\"{table}\",part=\"{part}\"}}"))
        };
        let name = format!("'trunkline.{table}_{queue}'");
        let question = format!("select pg_total_relation_size({name}), pg_indexes_size({name})");
        let row = sql.query_one(&question, &[]).await.expect("told");
        assert_eq!(of("heap") + of("toast") + of("indexes"), row.get::<_, i64>(0), "{name}");
        assert_eq!(of("indexes"), row.get::<_, i64>(1), "{name}");
    }
    assert!(count(&text, "trunkline_queue_bytes{queue=\"keyed\",table=\"queue\",part=\"toast\"}") > 0);
    assert!(count(&text, "trunkline_queue_dead_rows{queue=\"keyed\",table=\"queue\"}") >= 0);
    assert!(!text.contains("trunkline_queue_floor_lag_seconds{queue=\"keyed\"}"), "its lanes have floors");
}

#[tokio::test(flavor = "multi_thread")]
async fn horizon_age_is_shown_for_each_holder() {
    let server = Cluster::temporary().setting("max_prepared_transactions", "2").start().expect("a server");
    let db = Db::connect(&server.url("postgres")).await.expect("connected");
    db.migrate().await.expect("migrated");
    let (holder, writer) = (connect(&server.url("postgres")).await, connect(&server.url("postgres")).await);
    let age = |text: &str, holder: &str| {
        let of = |unit| format!("trunkline_horizon_age_{unit}{{holder=\"{holder}\"}}");
        (count(text, &of("transactions")), seconds(text, &of("seconds")))
    };
    let transactions =
        |text: &str, holder| count(text, &format!("trunkline_horizon_age_transactions{{holder=\"{holder}\"}}"));
    holder.batch_execute("begin isolation level repeatable read; select 1").await.expect("held");
    for _ in 0..5 {
        writer.batch_execute("select txid_current()").await.expect("an id");
    }
    writer.batch_execute("begin; create table t (); prepare transaction 'forgotten'").await.expect("prepared");
    writer.batch_execute("select pg_create_physical_replication_slot('a_standby', true)").await.expect("made");
    let text = fresh(&db).await;
    let (session, prepared) = (age(&text, "session"), age(&text, "prepared"));
    assert!(session.0 >= 5 && session.1 > 0.0 && prepared.0 >= 1 && prepared.1 > 0.0, "{text}");
    assert_eq!((transactions(&text, "slot"), transactions(&text, "standby")), (0, 0), "it reserves nothing");
    holder.batch_execute("commit").await.expect("ended");
    writer.batch_execute("rollback prepared 'forgotten'").await.expect("ended");
    let text = fresh(&db).await;
    assert!(age(&text, "session").0 < 5 && age(&text, "prepared") == (0, 0.0), "{text}");

    server.stop(Stop::Fast).expect("stopped");
    let metrics = Metrics::new().patience(Duration::from_millis(200));
    let text = metrics.exposition(&db).await;
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>(), ["trunkline_up 0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_the_schema_is_not_up() {
    let url = tokio::task::spawn_blocking(test_database).await.expect("no panic").expect("a database");
    let db = Db::connect(&url).await.expect("connected");
    assert_eq!(count(&fresh(&db).await, "trunkline_up"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn uncountable_queue_says_so_and_hides_no_other() {
    let (url, db, sql) = database().await;
    in_all_states(&db, "locked").await;
    in_all_states(&db, "open").await;
    sql.batch_execute("begin; lock table trunkline.queue_locked").await.expect("locked");
    let metrics = metrics();
    let check = |text: &str| {
        assert_eq!(count(text, "trunkline_stats_failed{queue=\"locked\"}"), 1);
        assert_eq!(count(text, "trunkline_stats_failed{queue=\"open\"}"), 0);
        assert_eq!(count(text, "trunkline_queue_messages{queue=\"open\",state=\"due\"}"), 10);
        assert!(!text.contains("trunkline_queue_messages{queue=\"locked\""), "{text}");
    };
    check(&metrics.exposition(&db).await);
    sql.batch_execute("rollback").await.expect("open again");
    check(&metrics.exposition(&db).await); // finds the same, because a slow failure is not retried immediately

    let rows_of =
        |text: &str, queue: &str| text.contains(&format!("trunkline_queue_enqueued_rows_total{{queue=\"{queue}\"}}"));
    sql.batch_execute("begin; select trunkline.drop_queue('locked')").await.expect("dropped");
    let text = fresh(&db).await;
    check(&text);
    assert!(rows_of(&text, "open") && !rows_of(&text, "locked"), "{text}");
    sql.batch_execute("rollback; begin; alter sequence trunkline.id_locked cache 1").await.expect("altered");
    let text = fresh(&db).await;
    assert!(rows_of(&text, "open") && !rows_of(&text, "locked"), "{text}");
    sql.batch_execute("rollback").await.expect("there again");

    let role = format!("metrics_{}", std::process::id());
    let give = format!(
        "create role {role}; grant usage on schema trunkline to {role}; grant select on trunkline.queue, trunkline.migration, trunkline.version, trunkline.floor, trunkline.queue_open, trunkline.dead_open, trunkline.archive_open to {role}"
    );
    sql.batch_execute(&give).await.expect("given");
    let theirs = Db::connect(&format!("{url} options='-c role={role}'")).await.expect("connected");
    let text = fresh(&theirs).await;
    check(&text);
    assert!(!text.contains("trunkline_queue_enqueued_rows_total{"), "it may not read sequences: {text}");
    sql.batch_execute(&format!("drop owned by {role}; drop role {role}")).await.expect("dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_count_is_not_repeated_by_the_next_scrape() {
    let (_, db, sql) = database().await;
    db.create_queue("emails", &Settings::new("int8")).await.expect("created");
    let rows =
        "insert into trunkline.queue_emails (size, payload) select 1, array[n] from generate_series(1::int8, 200000) n";
    sql.batch_execute(rows).await.expect("enqueued");
    let metrics = metrics();
    let due = |text: &str| count(text, "trunkline_queue_messages{queue=\"emails\",state=\"due\"}");
    let age = |text: &str| seconds(text, "trunkline_stats_age_seconds{queue=\"emails\"}");
    let before = metrics.exposition(&db).await;
    sql.batch_execute("select trunkline.enqueue('emails', 1::int8)").await.expect("enqueued");
    let after = metrics.exposition(&db).await;
    assert_eq!(
        (due(&before), due(&after)),
        (200_000, 200_000),
        "counted in {:?} s",
        seconds(&after, "trunkline_stats_duration_seconds{queue=\"emails\"}")
    );
    assert!(age(&before) < age(&after), "and it says how old it is");
    assert_eq!(due(&fresh(&db).await), 200_001);

    db.drop_queue("emails").await.expect("dropped");
    let text = metrics.exposition(&db).await;
    assert!(!text.contains("emails"), "what is dropped is forgotten at once: {text}");
}

/// A role may be able to list the queues although it may not read the schema's version.
#[tokio::test(flavor = "multi_thread")]
async fn samples_that_cannot_be_taken_are_not_up() {
    let (url, db, sql) = database().await;
    in_all_states(&db, "q").await;
    let role = format!("half_{}", std::process::id());
    let give = format!(
        "create role {role}; grant usage on schema trunkline to {role}; grant select on trunkline.queue, trunkline.version to {role}"
    );
    sql.batch_execute(&give).await.expect("given");
    let theirs = Db::connect(&format!("{url} options='-c role={role}'")).await.expect("connected");
    let metrics = metrics();
    let text = metrics.exposition(&theirs).await;
    assert_eq!((count(&text, "trunkline_up"), count(&text, "trunkline_stats_failed{queue=\"q\"}")), (1, 1), "{text}");
    sql.batch_execute(&format!("revoke select on trunkline.version from {role}")).await.expect("revoked");
    let text = self::metrics().exposition(&theirs).await;
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>(), ["trunkline_up 0"]);
    sql.batch_execute(&format!("drop owned by {role}; drop role {role}")).await.expect("dropped");
}
