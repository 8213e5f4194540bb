//! The settings of an existing queue can be changed from Rust.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use tokio::{sync::Semaphore, time::timeout};
use trunkline::{Changes, Limits, Message, Settings, Wait, Worker};

use crate::fixture::{Place, Runs, SOON, connect, database, drained, enqueued, eventually, place};

#[tokio::test(flavor = "multi_thread")]
async fn unnamed_settings_stay_and_a_refused_change_alters_nothing() {
    let Place { db, .. } = place::<i64>(Settings::new("int8").max_attempts(9)).await;
    let minute = Duration::from_secs(60);
    db.alter_queue("q", &Changes::new().lease(minute)).await.expect("altered");
    db.alter_queue("q", &Changes::new().max_batch(7)).await.expect("altered");
    for wrong in [Changes::new().max_attempts(1).max_batch(1025), Changes::new().lease(Duration::MAX).max_attempts(1)] {
        let error = db.alter_queue("q", &wrong).await.expect_err("out of bounds");
        assert!(error.to_string().contains("out of bounds"), "{error}");
    }
    let described = db.describe_queue("q").await.expect("described");
    assert_eq!((described.max_attempts, described.lease, described.max_batch), (9, minute, 7));
    assert!(db.alter_queue("nope", &Changes::new().max_batch(1)).await.expect_err("no queue").is_no_queue());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_has_read_the_messages_delays_no_change() {
    let Place { db, queue, sql, url } = place::<i64>(Settings::new("int8")).await;
    enqueued(&queue, 1).await;
    sql.batch_execute("begin; select count(*) from trunkline.messages('q')").await.expect("read");
    let changes = async {
        db.pause_queue("q").await.expect("paused");
        assert!(queue.take(1).await.expect("none is given").is_empty());
        db.resume_queue("q").await.expect("resumed");
        db.alter_queue("q", &Changes::new().max_batch(7)).await.expect("altered");
        db.limit_queue("q", &Limits::none().max_leased(7)).await.expect("limited");
    };
    timeout(SOON, changes).await.expect("no change waits");
    sql.batch_execute("select count(*) from trunkline.messages('q'); commit").await.expect("read");
    // Drops the queue's view. The next change of the queue creates it again.
    sql.batch_execute("drop view trunkline.messages_q").await.expect("dropped");
    db.pause_queue("q").await.expect("paused");
    let read = connect(&url).await.query("select * from trunkline.messages('q')", &[]).await.expect("read");
    assert_eq!(read.len(), 1);
}

/// Streams and workers use the lease time with which they began, even after the queue's lease time
/// has changed.
#[tokio::test(flavor = "multi_thread")]
async fn leases_last_as_long_as_streams_and_workers_count_on() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8").lease(Duration::from_secs(3600))).await;
    db.alter_queue("q", &Changes::new().lease(Duration::from_secs(5))).await.expect("altered");
    let left = || async {
        let text = "select extract(epoch from min(due_at) - now())::float8 from trunkline.messages('q')";
        sql.query_one(text, &[]).await.expect("read").get::<_, Option<f64>>(0).unwrap_or_default()
    };
    enqueued(&queue, 1).await;
    let mut stream = queue.consumer(Wait::default()).messages(1);
    let message: Message<i64> = stream.next().await.expect("it never ends").expect("leased");
    assert!(left().await > 1800.0, "the stream keeps messages for half an hour");
    queue.ack([&message]).await.expect("acknowledged");
    drop(stream);

    let (gate, opens) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (runs, ends) = (gate.clone(), opens.clone());
    let worker = Runs::start(Worker::new(queue.clone(), move |_| {
        let ends = ends.clone();
        runs.add_permits(1);
        async move { ends.acquire().await.map(drop) }
    }));
    enqueued(&queue, 1).await;
    eventually("it runs", || async { gate.available_permits() == 1 }).await;
    assert!(left().await > 1800.0, "the worker renews its leases after a third of an hour");
    opens.add_permits(1);
    drained(&queue).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_message_keeps_its_reason_if_fewer_attempts_are_allowed() {
    for (kind, key, lease) in [
        ("", "", "lease"),
        (", priorities => 3", "", "lease"),
        (", partitions => 1", ", key => n::text", "lease_partition"),
    ] {
        for n in [1, 3] {
            let sql = connect(&database().await).await;
            let text = format!(
                "select trunkline.create_queue('q', 'int8'{kind});
                 select trunkline.enqueue('q', n{key}) from generate_series(1, 3::int8) n;
                 create table got as select id, attempt, payload from trunkline.{lease}('q', 3);
                 select trunkline.retry('q', id, attempt, error => 'no such address') from got where payload = '1';
                 select trunkline.retry('q', id, attempt) from got where payload = '2';
                 update trunkline.queue_q set due_at = trunkline.clock();
                 select trunkline.alter_queue('q', max_attempts => 1)"
            );
            sql.batch_execute(&text).await.expect("failed");
            if lease == "lease_partition" {
                sql.batch_execute("update trunkline.lane_q set held_until = now()").await.expect("its worker has died");
            }
            let count = format!("select count(*) from trunkline.{lease}('q', {n})");
            assert_eq!(sql.query_one(&count, &[]).await.expect("asked").get::<_, i64>(0), 0, "{kind}: all are dead");
            let letters = "select payload, error from trunkline.dead_letters('q') order by payload";
            let letters = sql.query(letters, &[]).await.expect("read");
            let letters: Vec<(&str, &str)> = letters.iter().map(|row| (row.get(0), row.get(1))).collect();
            let expected = [("1", "no such address"), ("2", ""), ("3", "the lease of the last attempt expired")];
            assert_eq!(letters, expected, "{kind}");
        }
    }
}
