//! A shard is removed while programs are running.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::try_join_all;
use tokio::time::timeout;
use trunkline::{Dequeue, Failure, Message, Wait, Worker, shards};

use super::{counts, numbers, three};
use crate::fixture::{SOON, eventually, superuser};

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_shard_leaves_what_runs_and_can_join_again() {
    let three = three(numbers()).await;
    let id = three.ids()[1];
    let url = three.url(id).await;
    let done = Arc::new(Mutex::new(Vec::new()));
    let notes = done.clone();
    let worker = shards::Worker::new(three.queue.clone(), move |shard, queue| {
        let notes = notes.clone();
        Worker::new(queue, move |message: Message<i64>| {
            notes.lock().expect("no panic").push((shard, message.payload));
            async { Ok::<(), Failure>(()) }
        })
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let working = tokio::spawn(worker.run(async { stopped.await.unwrap_or(()) }));
    let work = async |from: i64| {
        let ids = try_join_all((from..from + 30).map(|n| three.queue.enqueue(n))).await.expect("enqueued");
        let seen = |n: i64| done.lock().expect("no panic").iter().filter(|(_, payload)| *payload >= n).count();
        eventually("all are worked on", || async { seen(from) == 30 }).await;
        counts(ids)
    };
    assert_eq!(work(0).await.len(), 3);

    let part = three.queue.on(id).expect("open");
    eventually("all is acknowledged", async || part.stats().await.expect("counted").messages == 0).await;
    let error = three.shards.remove(id).await.expect_err("it is not drained");
    assert!(error.to_string().contains("it is not drained (0 messages are left there)"), "{error}");
    timeout(SOON, three.shards.drain_and_move(id, |_| ())).await.expect("in time").expect("drained");
    three.shards.remove(id).await.expect("removed");
    eventually("the queue has let go of it", || async { three.queue.queues().len() == 2 }).await;
    assert_eq!(three.shards.list().len(), 2);
    drop(part);
    // Checks that the process has closed its connections to that shard.
    let sql = superuser(&url).await;
    let connected =
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    eventually("no session is connected", || async {
        sql.query_one(connected, &[]).await.expect("counted").get::<_, i64>(0) == 0
    })
    .await;
    assert!(!work(100).await.contains_key(&id) && !working.is_finished());

    three.shards.resume(id).await.expect_err("it is none of them");
    three.shards.add(&url).await.expect("added");
    three.shards.resume(id).await.expect("resumed");
    eventually("it is open again", || async { three.queue.on(id).is_ok() }).await;
    assert_eq!(work(200).await.len(), 3);
    stop.send(()).expect("it runs");
    let summary = working.await.expect("no panic").expect("no error");
    assert_eq!((summary.done, summary.lost), (90, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn shard_is_abandoned_only_if_asked_and_the_last_stays() {
    let three = three(numbers()).await;
    let ids = three.ids();
    let mut consumer = three.queue.consumer(Wait::Adaptive);
    three.queue.on(ids[0]).expect("open").enqueue(7).await.expect("enqueued");
    let error = three.shards.remove(ids[0]).await.expect_err("it has a message");
    assert!(error.to_string().contains("1 messages") && error.to_string().contains("`abandon`"), "{error}");
    assert!(consumer.take(Dequeue::up_to(1).within(Duration::ZERO)).await.is_ok_and(|taken| taken.len() == 1));
    for id in &ids[..2] {
        three.shards.abandon(*id).expect("abandoned");
    }
    eventually("one is left", || async { three.queue.queues().len() == 1 }).await;
    let error = three.shards.abandon(ids[2]).expect_err("the last one");
    assert!(error.to_string().contains("it is the last one"), "{error}");
    three.queue.enqueue(8).await.expect("enqueued");
    let taken = consumer.take(5).await.expect("taken");
    assert_eq!((taken.len(), taken[0].shard, taken[0].of.payload), (1, ids[2], 8));
}
