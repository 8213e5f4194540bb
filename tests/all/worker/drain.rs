//! A draining worker works until no message is due, and then ends.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::{Draft, Failure, Message, RetryPolicy, Settings, Worker};

use crate::fixture::{Place, SOON, place};

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
