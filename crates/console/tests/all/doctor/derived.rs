//! Derived data that does not match its messages is a finding. The doctor does not call functions
//! that another role has created.

use trunkline::{Db, Draft, Settings};
use trunkline_console::doctor::{Doctor, Severity};

use super::Ward;

#[tokio::test(flavor = "multi_thread")]
async fn sequence_behind_dead_letters_or_existing_messages_is_found() {
    let ward = Ward::new().await;
    let queue = ward.queue("q", Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    let leased = queue.lease(1).await.expect("leased");
    queue.bury(&leased, "no").await.expect("held");
    ward.say("select setval('trunkline.id_q', 1024, false)").await;
    ward.mended("sequence").await;
    queue.enqueue(2).await.expect("enqueued");
    ward.say("select setval('trunkline.id_q', (select max(id) from trunkline.queue_q), false)").await;
    ward.mended("sequence").await;
    queue.enqueue(3).await.expect("enqueued");
}

#[tokio::test(flavor = "multi_thread")]
async fn derived_state_that_does_not_fit_its_messages_is_found() {
    let ward = Ward::new().await;
    let queue = ward.queue("q", Settings::new("int8").partitions(4)).await;
    for (nr, key) in (0_i64..).zip(["a", "b", "c", "d", "e", "f"]) {
        queue.enqueue(Draft::new(nr).key(key)).await.expect("enqueued");
    }
    assert_eq!(ward.of("derived_keys").await, []);
    for damage in [
        "update trunkline.queue_q set line = keys[1]",
        "update trunkline.queue_q set lane = (lane + 1) % 4, line = ''",
        "delete from trunkline.lane_q where lane = 2",
    ] {
        ward.say(damage).await;
        ward.mended("derived_keys").await;
    }
    ward.say("select trunkline.create_queue('once', 'int8', uniqueness => true)").await;
    ward.say("insert into trunkline.unique_once (key, id) values ('k', 77777)").await;
    let found = ward.of("derived_claims").await;
    assert!(found.len() == 1 && found[0].severity == Severity::Advice, "{found:?}");
    ward.say(&found[0].mend).await;
    assert_eq!(ward.of("derived_claims").await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_calls_no_function_or_operator_of_another_role() {
    let ward = Ward::new().await;
    let queue = ward.queue("q", Settings::new("int8").partitions(4)).await;
    queue.enqueue(Draft::new(1).key("a")).await.expect("enqueued");
    ward.say(include_str!("../../../../../tests/traps/lay.sql")).await;
    for path in ["public, trap", "trap, pg_catalog"] {
        ward.say(&format!("alter database postgres set search_path = {path}")).await;
        let db = Db::connect(&ward.server.url("postgres")).await.expect("connected");
        let found = Doctor::new().examine(&db).await.expect("examined");
        let failed: Vec<_> = found.iter().filter(|one| one.what.contains("the check failed")).collect();
        assert!(failed.is_empty(), "{failed:?}");
    }
}
