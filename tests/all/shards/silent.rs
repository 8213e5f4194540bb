//! A shard that is up and answers no dequeue.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::{Dequeue, Wait, shards};

use super::away::Servers;
use crate::fixture::{SOON, connect, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn shard_that_answers_no_dequeue_delays_no_other_shard() {
    let servers = Servers::start(2).await;
    let shards = shards::Set::connect(servers.urls()).await.expect("connected");
    let queue = shards.queue::<i64>("q").await.expect("opened");
    let other = servers.id(1).await;
    let locker = connect(&servers.urls()[0]).await;
    locker.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    let is_up = || async { shards.list().iter().all(|state| state.down.is_none()) };
    let mut consumer = queue.consumer(Wait::Adaptive);
    // With each call, the consumer waits longer for the silent shard, at last half a minute.
    for _ in 0..5 {
        eventually("both count as up", is_up).await;
        let none = consumer.take(Dequeue::up_to(1).within(Duration::ZERO));
        assert_eq!(timeout(SOON, none).await.expect("in time").expect("taken").len(), 0);
    }
    eventually("both count as up", is_up).await;
    let consuming = tokio::spawn(async move { consumer.take(1).await });
    queue.on(other).expect("reached").enqueue(7).await.expect("enqueued");
    let taken = timeout(SOON, consuming).await.expect("in time").expect("no panic").expect("taken");
    assert_eq!((taken[0].shard, taken[0].of.payload), (other, 7));
    locker.batch_execute("rollback").await.expect("unlocked");
}
