//! A shard is drained: no message is lost, none is moved, and none arrives late.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::try_join_all;
use tokio::time::timeout;
use trunkline::{Dequeue, Draft, Failure, Message, Wait, Worker, shards};

use super::{counts, numbers, three};
use crate::fixture::{SOON, connect, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn drain_waits_for_all_messages_and_then_closes_the_queue() {
    let three = three(numbers()).await;
    let part = three.queue.queues().swap_remove(1);
    let id = part.shard;
    part.enqueue_many(0..10).await.expect("enqueued");
    let delayed = part.enqueue(Draft::new(10).after(Duration::from_secs(3600))).await.expect("enqueued").id();
    let leased = part.lease(2).await.expect("leased");
    part.bury(&leased[..1], "never").await.expect("buried");
    // Opens a handle that represents another process. It has just checked for draining shards, and
    // will not check again for five seconds.
    let other = shards::Set::connect(&three.urls).await.expect("connected").queue::<i64>("q").await.expect("opened");
    assert_eq!(counts(try_join_all((0..3).map(|n| other.enqueue(n))).await.expect("enqueued")).len(), 3);

    let (shards, looks) = (three.shards.clone(), Arc::new(Mutex::new(Vec::new())));
    let looked = looks.clone();
    let draining =
        tokio::spawn(async move { shards.drain(id, |left| looked.lock().expect("no panic").push(left.sum())).await });
    let last = || looks.lock().expect("no panic").last().copied();
    eventually("it is under way", || async { last().is_some() }).await;
    let ids = try_join_all((0..30).map(|n| three.queue.enqueue(n))).await.expect("enqueued");
    assert!(!counts(ids).contains_key(&id), "nothing more is enqueued there");

    let mut consumer = three.queue.consumer(Wait::Adaptive);
    let mut got = Vec::new();
    while last().is_none_or(|left| left.messages != 2) {
        let some = consumer.lease(Dequeue::up_to(100).within(Duration::from_millis(20))).await.expect("leased");
        three.queue.ack(&some).await.expect("acknowledged");
        got.extend(some);
    }
    assert_eq!(counts(got)[&id], 8 + 1, "what was due there was consumed, the stranger's included");
    assert!(!draining.is_finished(), "the lease and the delayed message are waited for");
    part.reschedule(&[delayed], Duration::ZERO).await.expect("moved");
    part.ack(&leased[1..]).await.expect("acknowledged");
    assert_eq!(three.queue.consumer(Wait::Adaptive).take(1).await.expect("taken")[0].of.payload, 10);
    let left = timeout(SOON, draining).await.expect("in time").expect("no panic").expect("drained");
    assert!(left.is_drained());
    assert_eq!((left.sum().messages, left.sum().dead, left.queues[0].0.as_str()), (0, 1, "q"));

    // A process that has not noticed the drain yet is refused by that shard, and enqueues on
    // another one.
    let error = part.enqueue(1).await.expect_err("it is closed");
    assert!(error.is_drained() && !error.is_bad_payload() && !error.is_outcome_unknown(), "{error}");
    assert!(error.to_string().contains("trunkline shard resume"), "{error}");
    let sql = connect(&three.url(id).await).await;
    let refused = sql.execute("select trunkline.enqueue('q', 1::bigint)", &[]).await.expect_err("in SQL, too");
    assert_eq!(refused.as_db_error().and_then(|error| error.constraint()), Some("drained"));
    let ids = try_join_all((0..30).map(|n| other.enqueue(n))).await.expect("enqueued");
    assert!(!counts(ids).contains_key(&id));
    let ids = try_join_all((0..6).map(|n| other.enqueue_many([n, n]))).await.expect("enqueued");
    assert!(ids.iter().flatten().all(|one| one.shard != id));
    let state = three.shards.list().into_iter().find(|state| state.id == Some(id)).expect("it is listed");
    assert!(state.drains && state.down.is_none());

    // The shard can be resumed with all of its contents.
    three.shards.resume(id).await.expect("resumed");
    let ids = try_join_all((0..9).map(|n| three.queue.enqueue(n))).await.expect("enqueued");
    assert_eq!(counts(ids)[&id], 3);
    assert_eq!(part.replay_all().await.expect("replayed"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn under_load_a_drain_loses_nothing_and_nobody_errs() {
    let three = three(numbers()).await;
    let id = three.ids()[0];
    let done = Arc::new(Mutex::new(Vec::new()));
    let notes = done.clone();
    let worker = shards::Worker::new(three.queue.clone(), move |_, queue| {
        let notes = notes.clone();
        Worker::new(queue, move |message: Message<i64>| {
            notes.lock().expect("no panic").push(message.payload);
            async { Ok::<(), Failure>(()) }
        })
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let working = tokio::spawn(worker.run(async { stopped.await.unwrap_or(()) }));
    // Opens handles that represent separate processes, which have to notice the drain by
    // themselves.
    let (enough, mut producers) = (Arc::new(AtomicBool::new(false)), Vec::new());
    for nr in 0..4 {
        let enough = enough.clone();
        let queue =
            shards::Set::connect(&three.urls).await.expect("connected").queue::<i64>("q").await.expect("opened");
        producers.push(tokio::spawn(async move {
            let mut sent = Vec::new();
            for n in (nr * 1_000_000).. {
                if enough.load(Ordering::Relaxed) {
                    break;
                }
                queue.enqueue(n).await.expect("no error");
                sent.push(n);
            }
            sent
        }));
    }
    let seen = || done.lock().expect("no panic").len();
    eventually("it is under way", || async { seen() > 500 }).await;
    // Waits long, because producers may take five seconds to notice.
    let left = timeout(SOON * 4, three.shards.drain(id, |_| ())).await.expect("in time").expect("drained");
    assert!(left.is_drained());
    let drained = seen();
    eventually("it goes on behind the drain", || async { seen() > drained + 200 }).await;
    enough.store(true, Ordering::Relaxed);
    let mut sent = Vec::new();
    for producer in producers {
        sent.extend(producer.await.expect("no error"));
    }
    eventually("all are worked on", || async { seen() >= sent.len() }).await;
    stop.send(()).expect("it runs");
    assert_eq!(working.await.expect("no panic").expect("no error").lost, 0);
    let mut done = done.lock().expect("no panic").clone();
    done.sort_unstable();
    sent.sort_unstable();
    assert_eq!(done, sent, "each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn last_shard_cannot_drain_and_open_transactions_are_waited_for() {
    let three = three(numbers()).await;
    let ids = three.ids();
    for id in &ids[..2] {
        timeout(SOON, three.shards.drain(*id, |_| ())).await.expect("in time").expect("drained");
    }
    let error = three.shards.drain(ids[2], |_| ()).await.expect_err("the last one");
    assert!(error.to_string().contains("no other shard"), "{error}");
    three.shards.resume(ids[0]).await.expect("resumed");

    let part = three.queue.on(ids[2]).expect("open");
    part.enqueue(1).await.expect("enqueued");
    let transaction = part.db().begin().await.expect("begun");
    assert_eq!(part.take_in(&transaction, 1).await.expect("taken").len(), 1);
    let shards = three.shards.clone();
    let draining = tokio::spawn(async move { shards.drain(ids[2], |_| ()).await });
    eventually("it drains", || async { three.shards.list().iter().filter(|state| state.drains).count() == 2 }).await;
    transaction.rollback().await.expect("rolled back");
    assert!(!draining.is_finished(), "the message is back");
    assert_eq!(part.take(1).await.expect("taken").len(), 1);
    assert!(timeout(SOON, draining).await.expect("in time").expect("no panic").expect("drained").is_drained());
}
