//! Tests messages whose lease expired: they may have crashed their consumer, so each is leased
//! alone, and costs its neighbours no attempt.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::timeout;
use trunkline::{Message, Settings, Wait};

use crate::{
    fixture::{Place, SOON, enqueued, place, run_out},
    shards::{numbers, three},
};

/// A time that a call does not take if messages are due. A consumer that waits for a notification
/// polls only after a longer time.
const SHORT: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn expired_message_is_leased_alone_by_every_call() {
    for wait in [Wait::poll(), Wait::Notify, Wait::Adaptive] {
        for how in 0..5 {
            let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
            let mut consumer = queue.consumer(wait);
            enqueued(&queue, 4).await;
            assert_eq!(consumer.lease(10).await.expect("leased").len(), 4);
            run_out(&sql).await;
            for _ in 0..4 {
                let read = |offer: trunkline::Offer<i64>| offer.accept(Ok).expect("rows of this library");
                let call = async {
                    match how {
                        0 => queue.lease(10).await,
                        1 => consumer.lease(10).await,
                        2 => queue.offer_lease(10).await.map(read),
                        3 => consumer.offer_lease(10).await.map(read),
                        _ => {
                            consumer.ack_and_lease([] as [trunkline::Lease; 0], 10).await.map(|(messages, _)| messages)
                        }
                    }
                };
                let messages = timeout(SHORT, call).await.expect("in time").expect("leased");
                assert_eq!(attempts(&messages), [2], "{wait:?} {how}");
            }
            assert!(queue.lease(10).await.expect("leased").is_empty(), "{wait:?} {how}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_message_after_a_full_statement_is_leased_alone() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 1).await;
    assert_eq!(queue.lease(1).await.expect("leased").len(), 1);
    let many = 1 << 15; // the most messages of a statement
    enqueued(&queue, 1 << 15).await;
    run_out(&sql).await;
    let alone = queue.lease(many + 10).await.expect("leased");
    assert_eq!(attempts(&alone), [2]);
    // The messages before it go back, and lose no attempt.
    let (mut consumer, mut others) = (queue.consumer(Wait::poll()), Vec::new());
    while others.len() < many {
        others.extend(timeout(SOON, consumer.lease(many)).await.expect("put back").expect("leased"));
    }
    assert_eq!(others.len(), many);
    assert!(others.iter().all(|message| message.attempts() == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_message_of_a_shard_is_leased_alone() {
    let three = three(numbers()).await;
    for part in three.queue.queues() {
        part.enqueue_many(0..2_i64).await.expect("enqueued");
        assert_eq!(part.lease(2).await.expect("leased").len(), 2);
        trunkline::testing::shift(&part, Duration::from_secs(3600)).await.expect("shifted");
    }
    let mut consumer = three.queue.consumer(Wait::default());
    let mut found = timeout(SOON, consumer.lease(10)).await.expect("in time").expect("leased");
    assert_eq!(found.len(), 1, "{found:?}");
    while found.len() < 6 {
        found.extend(timeout(SOON, consumer.lease(10)).await.expect("in time").expect("leased"));
    }
    assert!(found.iter().all(|message| message.of.attempts() == 2), "{found:?}");
    assert_eq!(found.iter().map(|message| (message.shard, message.of.id)).collect::<BTreeSet<_>>().len(), 6);
}

/// A statement marks each row that it locks with its transaction.
#[tokio::test(flavor = "multi_thread")]
async fn lease_of_an_expired_message_locks_no_others() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8").max_batch(1)).await;
    enqueued(&queue, 100).await;
    assert_eq!(queue.lease(100).await.expect("leased").len(), 100);
    run_out(&sql).await;
    assert_eq!(attempts(&queue.lease(100).await.expect("leased")), [2]);
    let now: i64 = sql.query_one("select txid_current()", &[]).await.expect("read").get(0);
    assert_eq!(attempts(&queue.lease(100).await.expect("leased")), [2]);
    let locked = "select count(*) from trunkline.queue_q where xmax::text::int8 > $1";
    let locked: i64 = sql.query_one(locked, &[&now]).await.expect("read").get(0);
    assert!(locked < 10, "{locked} rows were locked");
    // The next messages come together again.
    queue.enqueue_many(0..10_i64).await.expect("enqueued");
    sql.batch_execute("delete from trunkline.queue_q where attempt > 0").await.expect("deleted");
    for _ in 0..2 {
        let messages = queue.lease(5).await.expect("leased");
        assert_eq!(attempts(&messages), [1; 5]);
    }
}

fn attempts(messages: &[Message<i64>]) -> Vec<u32> {
    messages.iter().map(Message::attempts).collect()
}
