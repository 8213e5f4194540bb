mod causes;
mod clocks;
mod derived;
mod limits;
mod locked;
mod many;
mod news;
mod objects;
mod plans;
mod rights;
mod standby;
mod ward;
mod workers;

use std::{collections::BTreeSet, time::Duration};

use trunkline::{Db, Draft, Settings};
use trunkline_console::doctor::{Doctor, Severity};
use trunkline_embedded::Binaries;

use self::ward::{Ward, connect, impatient, only};

const SOON: Duration = Duration::from_secs(60);

#[test]
fn the_guide_has_a_row_for_each_check() {
    let guide = include_str!("../../../../docs/doctor.md");
    let told: BTreeSet<&str> =
        guide.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name).collect();
    assert_eq!(told, Doctor::checks().collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn healthy_queues_have_no_findings() {
    let ward = Ward::new().await;
    assert_eq!(ward.found().await, [], "an empty schema");
    let plain = ward.queue("plain", Settings::new("int8")).await;
    let laned = ward.queue("laned", Settings::new("int8").priorities(3)).await;
    let keyed = ward.queue("keyed", Settings::new("int8").partitions(4)).await;
    plain.enqueue_many(0..10).await.expect("enqueued");
    laned.enqueue_many((0..9).map(|n| Draft::new(n).priority((n % 3) as u8))).await.expect("enqueued");
    keyed.enqueue_many((0..9).map(|n| Draft::new(n).key(n.to_string()))).await.expect("enqueued");
    let found = Doctor::new().examine(&ward.db).await.expect("examined");
    assert_eq!(found, [], "three queues with messages and no consumer yet");
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_that_blocks_vacuum_is_named_and_can_be_ended() {
    let ward = Ward::with(&[("max_prepared_transactions", "2"), ("wal_level", "logical")]).await;
    let holder = connect(&ward.server.url("postgres")).await;
    holder
        .batch_execute("set application_name = 'a report'; begin isolation level repeatable read; select 1")
        .await
        .expect("held");
    let found = ward.mended("snapshots").await;
    assert!(found.severity == Severity::Wrong && found.what.contains("a report") && found.since.is_some(), "{found:?}");

    let idle = connect(&ward.server.url("postgres")).await;
    idle.batch_execute("begin; select 1").await.expect("begun");
    let found = ward.mended("snapshots").await;
    assert!(
        found.severity == Severity::Advice && found.why.contains("locks"),
        "it has no snapshot between statements: {found:?}"
    );

    let writer = connect(&ward.server.url("postgres")).await;
    writer.batch_execute("begin; create table t (); prepare transaction 'it''s forgotten'").await.expect("prepared");
    let found = ward.mended("prepared").await;
    assert!(found.what.contains("it''s forgotten"), "{found:?}");

    ward.say("select pg_create_physical_replication_slot('a_standby', true)").await;
    let found = ward.mended("slots").await;
    assert!(found.what.contains("a_standby"), "{found:?}");
    assert_eq!(ward.found().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_rows_and_autovacuum_that_is_off_are_found() {
    let ward = Ward::with(&[("autovacuum_naptime", "1d")]).await;
    ward.queue("q", Settings::new("int8")).await;
    ward.say(
        "insert into trunkline.queue_q (id, due_at, size, payload) select i * 1024, now(), 1, '{1}' from generate_series(1, 60000) i;
         delete from trunkline.queue_q",
    )
    .await;
    ward.until("select pg_stat_get_dead_tuples('trunkline.queue_q'::regclass) >= 60000").await;
    let found = ward.mended("dead_rows").await;
    assert!(found.queue.as_deref() == Some("q") && found.what.contains("60000 dead rows"), "{found:?}");
    ward.say("alter table trunkline.queue_q set (autovacuum_enabled = no)").await;
    ward.mended("vacuum_off").await;
    ward.say("alter table trunkline.queue_q set (toast.autovacuum_enabled = off)").await;
    let found = ward.mended("vacuum_off").await;
    assert!(
        found.queue.as_deref() == Some("q") && found.what.contains("the TOAST table of table queue_q"),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn indexes_that_are_missing_or_not_valid_are_found() {
    let ward = Ward::new().await;
    for (name, settings) in [
        ("plain", Settings::new("int8")),
        ("laned", Settings::new("int8").priorities(2)),
        ("keyed", Settings::new("int8").partitions(2)),
    ] {
        ward.queue(name, settings).await;
    }
    let shape = "select string_agg(regexp_replace(indexdef, 'INDEX \\S+', 'INDEX'), ';' order by indexname) from pg_indexes where schemaname = 'trunkline'";
    let shape = || async { ward.sql.query_one(shape, &[]).await.expect("read").get::<_, String>(0) };
    let before = shape().await;
    for index in ["due_plain", "due_laned", "place_keyed"] {
        ward.say(&format!("drop index trunkline.{index}")).await;
        let found = ward.mended("indexes").await;
        assert!(found.what.contains(index), "{found:?}");
    }
    assert_eq!(shape().await, before, "as they were");
    ward.say("update pg_index set indisvalid = false where indexrelid = 'trunkline.due_plain'::regclass").await;
    ward.mended("indexes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_mostly_empty_is_found() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await;
    ward.say(
        "insert into trunkline.queue_q (id, due_at, size, payload) select i * 1024, now(), 1, '{1}' from generate_series(1, 600000) i;
         delete from trunkline.queue_q where id % 102400 <> 0",
    )
    .await;
    ward.say("vacuum trunkline.queue_q").await;
    ward.until(
        "select n_live_tup + n_dead_tup < 10000 from pg_stat_user_tables where relid = 'trunkline.queue_q'::regclass",
    )
    .await;
    let found = ward.of("bloat").await;
    assert!(!found.is_empty() && found.iter().all(|one| one.severity == Severity::Advice), "{found:?}");
    for one in &found {
        assert!(one.why.contains("purged") && one.mend.contains("trunkline compact q"), "{one:?}");
        ward.say(&one.mend).await;
    }
    assert_eq!(ward.of("bloat").await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_run_out_or_fell_behind_are_found() {
    let ward = Ward::new().await;
    let queue = ward.queue("q", Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    ward.say("select setval('trunkline.id_q', 9000000000000000000)").await;
    let found = ward.mended("numbers").await;
    assert!(found.what.contains("98 %"), "{found:?}");
    ward.say("insert into trunkline.queue_q (id, size, payload) values (10240, 1, '{1}')").await;
    ward.mended("sequence").await;
    queue.enqueue(2).await.expect("enqueued");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cost_messages_or_speed_are_found() {
    let ward = Ward::with(&[("full_page_writes", "off"), ("max_connections", "30")]).await;
    ward.mended("settings").await;
    ward.say("alter database postgres set synchronous_commit = off").await;
    let other = Db::connect(&ward.server.url("postgres")).await.expect("connected");
    let found = Doctor::new().examine(&other).await.expect("examined");
    assert!(found.len() == 1 && found[0].what.contains("synchronous_commit is off (set in database)"), "{found:?}");
    ward.say("alter database postgres reset synchronous_commit").await;
    let mut many = Vec::new();
    drop(other);
    while ward.of("settings").await.is_empty() {
        many.push(connect(&ward.server.url("postgres")).await);
    }
    let found = ward.of("settings").await;
    assert!(found.len() == 1 && found[0].what.contains("max_connections = 30"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_and_standbys_whose_commits_can_be_lost_are_found() {
    let ward = Ward::with(&[("synchronous_standby_names", "nobody"), ("synchronous_commit", "local")]).await;
    let found = ward.of("settings").await;
    assert!(found.len() == 1 && found[0].what.starts_with("synchronous_commit is local"), "{found:?}");
    ward.say("create role app login; alter role app set synchronous_commit = off").await;
    assert_eq!(ward.of("settings").await, found, "the role may not use the schema");
    ward.say("grant usage on schema trunkline to app").await;
    let of_role = async || ward.of("settings").await.into_iter().find(|one| one.what.ends_with("for role app"));
    for place in ["", " in database postgres"] {
        ward.say(&format!("alter role app{place} set synchronous_commit = off")).await;
        let found = of_role().await.expect("found");
        assert_eq!(found.severity, Severity::Advice);
        ward.mend(&found).await;
        assert_eq!(of_role().await, None, "{}", found.mend);
    }
    ward.say("alter role app set synchronous_commit = off").await;
    ward.say("alter role app in database postgres set synchronous_commit = on").await;
    assert_eq!(of_role().await, None, "the role's setting for this database is on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_notification_queue_is_looked_at() {
    // The queue holds eight gigabytes, and sixteen megabytes where that can be set.
    let is_settable = Binaries::find_or_fetch(|_, _| {}).expect("a server").major() >= 17;
    let size: &[_] = if is_settable { &[("max_notify_queue_pages", "2000")] } else { &[] };
    let notifications = if is_settable { 50 } else { 20_000 };
    let ward = Ward::with(size).await;
    let slow = connect(&ward.server.url("postgres")).await;
    slow.batch_execute("listen something").await.expect("listens");
    slow.batch_execute("begin; select 1").await.expect("and does not read");
    // A finding requires that a twentieth of the queue is in use.
    let fill =
        format!("select pg_notify('something', repeat('x', 7000) || i) from generate_series(1, {notifications}) i");
    let mut rounds = 0;
    while ward.of("notifications").await.is_empty() && rounds < 8 {
        ward.say(&fill).await;
        rounds += 1;
    }
    let found = ward.of("notifications").await;
    assert!(found.len() == 1 && found[0].mend.contains("pg_terminate_backend"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_without_consumer_is_found_whatever_its_kind() {
    let ward = Ward::new().await;
    for (name, settings, draft) in [
        ("plain", Settings::new("int8"), Draft::new(1)),
        ("laned", Settings::new("int8").priorities(3), Draft::new(1).priority(2)),
        ("keyed", Settings::new("int8").partitions(4), Draft::new(1).key("a")),
    ] {
        let queue = ward.queue(name, settings).await;
        assert_eq!(ward.of("consumers").await, []);
        queue.enqueue_many([draft.clone(), draft]).await.expect("enqueued");
        let found = ward.of("consumers").await;
        assert!(found.len() == 1 && found[0].queue.as_deref() == Some(name), "{found:?}");
        assert!(found[0].severity == Severity::Wrong && found[0].what.contains("nothing is leased"), "{found:?}");
        assert!(found[0].mend.contains(&format!("trunkline work {name}")), "{found:?}");
        ward.db.pause_queue(name).await.expect("paused");
        let found = ward.of("consumers").await;
        assert!(
            found.len() == 1 && found[0].severity == Severity::Advice && found[0].what.contains("is paused"),
            "{found:?}"
        );
        ward.say(&found[0].mend).await;
        assert_eq!(ward.of("consumers").await.len(), 1, "it goes on, and still has no consumer");
        if name == "plain" {
            ward.say("select trunkline.lease('plain', 1)").await;
            let found = ward.of("consumers").await;
            assert!(found.len() == 1 && found[0].what.contains("other messages are leased"), "{found:?}");
        }
        ward.say(&format!("select trunkline.purge('{name}')")).await;
        assert_eq!(ward.of("consumers").await, []);
    }
}

/// Leaves the floor of a queue behind its messages, with many dead rows between.
async fn leave_floor_behind(ward: &Ward) {
    ward.queue("q", Settings::new("int8")).await;
    ward.say(
        "update trunkline.floor set reached = now() - interval '2 hours' where queue = 'q';
         insert into trunkline.queue_q (id, due_at, size, payload)
         select i * 1024, now() - interval '1 hour', 1, '{1}' from generate_series(1, 60000) i;
         delete from trunkline.queue_q;
         insert into trunkline.queue_q (id, due_at, size, payload) values (1024, now() - interval '1 second', 1, '{1}')",
    )
    .await;
    ward.until("select pg_stat_get_dead_tuples('trunkline.queue_q'::regclass) >= 60000").await;
}

/// Due messages are found among many dead rows, without reading the dead ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_floor_that_was_left_behind_is_found() {
    let ward = Ward::with(&[("autovacuum", "off")]).await;
    leave_floor_behind(&ward).await;
    let found = ward.mended("floor").await;
    assert!(found.queue.as_deref() == Some("q") && found.severity == Severity::Advice, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_another_name_is_looked_at_instead() {
    let ward = Ward::new().await;
    let db = Db::connect(&format!("{} schema=trial", ward.server.url("postgres"))).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    db.queue::<i64>("q").await.expect("opened").enqueue(1).await.expect("enqueued");
    ward.say("alter table trial.queue_q set (autovacuum_enabled = off); drop index trial.due_q").await;
    assert_eq!(ward.found().await, [], "the other one");
    let found = impatient(Doctor::new(), &db).await;
    let mut checks: Vec<&str> = found.iter().map(|one| one.check).collect();
    checks.sort_unstable();
    assert_eq!(checks, ["consumers", "indexes", "vacuum_off"], "{found:#?}");
    for one in found.iter().filter(|one| one.check != "consumers") {
        ward.say(&one.mend).await;
    }
    let found = impatient(Doctor::new(), &db).await;
    assert!(found.len() == 1 && found[0].check == "consumers", "{found:#?}");
}
