//! A shard that is up, and does not answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, oneshot},
    time::timeout,
};
use trunkline::{Dequeue, Message, Wait, Worker, shards};

use super::{away::Servers, numbers, three};
use crate::fixture::{SOON, connect, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn shard_that_answers_no_dequeue_delays_no_other_shard() {
    let servers = Servers::start(2).await;
    let shards = shards::Set::connect(servers.urls()).await.expect("connected");
    let queue = shards.queue::<i64>("q").await.expect("opened");
    let other = servers.id(1).await;
    let locker = connect(&servers.urls()[0]).await;
    locker.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    let is_up = || async { shards.list().iter().all(|state| state.down.is_none()) };
    let mut consumer = queue.consumer(Wait::Adaptive);
    // Makes several calls: with each, the consumer's patience with the silent shard doubles, up to
    // half a minute.
    for _ in 0..5 {
        eventually("both count as up", is_up).await;
        let none = consumer.take(Dequeue::up_to(1).within(Duration::ZERO));
        assert_eq!(timeout(SOON, none).await.expect("in time").expect("taken").len(), 0);
    }
    eventually("both count as up", is_up).await;
    let consuming = tokio::spawn(async move { consumer.take(1).await });
    queue.on(other).expect("reached").enqueue(7).await.expect("enqueued");
    let taken = timeout(SOON, consuming).await.expect("in time").expect("no panic").expect("taken");
    assert_eq!((taken[0].shard, taken[0].of.payload), (other, 7));
    locker.batch_execute("rollback").await.expect("unlocked");
}

/// A worker that waits for the answer of one shard uses its other handlers for the other shards.
#[tokio::test(flavor = "multi_thread")]
async fn shard_that_answers_no_lease_keeps_one_handler() {
    let servers = Servers::start(2).await;
    let shards = shards::Set::connect(servers.urls()).await.expect("connected");
    let queue = shards.queue::<i64>("q").await.expect("opened");
    let (silent, other) = (servers.id(0).await, servers.id(1).await);
    let gate = Arc::new(Semaphore::new(0));
    let running = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let (opens, runs) = (gate.clone(), running.clone());
    let worker = shards::Worker::new(queue.clone(), move |shard, part| {
        let (gate, runs, at) = (opens.clone(), runs.clone(), usize::from(shard == other));
        Worker::new(part, move |_: Message<i64>| {
            let (gate, runs) = (gate.clone(), runs.clone());
            async move {
                runs[at].fetch_add(1, Ordering::SeqCst);
                gate.acquire().await.map(tokio::sync::SemaphorePermit::forget)
            }
        })
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let working = tokio::spawn(worker.concurrency(4).run(async move { drop(stopped.await) }));
    queue.on(silent).expect("reached").enqueue(0).await.expect("enqueued");
    eventually("the silent one is busy", || async { running[0].load(Ordering::SeqCst) == 1 }).await;
    let locker = connect(&servers.urls()[0]).await;
    locker.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    // the worker of the silent shard now waits for the lock, with its acknowledgement and its next
    // lease
    gate.add_permits(1);
    queue.on(other).expect("reached").enqueue_many(0..8).await.expect("enqueued");
    eventually("three handlers work for the other shard", || async { running[1].load(Ordering::SeqCst) == 3 }).await;
    locker.batch_execute("rollback").await.expect("unlocked");
    gate.add_permits(100); // the message may be delivered again, if its lease has expired
    eventually("all are done", || async { queue.stats().await.sum.messages == 0 }).await;
    stop.send(()).expect("it runs");
    working.await.expect("no panic").expect("no error");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_consumer_puts_a_direct_message_back() {
    let three = three(numbers()).await;
    let ids = three.ids();
    let mut clients = Vec::new();
    for id in &ids {
        clients.push(connect(&three.url(*id).await).await);
    }
    let watcher = connect(&three.url(ids[1]).await).await;
    let listed = async |client: &tokio_postgres::Client| -> i64 {
        client.query_one("select count(*) from trunkline.waiting", &[]).await.expect("counted").get(0)
    };
    for _ in 0..10 {
        let mut consumer = three.queue.consumer(Wait::Notify);
        let receiving = tokio::spawn(async move { consumer.receive_direct().await.map(drop) });
        for client in &clients {
            eventually("it waits on each shard", || async { listed(client).await == 1 }).await;
        }
        // Prevents the consumer from leaving the lists of the other shards, which it tries for up
        // to a second.
        for client in &clients[1..] {
            client.batch_execute("begin; lock table trunkline.waiting in share mode").await.expect("locked");
        }
        three.queue.on(ids[0]).expect("reached").send_direct(7).await.expect("handed over");
        let leaves =
            "select count(*) > 0 from pg_stat_activity where wait_event_type = 'Lock' and query like '%wait_no_more%'
                                                                    and datname = current_database()";
        let is_leaving = || async { watcher.query_one(leaves, &[]).await.expect("read").get(0) };
        eventually("it leaves the others, or has left", || async { receiving.is_finished() || is_leaving().await })
            .await;
        receiving.abort();
        let was_dropped = receiving.await.is_err();
        for client in &clients[1..] {
            client.batch_execute("rollback").await.expect("unlocked");
        }
        if was_dropped {
            eventually("the message is put back", || async { three.queue.stats().await.sum.due == 1 }).await;
            return;
        }
    }
    panic!("ten calls ended before they could be dropped");
}
