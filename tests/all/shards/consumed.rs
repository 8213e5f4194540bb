//! Tests consumers of a queue on several shards, which receive messages from all shards, with every
//! guarantee and in every way to wait.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::try_join_all;
use tokio::time::timeout;
use trunkline::{Attempt, Dequeue, Failure, Message, Wait, Worker, postgres::Statement, shards};

use super::{counts, numbers, three};
use crate::fixture::{Runs, SOON, Seen, connect, drained, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn consumer_of_every_kind_gets_messages_of_any_shard() {
    let three = three(numbers()).await;
    for wait in [Wait::poll(), Wait::Notify, Wait::Adaptive] {
        let mut consumer = three.queue.consumer(wait);
        let waiter = tokio::spawn(async move {
            let mut got = Vec::new();
            while got.len() < 9 {
                got.extend(consumer.take(2).await?);
            }
            Ok::<_, trunkline::Error>(got)
        });
        for part in three.queue.queues() {
            for n in 0..3 {
                part.enqueue(n).await.expect("enqueued");
                tokio::task::yield_now().await;
            }
        }
        let got = timeout(SOON, waiter).await.expect("in time").expect("no panic").expect("taken");
        assert!(counts(got).values().all(|count| *count == 3), "{wait:?}");
    }
    assert_eq!(three.queue.stats().await.sum.messages, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn shard_with_a_backlog_holds_up_no_other_shard() {
    let three = three(numbers()).await;
    let parts = three.queue.queues();
    parts[0].enqueue_many(0..20_000).await.expect("enqueued");
    parts[1].enqueue_many(0..10).await.expect("enqueued");
    let mut consumer = three.queue.consumer(Wait::Adaptive);
    for n in [1, 2, 30] {
        let mut little = 0;
        for _ in 0..3 {
            let got = consumer.lease(n).await.expect("leased");
            assert_eq!(got.len(), n, "as many as were asked for are due");
            little += counts(got).get(&parts[1].shard).copied().unwrap_or_default();
        }
        assert!(little >= 1 && (n < 30 || little >= 5), "of {n}, {little} in three calls");
    }
    // Leases repeatedly. A shard that needs more than a second to lease this many messages counts
    // as silent; its messages go back, and a later call leases them.
    let mut all = 3 + 6 + 90;
    while all < 20_010 {
        all += timeout(SOON, consumer.lease(50_000)).await.expect("nothing is left out").expect("leased").len();
    }
    assert_eq!(all, 20_010, "and nothing comes twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_with_a_limit_ends_and_leaves_nothing_leased() {
    let three = three(numbers()).await;
    let mut consumer = three.queue.consumer(Wait::Adaptive);
    assert_eq!(consumer.lease(Dequeue::up_to(5).within(Duration::from_millis(50))).await.expect("nothing"), []);
    assert_eq!(consumer.take(Dequeue::up_to(5).within(Duration::ZERO)).await.expect("nothing"), []);
    assert_eq!(consumer.take(0).await.expect("nothing"), []);
    three.queue.enqueue(1).await.expect("enqueued");
    assert_eq!(consumer.take(Dequeue::up_to(5).within(Duration::ZERO)).await.expect("taken").len(), 1);
    // Drops a call while it waits. No message may stay leased afterwards.
    drop(tokio::time::timeout(Duration::from_millis(20), consumer.lease(5)).await);
    let ids = try_join_all((0..6).map(|n| three.queue.enqueue(n))).await.expect("enqueued");
    let mut got = 0; // statements of the dropped call may still lease messages, which then go back
    while got < ids.len() {
        got += timeout(SOON, consumer.lease(6)).await.expect("nothing stays leased").expect("leased").len();
    }
    assert_eq!(got, ids.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_take_gives_back_what_one_shard_has_returned() {
    let three = three(numbers()).await;
    for (n, part) in (0..).zip(three.queue.queues()) {
        part.enqueue_many(&[2 * n, 2 * n + 1]).await.expect("enqueued");
    }
    let locker = connect(&three.urls[1]).await;
    locker.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    let mut consumer = three.queue.consumer(Wait::poll());
    let dropped = timeout(Duration::from_millis(300), consumer.take(6)).await;
    assert!(dropped.is_err(), "a shard does not answer");
    locker.batch_execute("commit").await.expect("unlocked");
    let mut got = BTreeSet::new();
    while got.len() < 6 {
        let taken = timeout(SOON, consumer.take(6)).await.expect("nothing is lost").expect("taken");
        got.extend(taken.iter().map(|message| message.of.payload));
    }
}

static EFFECT: Statement<(i64,), u64> = Statement::new("insert into effect values ($1)");

#[tokio::test(flavor = "multi_thread")]
async fn work_in_the_shards_transaction_happens_exactly_once() {
    let three = three(numbers()).await;
    for url in &three.urls {
        connect(url).await.batch_execute("create table effect (n bigint)").await.expect("created");
    }
    try_join_all((0..60).map(|n| three.queue.enqueue(n))).await.expect("enqueued");
    let tries = Arc::new(AtomicUsize::new(0));
    let mut consumers = Vec::new();
    for _ in 0..3 {
        let (mut consumer, tries) = (three.queue.consumer(Wait::Adaptive).retry_after(Duration::ZERO), tries.clone());
        consumers.push(tokio::spawn(async move {
            loop {
                let done = consumer.take_with(7, |_, transaction, messages| {
                    let tries = tries.clone();
                    Box::pin(async move {
                        for message in &messages {
                            transaction.send(&EFFECT, (message.payload,)).await?;
                        }
                        // Makes some handlers fail halfway through the work.
                        match tries.fetch_add(1, Ordering::Relaxed) % 5 {
                            2 => Err(Failure::retry("not this time")),
                            _ => Ok(messages.len()),
                        }
                    })
                });
                done.await.expect("the database is there");
            }
        }));
    }
    eventually("all are taken", || async { three.queue.stats().await.sum.messages == 0 }).await;
    consumers.iter().for_each(tokio::task::JoinHandle::abort);
    let mut all = Vec::new();
    for url in &three.urls {
        let rows = connect(url).await.query("select n from effect", &[]).await.expect("read");
        assert!(!rows.is_empty(), "each shard has effects of its own messages");
        all.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
    }
    all.sort_unstable();
    assert_eq!(all, (0..60).collect::<Vec<_>>());
    assert!(tries.load(Ordering::Relaxed) > 9, "some failed");

    // Does manually what `take_with` does: takes in a transaction on the server of a shard with a
    // due message.
    three.queue.enqueue(99).await.expect("enqueued");
    let mut consumer = three.queue.consumer(Wait::Adaptive);
    let shard = consumer.ready().await.expect("due");
    let transaction = three.shards.db(shard).expect("reached").begin().await.expect("begun");
    let taken = three.queue.on(shard).expect("open").take_in(&transaction, 5).await.expect("taken");
    assert_eq!(taken.iter().map(|message| message.payload).collect::<Vec<_>>(), [99]);
    transaction.commit().await.expect("committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_settles_each_message_on_the_shard_it_came_from() {
    let three = three(numbers().max_attempts(2)).await;
    for part in three.queue.queues() {
        part.enqueue_many(0..200).await.expect("enqueued");
    }
    let (seen, on) = (Seen::default(), Arc::new(std::sync::Mutex::new(BTreeSet::<shards::Id>::new())));
    let (count, at) = (seen.clone(), on.clone());
    let worker = shards::Worker::new(three.queue.clone(), move |shard, queue| {
        let (count, at) = (count.clone(), at.clone());
        Worker::with_attempt(queue, move |message: Message<i64>, attempt: Attempt<i64>| {
            at.lock().expect("no panic").insert(shard);
            count.add(&message);
            async move {
                match message.payload {
                    7 => Err(Failure::dead("never")),
                    8 => Ok(attempt.transaction().await?.commit().await?), // on the message's server
                    _ => Ok(()),
                }
            }
        })
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let working = tokio::spawn(worker.concurrency(5).run(async { stopped.await.unwrap_or(()) }));
    for part in three.queue.queues() {
        drained(&part).await;
    }
    stop.send(()).expect("it runs");
    let summary = timeout(SOON, working).await.expect("in time").expect("no panic").expect("no error");
    assert_eq!((summary.done, summary.dead, summary.lost), (3 * 199, 3, 0), "{summary:?}");
    assert!(seen.all().values().all(|times| *times == 3) && on.lock().expect("no panic").len() == 3);
    let letters = three.queue.dead_letters(None, 10).await.expect("read");
    assert_eq!(counts(letters).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_reports_a_queue_dropped_on_one_shard() {
    let three = three(numbers()).await;
    let part = three.queue.queues().swap_remove(1);
    let worker =
        shards::Worker::new(three.queue.clone(), |_, queue| Worker::new(queue, |_| async { Ok::<(), Failure>(()) }));
    let working = tokio::spawn(worker.run(std::future::pending()));
    part.db().drop_queue("q").await.expect("dropped");
    let error = timeout(SOON, working).await.expect("in time").expect("no panic").expect_err("an error");
    assert!(error.is_no_queue(), "{error}");
    // A worker for one shard still works as for a single queue.
    let rest = three.queue.queues().swap_remove(0);
    let one = Runs::start(Worker::new(rest.of.clone(), |_| async { Ok::<(), Failure>(()) }));
    rest.enqueue(1).await.expect("enqueued");
    drained(&rest).await;
    assert_eq!(one.stop().await.done, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_loses_its_connection_runs_once() {
    let three = three(numbers()).await;
    three.queue.enqueue(1).await.expect("enqueued");
    let (mut consumer, ran) = (three.queue.consumer(Wait::Notify), AtomicUsize::new(0));
    let end = Statement::<(), (bool,)>::new("select pg_terminate_backend(pg_backend_pid())");
    let work = consumer.take_with(1, |_, transaction, _| {
        ran.fetch_add(1, Ordering::Relaxed);
        let end = end.clone();
        Box::pin(async move {
            transaction.run(&end, ()).await?;
            Ok::<(), trunkline::Error>(())
        })
    });
    let error = timeout(SOON, work).await.expect("in time").expect_err("the session ended");
    assert!(error.is_closed() && !error.is_outcome_unknown() && ran.load(Ordering::Relaxed) == 1, "{error}");
}
