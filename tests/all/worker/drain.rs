//! A draining worker works until no message is due, and then ends.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::{Draft, Failure, Json, Limits, Message, RetryPolicy, Settings, Worker};

use crate::fixture::{Place, SOON, connect, enqueued, eventually, place};

#[tokio::test(flavor = "multi_thread")]
async fn drain_handles_due_follow_up_and_retried_messages() {
    let Place { queue, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue_many(0..300).await.expect("enqueued");
    queue.enqueue(Draft::new(-1).after(Duration::from_secs(3600))).await.expect("enqueued");
    let follow = queue.clone();
    let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
        let follow = follow.clone();
        async move {
            match message.payload {
                0..100 => follow.enqueue(message.payload + 1000).await.map(drop).map_err(Failure::from),
                100..200 if message.attempts() == 1 => Err(Failure::retry("once more")),
                200..300 => Err(Failure::dead("no use")),
                _ => Ok(()),
            }
        }
    });
    let worker = worker.concurrency(7).retry(RetryPolicy::fixed(Duration::ZERO));
    let summary = timeout(SOON, worker.drain()).await.expect("it ends").expect("it works");
    assert_eq!((summary.done, summary.retried, summary.dead), (300, 100, 100), "{summary:?}");
    let left = queue.stats().await.expect("counted");
    assert_eq!((left.messages, left.due, left.leased), (1, 0, 0), "what is due later is left: {left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_with_nothing_due_ends_at_once() {
    let Place { queue, .. } = place::<i64>(Settings::new("int8")).await;
    let worker = Worker::new(queue, |_message| async { Ok::<(), Failure>(()) });
    let summary = timeout(SOON, worker.drain()).await.expect("it ends").expect("it works");
    assert_eq!(summary.done, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_reaches_messages_behind_unreadable_ones() {
    let Place { queue, sql, .. } = place::<Json<u64>>(Settings::new("jsonb").max_attempts(1)).await;
    for payload in ["\"x\"", "\"y\"", "\"z\"", "1"] {
        sql.execute("select trunkline.enqueue('q', $1::text::jsonb)", &[&payload]).await.expect("enqueued");
    }
    let worker = Worker::new(queue, |_: Message<Json<u64>>| async { Ok::<(), Failure>(()) });
    let summary = timeout(SOON, worker.concurrency(1).drain()).await.expect("it ends").expect("it works");
    assert_eq!((summary.done, summary.dead), (1, 3), "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_waits_for_messages_that_limits_hold_back() {
    let of = || Settings::new("int8");
    for (settings, is_keyed) in [(of(), false), (of().priorities(3), false), (of().partitions(2), true)] {
        let Place { db, queue, .. } = place::<i64>(settings).await;
        let limits = Limits::none().per_second(20.0).burst(1).max_leased(2);
        db.limit_queue("q", &limits).await.expect("limited");
        let drafts = (0..5).map(|n| if is_keyed { Draft::new(n).key("a") } else { Draft::new(n) });
        queue.enqueue_many(drafts).await.expect("enqueued");
        let worker = Worker::new(queue.clone(), |_message| async { Ok::<(), Failure>(()) });
        let summary = timeout(SOON, worker.drain()).await.expect("it ends").expect("it works");
        assert_eq!(summary.done, 5, "{summary:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_waits_for_the_end_of_a_pause() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    db.pause_queue("q").await.expect("paused");
    let worker = Worker::new(queue.clone(), |_message| async { Ok::<(), Failure>(()) });
    let drain = tokio::spawn(worker.drain());
    let looked = "select exists (select from pg_stat_activity where datname = current_database() and query like '%do_look_q%' and state = 'idle' and pid <> pg_backend_pid())";
    eventually("the worker looks at the paused queue", || async {
        sql.query_one(looked, &[]).await.expect("activity is visible").get(0)
    })
    .await;
    db.resume_queue("q").await.expect("resumed");
    let summary = timeout(SOON, drain).await.expect("it ends").expect("no panic").expect("it works");
    assert_eq!(summary.done, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_waits_while_another_session_has_locked_the_limits() {
    let Place { db, queue, sql, url } = place::<i64>(Settings::new("int8").max_batch(1)).await;
    db.limit_queue("q", &Limits::none().max_leased(10)).await.expect("limited");
    enqueued(&queue, 3).await;
    let holder = connect(&url).await;
    holder.batch_execute("begin; select from trunkline.take('q')").await.expect("taken");
    let worker = Worker::new(queue.clone(), |_message| async { Ok::<(), Failure>(()) });
    let drain = tokio::spawn(worker.drain());
    let looked = "select exists (select from pg_stat_activity where datname = current_database() and query like '%do_look_q%' and state = 'idle' and pid <> pg_backend_pid())";
    eventually("the worker looks", || async { sql.query_one(looked, &[]).await.expect("activity is visible").get(0) })
        .await;
    holder.batch_execute("rollback").await.expect("back");
    let summary = timeout(SOON, drain).await.expect("it ends").expect("no panic").expect("it works");
    assert_eq!(summary.done, 3);
}
