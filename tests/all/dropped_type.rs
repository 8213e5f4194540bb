//! Tests a queue whose payload type was dropped, as `drop schema … cascade` does. Other queues
//! continue to work, and the queue can be dropped.

use trunkline::{Db, Settings};

use crate::fixture::{connect, database};

#[tokio::test(flavor = "multi_thread")]
async fn other_queues_go_on_without_the_type_of_one() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    sql.batch_execute("create schema app; create type app.mood as enum ('a', 'b')").await.expect("created");
    for (queue, payload) in [("good", "text"), ("mood", "app.mood")] {
        db.create_queue(queue, &Settings::new(payload)).await.expect("created");
    }
    sql.batch_execute("select trunkline.enqueue('mood', 'a'); drop schema app cascade").await.expect("dropped");
    let queues = db.list_queues().await.expect("listed");
    let payloads: Vec<&str> = queues.iter().map(|queue| &*queue.payload).collect();
    assert_eq!(payloads, ["text", "a type that was dropped"]);
    let error = db.create_queue("mood", &Settings::new("text")).await.expect_err("another queue");
    assert!(error.to_string().contains("of a type that was dropped"), "{error}");
    // Simulates functions of another library version, which a migration replaces in every queue.
    let older = "select * from trunkline.rebuild('mood'); update trunkline.version set functions = 'others'";
    sql.batch_execute(older).await.expect("rebuilt");
    db.migrate().await.expect("the other queue is renewed");
    let good = db.queue::<String>("good").await.expect("opened");
    good.enqueue("one".to_owned()).await.expect("enqueued");
    assert_eq!(good.take(1).await.expect("taken").len(), 1);
    db.drop_queue("mood").await.expect("dropped");
    db.create_queue("mood", &Settings::new("text")).await.expect("created again");
}
