//! Tests that the end of a lease wakes consumers that wait for a limit of leased messages.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{sync::Notify, time::timeout};
use trunkline::{Attempt, Db, Dequeue, Failure, Limits, Message, Settings, Wait, Worker};

use super::HOUR;
use crate::fixture::{Place, Runs, SOON, connect, drained, enqueued, eventually, one_waits, place, until_asleep};

#[tokio::test(flavor = "multi_thread")]
async fn handlers_own_commit_makes_room_in_its_worker() {
    let Place { db, queue, .. } = place::<i64>(Settings::new("int8").lease(HOUR)).await;
    db.limit_queue("q", &Limits::none().max_leased(1)).await.expect("limited");
    enqueued(&queue, 3).await;
    let sleeps = Arc::new(Notify::new());
    let waits = sleeps.clone();
    let limited = db.queue::<i64>("q").await.expect("opened");
    let worker = Worker::with_attempt(limited, move |_: Message<i64>, attempt: Attempt<i64>| {
        let sleeps = sleeps.clone();
        async move {
            sleeps.notified().await; // the worker waits for a message
            attempt.transaction().await?.commit().await?;
            Ok::<_, Failure>(())
        }
    });
    let runs = Runs::start(worker.before_wait(move || waits.notify_one()));
    drained(&queue).await;
    assert_eq!(runs.stop().await.done, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn ack_by_a_process_that_is_older_than_the_limit_makes_room() {
    let Place { queue, url, sql, .. } = place::<i64>(Settings::new("int8").lease(HOUR)).await;
    enqueued(&queue, 2).await;
    let other = Db::connect(&url).await.expect("connected");
    other.limit_queue("q", &Limits::none().max_leased(1)).await.expect("limited");
    let leased = queue.lease(1).await.expect("leased");
    let mut consumer = queue.consumer(Wait::Poll(Duration::from_millis(5)));
    assert!(consumer.lease(Dequeue::from(1).within(Duration::from_secs(1))).await.expect("waited").is_empty());
    let mut waits = other.queue::<i64>("q").await.expect("opened").consumer(Wait::Notify);
    let waiting = tokio::spawn(async move { waits.lease(1).await });
    until_asleep(&sql).await;
    queue.ack(&leased).await.expect("acknowledged");
    assert_eq!(timeout(SOON, waiting).await.expect("soon").expect("no panic").expect("leased").len(), 1);
}

/// An uncommitted extension hides the new end of its lease from other sessions.
#[tokio::test(flavor = "multi_thread")]
async fn lease_that_is_being_extended_counts_beyond_its_end() {
    let Place { db, queue, sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    db.limit_queue("q", &Limits::none().max_leased(1)).await.expect("limited");
    enqueued(&queue, 2).await;
    let reader = connect(&url).await; // holds the limit's table as pg_dump does, and counts no lease
    reader.batch_execute("begin; lock table trunkline.limit_q in access share mode").await.expect("locked");
    let held = sql
        .query_one("select id, attempt, due_at from trunkline.lease('q', lease => '2 seconds')", &[])
        .await
        .expect("leased");
    let (id, attempt, end): (i64, i32, SystemTime) = (held.get(0), held.get(1), held.get(2));
    let mut extender = connect(&url).await;
    let transaction = extender.transaction().await.expect("begun");
    transaction.execute("select trunkline.extend('q', $1, $2, '1 hour')", &[&id, &attempt]).await.expect("extended");
    eventually("the first end has passed", async || {
        sql.query_one("select clock_timestamp() > $1", &[&end]).await.expect("read").get(0)
    })
    .await;
    assert_eq!(sql.query("select * from trunkline.lease('q')", &[]).await.expect("leased").len(), 0);
    let pause: f64 = sql.query_one("select trunkline.do_allowedin_q()", &[]).await.expect("read").get(0);
    assert!(pause <= 0.25, "consumers look again soon: {pause}");
    transaction.commit().await.expect("committed");
    assert_eq!(sql.query("select * from trunkline.lease('q')", &[]).await.expect("leased").len(), 0, "it is leased");
    sql.execute("select trunkline.ack('q', $1, $2)", &[&id, &attempt]).await.expect("acknowledged");
    assert_eq!(sql.query("select * from trunkline.lease('q', lease => '1 us')", &[]).await.expect("leased").len(), 1);
    assert_eq!(sql.query("select * from trunkline.lease('q')", &[]).await.expect("leased").len(), 1, "the end counts");
}

#[tokio::test]
async fn lease_is_extended_while_the_limit_is_removed() {
    let Place { queue, sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute("select trunkline.limit_queue('q', max_leased => 1)").await.expect("limited");
    queue.enqueue(1).await.expect("enqueued");
    let held = sql.query_one("select id, attempt from trunkline.lease('q')", &[]).await.expect("leased");
    let (id, attempt): (i64, i32) = (held.get(0), held.get(1));
    let (removing, reader) = (connect(&url).await, connect(&url).await);
    removing.batch_execute("begin; select trunkline.limit_queue('q')").await.expect("removed");
    let extended =
        tokio::spawn(
            async move { sql.query("select trunkline.extend('q', $1, $2, '1 hour')", &[&id, &attempt]).await },
        );
    eventually("it waits", async || one_waits(&reader).await).await;
    removing.batch_execute("commit").await.expect("committed");
    extended.await.expect("no panic").expect("extended");
}
