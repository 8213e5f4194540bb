//! Objects of a queue that were dropped, by hand or by a partial restore.

use trunkline::{Db, Settings};
use trunkline_console::doctor::Severity;

use super::{Ward, impatient, only};

/// A ward with a queue of each kind: `plain`, which has limits, `laned`, and `keyed`.
async fn with_queues() -> Ward {
    let ward = Ward::new().await;
    for (name, settings) in [
        ("plain", Settings::new("int8")),
        ("laned", Settings::new("int8").priorities(2).uniqueness(true)),
        ("keyed", Settings::new("int8").partitions(2)),
    ] {
        ward.queue(name, settings).await;
    }
    ward.say("select trunkline.limit_queue('plain', max_leased => 5)").await;
    ward.say("select trunkline.alter_queue('keyed', partitions => 4)").await;
    ward
}

/// Returns the definitions of everything that can be dropped.
async fn shape(ward: &Ward) -> String {
    let shape = "select string_agg(d.text, E'\\n' order by d.text) from (
        select pg_get_indexdef(x.indexrelid) || x.indisprimary as text from pg_index x join pg_class c on c.oid = x.indexrelid
        where c.relnamespace = 'trunkline'::regnamespace
        union all
        select o.conname || pg_get_constraintdef(o.oid) from pg_constraint o where o.connamespace = 'trunkline'::regnamespace and o.contype <> 'n'
        union all
        select pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where c.relnamespace = 'trunkline'::regnamespace and not t.tgisinternal
        union all
        select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = 'trunkline'::regnamespace
        union all
        select c.relname || pg_get_viewdef(c.oid) from pg_class c where c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'v') d";
    ward.sql.query_one(shape, &[]).await.expect("read").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn primary_keys_that_are_missing_are_found() {
    let ward = with_queues().await;
    let before = shape(&ward).await;
    for (table, key) in [
        ("queue_plain", "key_plain"),
        ("queue_keyed", "key_keyed"),
        ("dead_laned", "deadkey_laned"),
        ("archive_keyed", "archivekey_keyed"),
        ("unique_laned", "uniquekey_laned"),
        ("lane_keyed", "lanekey_keyed"),
        ("line_keyed", "linekey_keyed"),
    ] {
        ward.say(&format!("alter table trunkline.{table} drop constraint {key}")).await;
        let found = ward.mended("indexes").await;
        let what = format!("table {table} has no primary key");
        assert_eq!((found.severity, &found.what), (Severity::Wrong, &what), "{found:?}");
        assert_eq!(shape(&ward).await, before, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn indexes_that_are_not_for_due_messages_are_found_too() {
    let ward = with_queues().await;
    let before = shape(&ward).await;
    for index in ["leased_plain", "age_laned", "uniqueid_laned"] {
        ward.say(&format!("drop index trunkline.{index}")).await;
        let found = ward.mended("indexes").await;
        assert_eq!(found.what, format!("index {index} is missing"), "{found:?}");
        assert_eq!(shape(&ward).await, before, "{index}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn triggers_that_are_missing_are_found() {
    let ward = with_queues().await;
    let before = shape(&ward).await;
    for (table, trigger) in [
        ("queue_plain", "refuse_row"),
        ("dead_plain", "keep_letter"),
        ("archive_laned", "keep_letter"),
        ("queue_keyed", "keep_place"),
        ("queue_laned", "free_keys"),
        ("queue_laned", "free_all_keys"),
    ] {
        ward.say(&format!("drop trigger {trigger} on trunkline.{table}")).await;
        let found = ward.mended("triggers").await;
        assert_eq!(found.what, format!("trigger {trigger} of table {table} is missing"), "{found:?}");
        assert_eq!(shape(&ward).await, before, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_are_missing_are_found_by_an_operator_too() {
    let ward = with_queues().await;
    let role = "create role watches login; grant pg_monitor to watches;
        select trunkline.grant_rights('watches', 'operator')";
    ward.say(role).await;
    let url = ward.server.url("postgres").replace("user=trunkline", "user=watches");
    let operator = Db::connect(&url).await.expect("connected");
    let before = shape(&ward).await;
    for (queue, function) in [
        ("plain", "do_take_plain"),
        ("plain", "do_leased_plain"),
        ("laned", "do_lease_laned"),
        ("laned", "do_unique_laned"),
        ("keyed", "do_lanes_keyed"),
    ] {
        ward.say(&format!(
            "do $$ begin execute (select 'drop function ' || p.oid::regprocedure from pg_proc p where p.proname = '{function}'); end $$"
        ))
        .await;
        let found = ward.found().await;
        let [found] = &found[..] else { panic!("{function}: {found:#?}") };
        assert_eq!((found.check, found.queue.as_deref()), ("functions", Some(queue)), "{found:?}");
        assert_eq!(found.what, format!("of its functions and views, 1 is missing: {function}"));
        assert_eq!(impatient(only("functions"), &operator).await, std::slice::from_ref(found));
        ward.mended("functions").await;
        assert_eq!(shape(&ward).await, before, "{function}");
    }
    ward.say("drop view trunkline.messages_keyed").await;
    assert!(ward.mended("functions").await.what.ends_with("1 is missing: messages_keyed"));
    assert_eq!(shape(&ward).await, before);
}
