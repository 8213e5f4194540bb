//! Tests streams and direct delivery over several servers.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, future::try_join_all};
use tokio::time::timeout;
use trunkline::{Wait, shards};

use super::{counts, numbers, shard, three};
use crate::fixture::{SOON, connect, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn stream_has_messages_of_all_shards_and_returns_its_buffer() {
    let three = three(numbers()).await;
    try_join_all((0..300).map(|n| three.queue.enqueue(n))).await.expect("enqueued");
    let mut stream = three.queue.consumer(Wait::Adaptive).messages(30);
    let (mut seen, mut first) = (Vec::new(), BTreeMap::new());
    while seen.len() < 300 {
        let message = timeout(SOON, stream.next()).await.expect("in time").expect("it never ends").expect("leased");
        if seen.is_empty() {
            // Waits until each server has delivered its part of the stream's buffer.
            let holds_parts = || async {
                let stats = three.queue.stats().await;
                stats.parts.iter().all(|part| part.of.as_ref().is_ok_and(|stats| stats.leased == 10))
            };
            eventually("something of each shard is held", holds_parts).await;
        }
        three.queue.ack([&message]).await.expect("acknowledged");
        *first.entry(message.shard).or_insert(0) += usize::from(seen.len() < 30);
        seen.push(message.of.payload);
    }
    assert!(first.len() == 3 && first.values().all(|count| *count >= 8), "{first:?}");
    seen.sort_unstable();
    assert_eq!(seen, (0..300).collect::<Vec<_>>());

    // Messages arrived on a new shard while the stream was not polled. The stream delivers them,
    // and gives back unread messages.
    let url = shard().await;
    three.shards.add(&url).await.expect("added");
    let waiting = async { stream.next().await.expect("it never ends").expect("leased") };
    let sql = connect(&url).await;
    let (message, ()) = timeout(SOON, async {
        tokio::join!(waiting, async {
            let db = trunkline::Db::connect(&url).await.expect("connected");
            db.create_queue("q", &numbers()).await.expect("created");
            sql.batch_execute("select trunkline.enqueue('q', n::bigint) from generate_series(1000, 1009) n")
                .await
                .expect("enqueued");
        })
    })
    .await
    .expect("in time");
    assert_eq!(message.of.payload, 1000);
    three.queue.ack([&message]).await.expect("acknowledged");

    // Each shard's part is a quarter now. The leases that waited when the shard joined are larger.
    try_join_all((0..200).map(|n| three.queue.enqueue(n))).await.expect("enqueued");
    for read in 0..150 {
        let message = timeout(SOON, stream.next()).await.expect("in time").expect("it never ends").expect("leased");
        if read > 60 {
            let leased = three.queue.stats().await.parts.into_iter().map(|part| part.of.expect("counted").leased);
            assert!(leased.max() <= Some(7));
        }
        three.queue.ack([&message]).await.expect("acknowledged");
    }
    drop(stream);
    eventually("the rest is back", || async { three.queue.stats().await.sum.due == 59 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_delivery_on_any_shard_reaches_the_waiting_consumer() {
    let three = three(numbers()).await;
    let lists = async || {
        let mut lists = 0;
        for url in &three.urls {
            let count = connect(url).await.query_one("select count(*) from trunkline.waiting", &[]).await;
            lists += count.expect("counted").get::<_, i64>(0);
        }
        lists
    };
    let queue = three.queue.routing(shards::Routing::RoundRobin);
    let mut consumer = three.queue.consumer(Wait::Notify);
    let mut handed: Vec<shards::MessageId> = Vec::new();
    for n in 0..9 {
        let send_direct = async {
            eventually("it waits on all shards", || async { lists().await == 3 }).await;
            queue.send_direct(n).await.expect("handed over").id()
        };
        let (message, id) =
            timeout(SOON, async { tokio::join!(consumer.receive_direct(), send_direct) }).await.expect("in time");
        let message = message.expect("handed over");
        assert_eq!((message.id(), message.of.payload), (id, n));
        handed.push(id);
        assert_eq!(lists().await, 0, "it waits nowhere now, so that others get what is handed over");
    }
    assert_eq!(counts(handed).len(), 3);
    assert_eq!(three.queue.stats().await.sum.messages, 0, "nothing was stored");

    // If no consumer is waiting, the message is stored, and the next consumer finds it.
    let id = queue.send_direct(9).await.expect("enqueued").id();
    assert_eq!(three.queue.stats().await.sum.due, 1);
    assert_eq!(timeout(SOON, consumer.receive_direct()).await.expect("in time").expect("taken").id(), id);
    // A call that was dropped while it waited leaves no list entry. A message sent to such an entry
    // would be lost.
    let dropped = timeout(Duration::from_millis(1), consumer.receive_direct()).await;
    assert!(dropped.is_err());
    queue.send_direct(10).await.expect("handed over or enqueued");
    assert_eq!(timeout(SOON, consumer.receive_direct()).await.expect("in time").expect("taken").of.payload, 10);
}
