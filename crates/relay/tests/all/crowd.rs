//! Thousands of messages for a full destination do not block messages for another destination.

use async_nats::jetstream::{
    self,
    stream::{Config, DiscardPolicy},
};
use tokio_util::sync::CancellationToken;
use trunkline::{Draft, Queue};
use trunkline_relay::{Raw, Relay, sink};

use crate::{
    brokers::{Broker, Kind},
    carried::{arrived, queue},
    stand::{make_stream, until},
};

async fn enqueue(queue: &Queue<Raw>, to: &str, messages: usize) {
    let draft = |number: usize| Draft::new(Raw(format!("{to} {number}").into())).with("to", to);
    queue.enqueue_many((0..messages).map(draft)).await.expect("enqueued");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn thousands_refused_on_one_subject_do_not_stop_others() {
    let broker = Broker::start(Kind::Nats);
    let server = format!("nats://{}", broker.addr());
    make_stream(&server).await;
    let jetstream = jetstream::new(async_nats::connect(&server).await.expect("connected"));
    let full = |max_messages: i64| Config {
        name: "full".to_owned(),
        subjects: vec!["full".to_owned()],
        discard: DiscardPolicy::New,
        max_messages,
        ..Config::default()
    };
    jetstream.create_stream(full(1)).await.expect("made");
    let queue = queue().await;
    let (sink, route) = sink(&format!("{server}/{{metadata.to}}")).await.expect("a sink");
    let relay = Relay::new(queue.clone(), sink).route(route);
    let (progress, stop) = (relay.progress(), CancellationToken::new());
    enqueue(&queue, "full", 6000).await;
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    until("all of them were refused", async || progress.again() >= 6000).await;
    enqueue(&queue, "s.x", 3000).await;
    until("the others are through", async || progress.confirmed() >= 3001).await;
    assert_eq!(arrived(&format!("{server}/s"), 3000).await.len(), 3000);
    assert_eq!(arrived(&format!("{server}/full"), 1).await.len(), 1);
    assert_eq!(queue.stats().await.expect("counted").messages, 5999);
    jetstream.update_stream(full(-1)).await.expect("there is room");
    until("the queue is empty", async || queue.stats().await.is_ok_and(|stats| stats.messages == 0)).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    assert_eq!(arrived(&format!("{server}/full"), 6000).await.len(), 6000);
    assert_eq!(queue.stats().await.expect("counted").dead, 0, "with one attempt each");
}
