//! Messages are offered to a caller that may be gone. Accepted messages belong to the caller, and
//! all other messages return to the queue.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{sync::Notify, task::JoinSet, time::timeout};
use trunkline::{Dequeue, Message, Offer, Settings, Wait};

use crate::{
    cancelled::polled,
    chaos::Dice,
    fixture::{Place, SOON, counts, dropped_under_way, enqueued, eventually, ids, place},
};

/// Returns settings under which no lease expires, and one counted attempt would make a dead letter.
fn settings() -> Settings {
    Settings::new("int8").lease(Duration::from_secs(3600)).max_attempts(1)
}

fn accepted(offer: Offer<i64>) -> Vec<Message<i64>> {
    offer.accept(Ok).expect("rows of this library")
}

#[tokio::test(flavor = "multi_thread")]
async fn unaccepted_offer_goes_back_without_counting_an_attempt() {
    let Place { queue, db: _db, .. } = place(settings().max_batch(4)).await;
    let all = enqueued(&queue, 10).await;
    let mut consumer = queue.consumer(Wait::default());
    for how in 0..10 {
        let offer = match how % 5 {
            0 => queue.offer_take(7).await,
            1 => queue.offer_lease(7).await,
            2 => queue.offer_lease(Dequeue::up_to(7).lease_for(Duration::from_secs(60))).await,
            3 => consumer.offer_take(7).await,
            _ => consumer.offer_lease(Dequeue::up_to(7).within(SOON)).await,
        };
        let offer = offer.expect("dequeued");
        assert!(offer.len() == 7 && !offer.is_empty(), "{how}: {offer:?}");
        drop(offer);
        eventually("all are back", || async { counts(&queue).await == (10, 0) }).await;
    }
    let messages = queue.take(10).await.expect("taken");
    assert!(messages.iter().all(|message| message.attempts() <= 1), "{messages:?}");
    assert_eq!(ids(&messages).into_iter().collect::<BTreeSet<_>>(), all.into_iter().collect(), "each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn offer_declined_in_accept_if_counts_no_attempt() {
    let Place { queue, db: _db, .. } = place(settings().max_batch(4)).await;
    let all = enqueued(&queue, 10).await;
    for how in 0..4 {
        let offer = if how % 2 == 0 { queue.offer_take(7).await } else { queue.offer_lease(7).await };
        // Makes a payload invalid in some rounds. The messages then go back to the queue, and are
        // never passed to `confirm`.
        let read = |number: i64| if how < 2 { Ok(number) } else { Err("interrupted".into()) };
        let made = offer.expect("dequeued").accept_if(read, |messages| {
            assert_eq!(messages.len(), if how < 2 { 7 } else { 0 });
            None::<()>
        });
        assert_eq!(made.expect("rows of this library"), None);
        eventually("all are back", || async { counts(&queue).await == (10, 0) }).await;
    }
    assert_eq!(queue.stats().await.expect("counted").dead, 0);
    let offer = queue.offer_lease(10).await.expect("leased");
    let made = offer.accept_if(Ok, |messages| Some(ids(&messages))).expect("rows of this library");
    assert_eq!(made.expect("made").into_iter().collect::<BTreeSet<_>>(), all.into_iter().collect(), "each once");
    assert_eq!(counts(&queue).await, (0, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_messages_come_in_queue_order_up_to_the_limit() {
    let Place { queue, db: _db, .. } = place(settings().max_batch(16)).await;
    let all = enqueued(&queue, 100).await;
    let leased = accepted(queue.offer_lease(30).await.expect("leased"));
    assert_eq!(ids(&leased), all[..30]);
    assert_eq!(counts(&queue).await, (70, 30));
    queue.ack(&leased).await.expect("these are the caller's");
    let mut consumer = queue.consumer(Wait::default());
    let taken = accepted(consumer.offer_take(30).await.expect("taken"));
    assert_eq!(ids(&taken), all[30..60]);
    let rest = queue.offer_take(1000).await.expect("taken");
    assert_eq!(rest.len(), 40, "fewer where fewer are due");
    assert_eq!(ids(&accepted(rest)), all[60..]);
    assert_eq!(counts(&queue).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_offer_may_be_of_several_statements() {
    const MANY: i64 = 40_000; // more than one statement returns, which is 32,768
    let Place { queue, db: _db, .. } = place(settings()).await;
    let all = enqueued(&queue, MANY).await;
    let leased = accepted(queue.offer_lease(MANY as usize).await.expect("leased"));
    assert_eq!(ids(&leased), all);
    queue.release(&leased).await.expect("released");
    let offer = queue.offer_take(MANY as usize).await.expect("taken");
    assert_eq!(offer.len(), MANY as usize);
    drop(offer);
    eventually("all are back", || async { counts(&queue).await == (MANY as u64, 0) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn offer_waits_for_a_message_up_to_its_limit() {
    let Place { queue, db: _db, .. } = place(settings()).await;
    let asleep = Arc::new(Notify::new());
    let sleeps = asleep.clone();
    let mut consumer = queue.consumer(Wait::Notify).before_wait(move || sleeps.notify_one());
    assert!(consumer.offer_take(0).await.expect("at once").is_empty());
    for longest in [Duration::ZERO, Duration::from_millis(5)] {
        let offer = timeout(SOON, consumer.offer_lease(Dequeue::up_to(1).within(longest)))
            .await
            .expect("in time")
            .expect("asked");
        assert!(offer.is_empty());
    }
    for longest in [None, Some(2 * SOON), Some(Duration::MAX)] {
        asleep.notified().now_or_never(); // removes the notification of an earlier wait
        let waiter = tokio::spawn(async move {
            (consumer.offer_lease(longest.into_iter().fold(Dequeue::up_to(5), Dequeue::within)).await, consumer)
        });
        asleep.notified().await;
        queue.enqueue(1).await.expect("enqueued");
        let (offer, back) = timeout(SOON, waiter).await.expect("it is woken").expect("no panic");
        consumer = back;
        let messages = accepted(offer.expect("leased"));
        assert_eq!(messages.len(), 1);
        queue.ack(&messages).await.expect("acknowledged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_for_a_dropped_call_go_back() {
    let Place { url, queue, sql, db: _db } = place(settings()).await;
    enqueued(&queue, 10).await;
    let mut consumer = queue.consumer(Wait::default());
    dropped_under_way(&url, &sql, queue.offer_take(10)).await;
    eventually("all are back", || async { counts(&queue).await == (10, 0) }).await;
    dropped_under_way(&url, &sql, consumer.offer_lease(10)).await;
    eventually("all are back", || async { counts(&queue).await == (10, 0) }).await;
}

/// No lease expires here, so a message is delivered again only if it was given back.
#[tokio::test(flavor = "multi_thread")]
async fn callers_dropped_at_any_poll_lose_and_double_nothing() {
    const COUNT: i64 = 2000;
    let Place { queue, db: _db, .. } = place(settings().max_batch(16)).await;
    enqueued(&queue, COUNT).await;
    let received = Arc::new(Mutex::new(BTreeSet::new()));
    let mut callers = JoinSet::new();
    for caller in 0..24 {
        let (queue, received, mut dice) = (queue.clone(), received.clone(), Dice(caller));
        callers.spawn(async move {
            let mut consumer = queue.consumer(Wait::default());
            let soon = |n: usize| Dequeue::up_to(n).within(Duration::from_millis(2));
            while received.lock().expect("no panic").len() < COUNT as usize {
                let (n, polls) = (1 + dice.below(20), dice.below(5));
                let offer = match dice.below(4) {
                    0 => polled(polls, queue.offer_take(n)).await,
                    1 => polled(polls, queue.offer_lease(n)).await,
                    2 => polled(polls, consumer.offer_take(soon(n))).await,
                    _ => polled(polls, consumer.offer_lease(soon(n))).await,
                };
                let Some(offer) = offer else { continue };
                let offer = offer.expect("dequeued");
                assert!(offer.len() <= n, "{} of {n}", offer.len());
                if dice.below(3) == 0 {
                    continue; // the offer is dropped
                }
                let messages = accepted(offer);
                for message in &messages {
                    assert!(received.lock().expect("no panic").insert(message.payload), "twice: {message:?}");
                }
                let leased: Vec<_> = messages.iter().filter(|message| message.attempt > 0).collect();
                // Ignores a lost lease: a released message has an attempt number but no lease, and
                // a take returns that number.
                let ended = queue.ack(leased).await;
                assert!(ended.is_ok() || ended.is_err_and(|error| error.is_lease_lost()));
            }
        });
    }
    let all_end = async { while callers.join_next().await.transpose().expect("no panic").is_some() {} };
    timeout(4 * SOON, all_end).await.expect("nothing is lost");
    eventually("nothing is left", || async { counts(&queue).await == (0, 0) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payload_refused_by_the_reader_fails_its_own_attempt_only() {
    let Place { queue, db: _db, .. } = place(settings()).await;
    let all = enqueued(&queue, 5).await;
    for takes in [false, true] {
        let offer = if takes { queue.offer_take(5).await } else { queue.offer_lease(5).await };
        let read = |number: i64| if number == 2 && !takes { Err("two is no number".into()) } else { Ok(number * 10) };
        let messages = offer.expect("dequeued").accept(read).expect("rows of this library");
        let read: Vec<(i64, i64)> = messages.iter().map(|message| (message.id, message.payload)).collect();
        if takes {
            assert!(read.is_empty(), "{read:?}");
            continue;
        }
        assert_eq!(read, [(all[0], 0), (all[1], 10), (all[3], 30), (all[4], 40)]);
        queue.ack(&messages).await.expect("the others are the caller's");
        eventually("it is dead", || async { queue.stats().await.expect("counted").dead == 1 }).await;
    }
    let letters = queue.dead_letters(0, 10).await.expect("read");
    assert!(letters[0].id == all[2] && letters[0].error.contains("two is no number"), "{letters:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn offer_dropped_without_a_runtime_returns_with_next_dequeue() {
    let Place { queue, db: _db, .. } = place(settings()).await;
    let all = enqueued(&queue, 10).await;
    for takes in [false, true] {
        let offer = if takes { queue.offer_take(6).await } else { queue.offer_lease(6).await };
        let offer = offer.expect("dequeued");
        thread::spawn(move || drop(offer)).join().expect("no panic");
        let asks = async {
            let mut rest: Vec<Message<i64>> = Vec::new();
            while rest.len() < 10 {
                rest.extend(queue.lease(10).await.expect("leased"));
            }
            rest
        };
        let rest = timeout(SOON, asks).await.expect("all come");
        assert_eq!(ids(&rest).into_iter().collect::<BTreeSet<_>>(), all.iter().copied().collect());
        queue.release(&rest).await.expect("released");
    }
    assert_eq!(counts(&queue).await, (10, 0));
}
