//! Reads of a queue on several servers, one of which is down.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use trunkline::shards;
use trunkline_embedded::{Cluster, Stop};

use super::away::Servers;
use crate::fixture::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn reads_wait_no_longer_than_a_second_for_a_shard_that_is_known_to_be_down() {
    let servers = Servers::start(2).await;
    let shards = shards::Set::connect(servers.urls()).await.expect("connected");
    let queue = shards.queue::<i64>("q").await.expect("opened");
    let ids = try_join_all((0..4).map(|n| queue.enqueue(n))).await.expect("enqueued");
    let down = servers.id(1).await;
    let lost = ids.iter().find(|id| id.shard == down).expect("one on each");
    let lost = shards::Sharded { shard: lost.shard, of: lost.of.id() };
    servers.with(1, |server| server.stop(Stop::Fast)).await;
    eventually("it is known to be down", || async {
        let _ = queue.enqueue(1).await; // the outcome of the call that detects the outage may be unknown
        shards.list().iter().any(|state| state.down.is_some())
    })
    .await;
    let began = Instant::now();
    let stats = queue.stats().await;
    assert!(stats.sum.due >= 2, "{stats:?}");
    assert_eq!(stats.parts.iter().filter(|part| part.of.is_err()).count(), 1, "{stats:?}");
    queue.find(lost).await.expect_err("it is down");
    let error = queue.dead_letters(None, 10).await.expect_err("it is down");
    assert_eq!(error.shards().len(), 1, "{error}");
    queue.archived(None, 10).await.expect_err("it is down");
    assert!(began.elapsed() < Duration::from_secs(25), "four reads of a second: {:?}", began.elapsed());
    servers.with(1, Cluster::start_again).await;
    eventually("it is read again", || async { queue.find(lost).await.is_ok_and(|found| found.is_some()) }).await;
}
