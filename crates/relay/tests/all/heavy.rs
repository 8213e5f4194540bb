//! Large messages wait for a broker that is away. The relay holds a limited number of bytes.

use tokio_util::sync::CancellationToken;
use trunkline::Draft;
use trunkline_relay::{Raw, Relay, sink};

use crate::{
    brokers::{Broker, Kind},
    carried::{arrived, queue},
    stand::until,
};

const MESSAGES: usize = 400;
const BYTES: usize = 300_000;
/// The maximum number of bytes that a relay holds.
const MOST: usize = 64 << 20;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn relay_holds_few_large_messages_while_its_broker_is_away() {
    let mut broker = Broker::start(Kind::Redis);
    let address = format!("redis://{}/s", broker.addr());
    let (sink, route) = sink(&address).await.expect("a sink");
    broker.kill();
    let queue = queue().await;
    let bodies: Vec<_> = (0..MESSAGES).map(|number| format!("{number:04}{}", "x".repeat(BYTES))).collect();
    for some in bodies.chunks(40) {
        queue.enqueue_many(some.iter().map(|body| Draft::new(Raw(body.clone().into())))).await.expect("enqueued");
    }
    let (relay, stop) = (Relay::new(queue.clone(), sink).route(route), CancellationToken::new());
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    // By then, each message that the relay holds has been refused several times.
    until("it tries again and again", async || progress.again() >= 4 * MESSAGES as u64).await;
    let held = queue.stats().await.expect("counted").leased as usize * BYTES;
    assert!((MOST / 2..=MOST).contains(&held), "{held} bytes in hand");
    broker.start_again();
    until("the queue is empty", async || queue.stats().await.is_ok_and(|stats| stats.messages == 0)).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    assert!(arrived(&address, MESSAGES).await == bodies, "all of them are there, once");
    assert_eq!(queue.stats().await.expect("counted").dead, 0);
}
