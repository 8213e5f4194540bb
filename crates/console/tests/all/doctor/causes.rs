//! Findings whose cause is not the most common one.

use std::time::Duration;

use trunkline::{Limits, Settings};
use trunkline_console::doctor::{Doctor, Severity};

use super::{SOON, Ward, connect, leave_floor_behind, only};

#[tokio::test(flavor = "multi_thread")]
async fn limit_is_named_as_a_reason_why_messages_wait() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await.enqueue(1).await.expect("enqueued");
    ward.db.limit_queue("q", &Limits::none().per_second(0.01)).await.expect("limited");
    let found = ward.of("consumers").await;
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert!(found.what.ends_with("nothing is leased; the queue has a rate limit"), "{found:?}");
    assert!(found.mend.starts_with("trunkline queue describe q "), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_longer_than_the_queue_s_are_seen() {
    let ward = Ward::new().await;
    let settings = Settings::new("int8").lease(Duration::from_secs(30));
    for (name, settings) in [("plain", settings.clone()), ("laned", settings.priorities(3))] {
        let queue = ward.queue(name, settings).await;
        let ids = [queue.enqueue(1).await.expect("enqueued").id(), queue.enqueue(2).await.expect("enqueued").id()];
        ward.say(&format!(
            "update trunkline.queue_{name} set attempt = 1, due_at = now() + interval '10 minutes' where id = {};
             update trunkline.queue_{name} set due_at = now() - interval '1 hour' where id = {}",
            ids[0], ids[1]
        ))
        .await;
        let found = ward.of("consumers").await;
        let [found] = &found[..] else { panic!("{found:#?}") };
        assert!(found.what.contains("other messages are leased"), "{found:?}");
        ward.say(&format!("select trunkline.purge('{name}')")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn triggers_settings_and_slots_that_do_harm_from_elsewhere_are_found() {
    let ward = Ward::with(&[("wal_level", "logical")]).await;
    ward.queue("keyed", Settings::new("int8").partitions(2)).await;
    ward.say("alter table trunkline.queue_keyed disable trigger refuse_row").await;
    let found = ward.mended("triggers").await;
    assert!(found.what.contains("trigger refuse_row of table trunkline.queue_keyed is disabled"), "{found:?}");

    for statement in
        ["create database other", "alter system set default_transaction_read_only = on", "select pg_reload_conf()"]
    {
        ward.say(statement).await;
    }
    let found = async {
        loop {
            if let [found] = &ward.of("settings").await[..] {
                return found.clone(); // repeats until the doctor's session has reloaded its settings
            }
        }
    };
    let found = tokio::time::timeout(SOON, found).await.expect("it is found");
    assert!(
        found.severity == Severity::Wrong && found.what.contains("default_transaction_read_only is on"),
        "{found:?}"
    );
    ward.say("alter system reset default_transaction_read_only").await;
    ward.say("select pg_reload_conf()").await;
    ward.until("select not current_setting('default_transaction_read_only')::bool").await;

    let other = connect(&ward.server.url("other")).await;
    other.batch_execute("select pg_create_logical_replication_slot('of_other', 'pgoutput')").await.expect("made");
    let found = ward.of("slots").await;
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert!(found.what.contains("of_other") && found.mend.contains("-- in database other; "), "{found:?}");
    other.batch_execute(&found.mend).await.expect("mended");
    assert_eq!(ward.found().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn synchronous_standby_that_is_missing_is_found_and_not_the_sessions_that_wait() {
    let ward = Ward::with(&[("synchronous_standby_names", "ANY 1 (gone)"), ("synchronous_commit", "local")]).await;
    assert_eq!(ward.of("standbys").await, [], "the commits of this role do not wait");
    let url = ward.server.url("postgres");
    let waits = trunkline::Db::connect(&format!("{url} options='-c synchronous_commit=on'")).await.expect("connected");
    let found = only("standbys").examine(&waits).await.expect("examined");
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert!(found.severity == Severity::Wrong && found.since.is_none(), "{found:?}");
    let what = "synchronous_standby_names is 'ANY 1 (gone)', so commits wait for 1 of these standbys, and 0 of them confirm commits";
    assert_eq!(found.what, what);
    let session = connect(&url).await;
    session.batch_execute("set synchronous_commit = on").await.expect("set");
    let writes = tokio::spawn(async move { session.batch_execute("create table t ()").await });
    ward.until("select count(*) = 1 from pg_stat_activity where wait_event = 'SyncRep'").await;
    let found = ward.found().await;
    let checks: Vec<&str> = found.iter().map(|one| one.check).collect();
    assert_eq!(checks, ["standbys", "settings"], "{found:#?}");
    assert!(found[0].what == format!("{what}; 1 session waits") && found[0].since.is_some(), "{:?}", found[0]);
    writes.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn drained_shard_is_advice() {
    let ward = Ward::new().await;
    ward.say("update trunkline.stripe set drains = true").await;
    let found = ward.found().await;
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert!(found.check == "drains" && found.severity == Severity::Advice, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn role_that_only_reads_finds_nothing_wrong_with_that() {
    let ward = Ward::new().await;
    let url = format!("{} options='-c default_transaction_read_only=on'", ward.server.url("postgres"));
    let reads = trunkline::Db::connect(&url).await.expect("connected");
    let found = Doctor::new().examine(&reads).await.expect("examined");
    assert!(found.iter().all(|one| one.check != "settings"), "{found:#?}");
}

/// A floor that is stored past the messages of an open transaction hides them.
#[tokio::test(flavor = "multi_thread")]
async fn open_writer_that_holds_the_floor_is_named() {
    let ward = Ward::with(&[("autovacuum", "off"), ("max_prepared_transactions", "2")]).await;
    leave_floor_behind(&ward).await;
    ward.say("create database other").await;
    let writer = connect(&ward.server.url("other")).await;
    let write = "set application_name = 'an import'; begin; select pg_current_xact_id()";
    writer.batch_execute(write).await.expect("it has an id");
    let found = ward.of("floor").await;
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert!(found.severity == Severity::Advice && found.what.contains("(an import, idle in transaction)"), "{found:?}");
    assert!(found.what.contains(" in database other; its last statement is: "), "{found:?}");
    assert!(found.why.contains("This one began after the stored floor."), "{found:?}");
    assert!(found.mend.contains("; -- only if its work may be rolled back"), "{found:?}");
    ward.mend(found).await;
    ward.until("select count(*) = 0 from pg_stat_activity where application_name = 'an import'").await;

    ward.say("begin; create table t (); prepare transaction 'forgotten'").await;
    let found = ward.of("floor").await;
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert!(found.what.contains("prepared transaction 'forgotten'"), "{found:?}");
    ward.mend(found).await;

    let found = ward.mended("floor").await;
    assert!(found.mend.contains("keep_floor"), "{found:?}");

    let writer = connect(&ward.server.url("postgres")).await;
    writer.batch_execute("begin; select pg_current_xact_id()").await.expect("it has an id");
    ward.say(
        "update trunkline.floor set reached = clock_timestamp() where queue = 'q';
         update trunkline.queue_q set due_at = now() + interval '2 hours'",
    )
    .await;
    let found = ward.of("floor").await;
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert!(found.what.contains("has written") && !found.why.contains("another cause"), "{found:?}");
}
