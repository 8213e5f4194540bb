//! One contract for every combination of wait, guarantee, batch size and way to enqueue.

use std::{
    convert::Infallible,
    time::{Duration, SystemTime},
};

use futures_util::future::join_all;
use tokio::{task::JoinSet, time::timeout};
use tokio_postgres::Client;
use trunkline::{Consumer, Db, Draft, Message, Queue, Settings, Wait};

use crate::fixture::{Ids, Place, SOON, connect, database, place, until_asleep};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Guarantee {
    AtMostOnce,
    AtLeastOnce,
    ExactlyOnceIn,
    ExactlyOnce,
}

pub const GUARANTEES: [Guarantee; 4] =
    [Guarantee::AtMostOnce, Guarantee::AtLeastOnce, Guarantee::ExactlyOnceIn, Guarantee::ExactlyOnce];
pub const WAITS: [Wait; 3] = [Wait::Poll(Duration::from_millis(10)), Wait::Notify, Wait::Adaptive];

/// Waits for messages and completes them as the guarantee requires.
pub async fn next(consumer: &mut Consumer<i64>, guarantee: Guarantee, n: usize, sql: &mut Client) -> Vec<Message<i64>> {
    match guarantee {
        Guarantee::AtMostOnce => consumer.take(n).await.expect("taken"),
        Guarantee::AtLeastOnce => {
            let messages = consumer.lease(n).await.expect("leased");
            consumer.queue().ack(&messages).await.expect("acknowledged");
            messages
        }
        Guarantee::ExactlyOnceIn => {
            let transaction = sql.transaction().await.expect("begun");
            let messages = consumer.take_in(&transaction, n).await.expect("taken");
            transaction.commit().await.expect("committed");
            messages
        }
        Guarantee::ExactlyOnce => consumer
            .take_with(n, |_, messages| Box::pin(async move { Ok::<_, Infallible>(messages) }))
            .await
            .expect("worked"),
    }
}

/// Enqueues, and returns the ids in the order of the payloads.
async fn enqueue(queue: &Queue<i64>, coalesced: bool, payloads: &[i64], sql: &mut Client) -> Vec<i64> {
    if coalesced {
        return join_all(
            payloads.iter().map(|payload| async move { queue.enqueue(payload).await.expect("enqueued").id() }),
        )
        .await;
    }
    let (many, inside) = payloads.split_at(payloads.len() / 2);
    let mut ids = queue.enqueue_many(many).await.expect("enqueued").ids();
    let transaction = sql.transaction().await.expect("begun");
    ids.extend(queue.enqueue_many_in(&transaction, inside).await.expect("enqueued").ids());
    transaction.commit().await.expect("committed");
    ids
}

fn pairs(messages: &[Message<i64>]) -> Vec<(i64, i64)> {
    messages.iter().map(|message| (message.id, message.payload)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_consume_keeps_the_contract() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    let mut combinations = Vec::new();
    for wait in WAITS {
        for guarantee in GUARANTEES {
            for n in [1, 7] {
                for coalesced in [false, true] {
                    combinations.push((wait, guarantee, n, coalesced));
                }
            }
        }
    }
    let mut running = JoinSet::new();
    for (nr, combination) in combinations.into_iter().enumerate() {
        if running.len() == 8 {
            running.join_next().await.expect("eight are running").expect("the contract is kept");
        }
        let (db, sql, other) = (db.clone(), connect(&url).await, connect(&url).await);
        running.spawn(async move {
            let name = format!("q{nr}");
            db.create_queue(&name, &Settings::new("int8").max_batch(8)).await.expect("created");
            let kept = keep_contract(db.queue(&name).await.expect("opened"), combination, sql, other);
            timeout(4 * SOON, Box::pin(kept)).await.unwrap_or_else(|_| panic!("{combination:?} hangs"));
        });
    }
    while let Some(kept) = running.join_next().await {
        kept.expect("the contract is kept");
    }
}

async fn keep_contract(
    queue: Queue<i64>,
    combination: (Wait, Guarantee, usize, bool),
    mut sql: Client,
    mut other: Client,
) {
    let (wait, guarantee, n, coalesced) = combination;
    let mut consumer = queue.consumer(wait);

    // An empty list and a request for zero messages do nothing.
    let none: [i64; 0] = [];
    assert_eq!(queue.enqueue_many(&none).await.expect("no-op").ids(), none);
    assert_eq!(enqueue(&queue, coalesced, &none, &mut other).await, none);
    assert_eq!(queue.take(n).await.expect("asked"), []);
    assert_eq!(queue.lease(n).await.expect("asked"), []);
    assert_eq!(queue.stats().await.expect("counted").rows, 0);

    // Checks that messages arrive first in, first out, in batches of exactly `n`, and that splits
    // keep the ids and the order.
    let payloads: Vec<i64> = (0..20).collect();
    let ids = enqueue(&queue, coalesced, &payloads, &mut other).await;
    let lines: Vec<(i64, i64)> =
        queue.peek(100).await.expect("peeked").iter().map(|message| (message.id, message.payload)).collect();
    let mut by_payload = lines.clone();
    by_payload.sort_unstable_by_key(|(_, payload)| *payload);
    assert_eq!(by_payload, ids.iter().copied().zip(payloads.iter().copied()).collect::<Vec<_>>(), "{combination:?}");
    if !coalesced {
        assert_eq!(lines, by_payload, "{combination:?}: what one caller enqueued one after another stays in order");
    }
    for line in lines.chunks(n) {
        let messages = next(&mut consumer, guarantee, n, &mut sql).await;
        assert_eq!(pairs(&messages), line, "{combination:?}");
    }

    // Enqueues one message while the consumer begins to wait, and another one much later.
    let (messages, ids) =
        tokio::join!(next(&mut consumer, guarantee, n, &mut sql), enqueue(&queue, coalesced, &[20], &mut other));
    assert_eq!(pairs(&messages), [(ids[0], 20)], "{combination:?}");
    {
        let mut waiter = std::pin::pin!(next(&mut consumer, guarantee, n, &mut sql));
        assert!(timeout(Duration::from_millis(120), &mut waiter).await.is_err(), "{combination:?}: nothing is there");
        let ids = enqueue(&queue, coalesced, &[21], &mut other).await;
        let messages = timeout(SOON, waiter).await.unwrap_or_else(|_| panic!("{combination:?}: not woken"));
        assert_eq!(pairs(&messages), [(ids[0], 21)], "{combination:?}");
    }

    // A delayed message does not arrive early, and wakes a consumer that is already waiting.
    let delay = Duration::from_millis(150);
    let (messages, id) = tokio::join!(
        async { timeout(SOON, next(&mut consumer, guarantee, n, &mut sql)).await.expect("woken when it is due") },
        async {
            match coalesced {
                true => queue.enqueue(Draft::new(22).after(delay)).await.expect("enqueued").id(),
                false => queue.enqueue_many([Draft::new(22).after(delay)]).await.expect("enqueued").ids()[0],
            }
        }
    );
    let now: SystemTime = sql.query_one("select clock_timestamp()", &[]).await.expect("a clock").get(0);
    assert_eq!(pairs(&messages), [(id, 22)], "{combination:?}");
    let age = now.duration_since(messages[0].enqueued_at).expect("enqueued before");
    // `enqueued_at` is read a moment before `due_at`, so the age cannot be less than the delay.
    assert!(age >= delay, "{combination:?}: handed out after {age:?}");
    assert_eq!(queue.stats().await.expect("counted").rows, 0, "{combination:?}");
}

/// The consumer would sleep for half a minute. So a message that arrives immediately must have
/// arrived by notification.
#[tokio::test(flavor = "multi_thread")]
async fn a_sleeping_consumer_is_woken_from_anywhere() {
    for wait in [Wait::Notify, Wait::Adaptive] {
        let Place { url, db: _db, queue, sql } = place::<i64>(Settings::new("int8")).await;
        let elsewhere = Db::connect(&url).await.expect("connected").queue::<i64>("q").await.expect("opened");
        let mut plain = connect(&url).await;
        for source in ["plain SQL", "another process, direct", "another process, coalesced", "a commit"] {
            let mut consumer = queue.consumer(wait);
            let waiter = tokio::spawn(async move { consumer.take(3).await });
            until_asleep(&sql).await;
            match source {
                "plain SQL" => {
                    plain.batch_execute("select trunkline.enqueue('q', 7::bigint)").await.expect("enqueued");
                }
                "another process, direct" => drop(elsewhere.enqueue_many(&[7]).await.expect("enqueued")),
                "another process, coalesced" => drop(elsewhere.enqueue(7).await.expect("enqueued")),
                _ => {
                    let transaction = plain.transaction().await.expect("begun");
                    queue.enqueue_in(&transaction, 8).await.expect("enqueued");
                    transaction.rollback().await.expect("rolled back");
                    let transaction = plain.transaction().await.expect("begun");
                    queue.enqueue_in(&transaction, 7).await.expect("enqueued");
                    assert_eq!(queue.take(1).await.expect("asked"), [], "not committed yet");
                    assert_eq!(queue.stats().await.expect("counted").rows, 0, "not committed yet");
                    assert!(!waiter.is_finished(), "not committed yet");
                    transaction.commit().await.expect("committed");
                }
            }
            // The time is measured from the answer, because the enqueue itself may be delayed on a
            // busy machine.
            let woken = timeout(SOON, waiter).await.unwrap_or_else(|_| panic!("{wait:?}: {source} did not wake"));
            let messages = woken.expect("no panic");
            let payloads: Vec<i64> = messages.expect("taken").iter().map(|message| message.payload).collect();
            assert_eq!(payloads, [7], "{wait:?}: {source}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_leaves_everything_as_it_was() {
    let Place { queue, mut sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let ids = queue.enqueue_many(&(0..10).collect::<Vec<_>>()).await.expect("enqueued").ids();
    let transaction = sql.transaction().await.expect("begun");
    let taken = queue.take_in(&transaction, 3).await.expect("taken");
    assert_eq!(pairs(&taken), [(ids[0], 0), (ids[1], 1), (ids[2], 2)]);
    let rest = queue.take(1).await.expect("taken");
    assert_eq!(pairs(&rest), [(ids[3], 3)], "the rest of the batch is there for all consumers");
    transaction.rollback().await.expect("rolled back");
    let messages = queue.lease(10).await.expect("leased");
    let left: Vec<(i64, i64)> = ids.iter().copied().zip(0..).filter(|(_, payload)| *payload != 3).collect();
    assert_eq!(pairs(&messages), left);
    assert!(messages.iter().all(|message| message.attempt == 1), "a rollback charges nothing");
}
