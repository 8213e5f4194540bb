//! Tests messages of one shard whose leases expired, beside shards with other messages or none.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::Wait;

use super::{counts, numbers, three};
use crate::fixture::{SOON, connect};

#[tokio::test(flavor = "multi_thread")]
async fn expired_messages_of_a_shard_hold_up_no_other_shard() {
    let three = three(numbers()).await;
    let parts = three.queue.queues();
    let crashed = parts[0].shard;
    parts[0].enqueue_many(0..40_i64).await.expect("enqueued");
    assert_eq!(parts[0].lease(40).await.expect("leased").len(), 40);
    trunkline::testing::shift(&parts[0], Duration::from_secs(3600)).await.expect("shifted");
    for part in &parts[1..] {
        part.enqueue_many(0..400_i64).await.expect("enqueued");
    }
    let mut consumer = three.queue.consumer(Wait::Adaptive);
    let mut got = Vec::new();
    for nr in 0..9 {
        let leased = timeout(SOON, consumer.lease(30)).await.expect("in time").expect("leased");
        let is_expired = leased.iter().any(|message| message.shard == crashed);
        assert!(!is_expired || leased.len() == 1, "an expired message is alone in call {nr}: {}", leased.len());
        got.extend(leased);
    }
    let got = counts(got);
    assert!(got[&crashed] >= 2, "the expired messages have their turns: {got:?}");
    assert!(parts[1..].iter().all(|part| got.get(&part.shard).is_some_and(|count| *count >= 45)), "{got:?}");

    // Only the first call dequeued from the other shards beside the expired message.
    let mut released = 0;
    for url in &three.urls {
        let count = "select coalesce(sum(size), 0)::int8 from trunkline.queue_q where released > 0";
        released += connect(url).await.query_one(count, &[]).await.expect("counted").get::<_, i64>(0);
    }
    assert!(released <= 20, "{released} messages went back");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_behind_many_dead_ones_of_a_shard_arrives() {
    let three = three(numbers().max_attempts(1)).await;
    let parts = three.queue.queues();
    let spent = "insert into trunkline.queue_q (due_at, attempt, size, payload)
                 select now() - interval '1 hour', 1, 1024, array_fill(1::bigint, array[1024])
                 from generate_series(1, 9)";
    connect(&three.url(parts[0].shard).await).await.batch_execute(spent).await.expect("filled");
    let id = parts[0].enqueue(7).await.expect("enqueued").id();
    let mut consumer = three.queue.consumer(Wait::Poll(Duration::from_secs(3600)));
    let found = timeout(SOON, consumer.lease(10)).await.expect("in time").expect("leased");
    assert_eq!(found.iter().map(|message| message.of.id).collect::<Vec<_>>(), [id]);
}
