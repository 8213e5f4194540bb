//! Tests that the end of a lease wakes consumers that wait for a limit of leased messages.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Notify, time::timeout};
use trunkline::{Attempt, Db, Dequeue, Failure, Limits, Message, Settings, Wait, Worker};

use super::HOUR;
use crate::fixture::{Place, Runs, SOON, drained, enqueued, place, until_asleep};

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
