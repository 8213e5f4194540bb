//! Tests unique keys with minimal rights: a producer claims keys, and a consumer frees them. A role
//! with both rights replaces waiting messages.

use trunkline::{Db, Draft, Enqueued, Settings, Unique};

use crate::fixture::{Place, place};

#[tokio::test(flavor = "multi_thread")]
async fn producer_claims_keys_consumer_frees_them_and_both_replace() {
    let Place { db: _db, queue, sql: admin, url } = place::<i64>(Settings::new("int8").uniqueness(true)).await;
    for (role, kinds) in [
        ("unique_producer", &["producer"][..]),
        ("unique_consumer", &["consumer"]),
        ("unique_both", &["producer", "consumer"]),
    ] {
        let create = format!("do $$ begin create role {role} login; exception when duplicate_object then null; end $$");
        admin.batch_execute(&create).await.expect("created");
        for kind in kinds {
            let grant = format!("select trunkline.grant_rights('{role}', '{kind}', 'q')");
            admin.batch_execute(&grant).await.expect("granted");
        }
    }
    let open = async |role: &str| {
        Db::connect(&format!("{url} user={role}")).await.expect("connected").queue::<i64>("q").await.expect("opened")
    };
    let (producer, consumer, both) =
        (open("unique_producer").await, open("unique_consumer").await, open("unique_both").await);
    let timed = Draft::new(0).unique(Unique::key("timed").within(std::time::Duration::from_secs(60)));
    producer.enqueue(&timed).await.expect("enqueued");
    let id = producer.enqueue(Draft::new(1).unique("k")).await.expect("enqueued").id();
    assert_eq!(producer.enqueue(Draft::new(2).unique("k")).await.expect("enqueued").id(), id);
    let replacing = || Draft::new(3).unique(Unique::key("k").replacing());
    let error = producer.enqueue(replacing()).await.expect_err("it may not read what waits").to_string();
    assert!(error.contains("--consumer"), "{error}");
    let fresh = Draft::new(3).unique(Unique::key("fresh").replacing());
    let error = producer.enqueue(fresh).await.expect_err("before the key is taken").to_string();
    assert!(error.contains("permission denied to replace") && error.contains("--consumer"), "{error}");
    assert_eq!(both.enqueue(replacing()).await.expect("enqueued"), Enqueued::Replaced(id));
    assert_eq!(consumer.take(9).await.expect("taken").len(), 2);
    assert!(producer.enqueue(Draft::new(4).unique("k")).await.expect("enqueued").is_new());
    assert!(!producer.enqueue(&timed).await.expect("enqueued").is_new());
    admin.batch_execute("select trunkline.revoke_rights('unique_producer', 'q')").await.expect("revoked");
    producer.enqueue(Draft::new(5).unique("other")).await.expect_err("revoked");
    assert_eq!(queue.stats().await.expect("counted").messages, 1);
}
