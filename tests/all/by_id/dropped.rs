//! Callers drop their calls: the statement still runs, and wakes the waiting consumer.

use std::sync::Arc;

use tokio::{sync::Notify, task::JoinHandle, time::timeout};
use trunkline::{Draft, Message, Queue, Result, Settings, Wait};

use super::{HOUR, NOW};
use crate::fixture::{Place, SOON, dropped_under_way, enqueued, place};

/// Starts a consumer that takes one message, and returns once it is listening. Without a
/// notification the consumer would not probe the queue again for half a minute.
async fn sleeper(queue: &Queue<i64>) -> JoinHandle<Result<Vec<Message<i64>>>> {
    let asleep = Arc::new(Notify::new());
    let sleeps = asleep.clone();
    let mut consumer = queue.consumer(Wait::Notify).before_wait(move || sleeps.notify_one());
    let waiter = tokio::spawn(async move { consumer.take(1).await });
    asleep.notified().await;
    waiter
}

async fn is_woken(sleeper: JoinHandle<Result<Vec<Message<i64>>>>, id: i64) {
    let taken = timeout(SOON, sleeper).await.expect("it is woken").expect("no panic").expect("taken");
    assert_eq!(taken.iter().map(|message| message.id).collect::<Vec<_>>(), [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_was_moved_wakes_who_waits() {
    let Place { url, queue, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    let id = queue.enqueue(Draft::new(7).after(HOUR)).await.expect("enqueued").id();
    let sleeper = sleeper(&queue).await;
    dropped_under_way(&url, &sql, queue.reschedule(&[id], NOW)).await;
    is_woken(sleeper, id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_that_were_replayed_wake_who_waits() {
    let Place { url, queue, sql, db: _db } = place(Settings::new("int8")).await;
    let ids = enqueued(&queue, 2).await;
    let leased = queue.lease(2).await.expect("leased");
    queue.bury(&leased, "dead").await.expect("held");
    let one = sleeper(&queue).await;
    dropped_under_way(&url, &sql, queue.replay(&ids[1..])).await;
    is_woken(one, ids[1]).await;
    let other = sleeper(&queue).await;
    dropped_under_way(&url, &sql, queue.replay_all()).await;
    is_woken(other, ids[0]).await;
}
