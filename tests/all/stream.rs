//! Tests a consumer as a stream: a prefetched message belongs to no caller until it is returned.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::{FutureExt, Stream, StreamExt, stream::FusedStream};
use tokio::{sync::Notify, time::timeout};
use trunkline::{Message, Messages, Queue, Settings, Wait};

use crate::{
    cancelled::polled,
    chaos::Dice,
    fixture::{Place, SOON, counts, enqueued, eventually, ids, move_time, place},
};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns settings under which no lease expires, and one counted attempt would make a dead letter.
fn settings() -> Settings {
    Settings::new("int8").lease(HOUR).max_attempts(1)
}

async fn next(stream: &mut Messages<i64>) -> Message<i64> {
    timeout(SOON, stream.next()).await.expect("in time").expect("it never ends").expect("leased")
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_stream_returns_its_buffer_without_counting_attempts() {
    let Place { queue, db: _db, .. } = place(settings()).await;
    let all = enqueued(&queue, 10).await;
    let mut stream = queue.consumer(Wait::default()).messages(8);
    assert_eq!(counts(&queue).await, (10, 0), "nothing before the first poll");
    let mut got = Vec::new();
    for _ in 0..3 {
        got.push(next(&mut stream).await);
    }
    assert_eq!((ids(&got), stream.size_hint()), (all[..3].to_vec(), (5, None)));
    assert_eq!(counts(&queue).await, (2, 8), "no more than it may");
    drop(stream);
    eventually("the others are back", || async { counts(&queue).await == (7, 3) }).await;
    queue.ack(&got).await.expect("these are the caller's");
    let rest = queue.lease(10).await.expect("leased");
    assert_eq!(rest.iter().map(|message| message.id).collect::<BTreeSet<_>>(), all[3..].iter().copied().collect());
    assert_eq!(counts(&queue).await, (0, 7));
}

#[tokio::test]
async fn messages_buffered_for_half_a_lease_come_again() {
    let Place { queue, db: _db, .. } = place(settings()).await;
    let all = enqueued(&queue, 5).await;
    let mut stream = queue.consumer(Wait::Notify).messages(5);
    let mut got = vec![next(&mut stream).await];
    assert_eq!(counts(&queue).await, (0, 5));
    move_time(HOUR / 2).await;
    eventually("the others are back", || async { counts(&queue).await == (4, 1) }).await;
    for _ in 0..4 {
        got.push(next(&mut stream).await);
    }
    assert!(got[0].attempt == 1 && got[1..].iter().all(|message| message.attempt == 2), "{got:?}");
    assert_eq!(ids(&got).into_iter().collect::<BTreeSet<_>>(), all.into_iter().collect());
    queue.ack(&got).await.expect("all of them are held");
}

/// A caller that computes for long keeps the task from running that releases late messages.
#[tokio::test]
async fn late_messages_are_not_returned_to_a_caller_that_blocks_its_thread() {
    let lease = Duration::from_secs(2);
    let Place { queue, db: _db, .. } = place(Settings::new("int8").lease(lease)).await;
    let all = enqueued(&queue, 3).await;
    let mut stream = queue.consumer(Wait::Notify).messages(3);
    let mut got = vec![next(&mut stream).await];
    std::thread::sleep(lease / 2);
    assert!(stream.next().now_or_never().is_none(), "the rest is late");
    for _ in 0..2 {
        got.push(next(&mut stream).await);
    }
    assert_eq!(got.iter().map(|message| message.attempt).collect::<Vec<_>>(), [1, 2, 2]);
    assert_eq!(ids(&got), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_waits_for_messages_and_leases_only_when_polled() {
    let Place { queue, db: _db, .. } = place(settings()).await;
    let asleep = Arc::new(Notify::new());
    let sleeps = asleep.clone();
    let mut stream = queue.consumer(Wait::Notify).before_wait(move || sleeps.notify_one()).messages(2);
    let waiter = tokio::spawn(async move { (next(&mut stream).await, stream) });
    asleep.notified().await;
    let all = enqueued(&queue, 5).await;
    let (first, mut stream) = timeout(SOON, waiter).await.expect("it is woken").expect("no panic");
    let second = next(&mut stream).await;
    assert_eq!(counts(&queue).await, (3, 2), "two at a time, and the next when they are gone");
    let third = next(&mut stream).await;
    assert_eq!(ids(&[first, second, third]), all[..3]);
    assert_eq!(counts(&queue).await, (1, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn caller_that_goes_away_during_a_wait_loses_nothing() {
    let Place { queue, db: _db, .. } = place(settings()).await;
    let all = enqueued(&queue, 300).await;
    let mut stream = queue.consumer(Wait::default()).messages(7);
    let (mut dice, mut got) = (Dice(7), Vec::new());
    let receive = async {
        while got.len() < all.len() {
            match polled(1 + dice.below(2), stream.next()).await {
                Some(message) => got.push(message.expect("it never ends").expect("leased")),
                None => tokio::task::yield_now().await,
            }
        }
    };
    timeout(SOON, receive).await.expect("nothing is lost");
    assert_eq!(ids(&got), all, "in their order");
    assert!(got.iter().all(|message| message.attempt == 1));
    queue.ack(&got).await.expect("all of them are held");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_an_item_and_the_stream_goes_on() {
    let Place { queue, db, .. } = place::<i64>(settings()).await;
    let mut stream = queue.consumer(Wait::default()).messages(1);
    db.drop_queue("q").await.expect("dropped");
    for _ in 0..2 {
        let item = timeout(SOON, stream.next()).await.expect("in time").expect("it never ends");
        let error = item.expect_err("there is no queue");
        assert!(error.is_no_queue(), "{error}");
    }
    assert!(!stream.is_terminated());
    db.create_queue("q", &settings()).await.expect("created");
    let again: Queue<i64> = db.queue("q").await.expect("opened");
    let id = again.enqueue(7).await.expect("enqueued").id();
    let message = loop {
        match timeout(SOON, stream.next()).await.expect("in time").expect("it never ends") {
            Ok(message) => break message,
            Err(error) => assert!(error.is_no_queue(), "{error}"),
        }
    };
    assert_eq!((message.id, message.payload), (id, 7));
}

#[test]
fn it_goes_on_in_another_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (first, second) = (runtime(), runtime());
    let (place, mut stream) = first.block_on(async {
        let place = place::<i64>(settings()).await;
        let mut stream = place.queue.consumer(Wait::default()).messages(3);
        assert!(polled(1, stream.next()).await.is_none());
        (place, stream)
    });
    drop(first);
    second.block_on(async {
        let id = place.queue.enqueue(7).await.expect("enqueued").id();
        let message = loop {
            match timeout(SOON, stream.next()).await.expect("no call waits without an end").expect("it never ends") {
                Ok(message) => break message,
                Err(error) => assert!(!error.is_no_queue(), "{error}"),
            }
        };
        assert_eq!(message.id, id);
        drop(stream);
    });
}
