//! Real brokers refuse or lose messages.

use trunkline::Draft;
use trunkline_relay::Raw;

use crate::{brokers::Kind, stage::Stage};

impl Stage {
    /// Enqueues a body for a destination.
    async fn enqueue_to(&self, to: &str, key: &str, body: String) {
        let draft = Draft::new(Raw(body.into())).key(key).with("to", to);
        self.queue.enqueue(draft).await.expect("enqueued");
    }

    /// Returns an address whose route is in each message's metadata.
    fn address_by_metadata(&self) -> String {
        self.address().replace("orders", "{metadata.to}")
    }

    /// Returns the start of each dead letter's body, and the letter's reason.
    async fn dead(&self) -> Vec<(String, String)> {
        let dead = self.queue.dead_letters(0, 100).await.expect("listed");
        let mut dead: Vec<_> = dead
            .iter()
            .map(|one| (String::from_utf8_lossy(&one.payload.0[..8]).into_owned(), one.error.clone()))
            .collect();
        dead.sort();
        dead
    }
}

/// Returns the first eight bytes of each body that arrived at the broker, sorted.
async fn arrived(stage: &Stage) -> Vec<String> {
    let mut arrived: Vec<_> = stage.far.read().await.into_iter().map(|one| one.body[..8].to_owned()).collect();
    arrived.sort();
    arrived
}

/// Makes a body of `bytes` bytes that starts with its key and ends with its number.
fn body(key: &str, bytes: usize) -> String {
    format!("{key} {}1", "0".repeat(bytes - key.len() - 2))
}

#[cfg(feature = "kafka")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn messages_kafka_cannot_take_die_alone_with_its_words() {
    let stage = Stage::set(Kind::Kafka, true).await;
    let mut there = Vec::new();
    // Enqueues messages that together have ten times the topic's limit.
    for number in 0..40 {
        let key = format!("fits-{number:02}");
        stage.enqueue_to("orders", &key, body(&key, 50_000)).await;
        there.push(format!("{key} "));
    }
    stage.enqueue_to("orders", "large", body("large", 250_000)).await;
    stage.enqueue_to("nowhere", "route", body("route", 100)).await;
    let relay = stage.out_to(stage.address_by_metadata());
    stage.empty().await;
    assert_eq!(arrived(&stage).await, there);
    let dead = stage.dead().await;
    let [(large, too_large), (route, no_topic)] = &dead[..] else { panic!("{dead:?}") };
    assert!(large.starts_with("large") && too_large.contains("MessageSizeTooLarge"), "{dead:?}");
    assert!(route.starts_with("route") && no_topic.contains("no such topic"), "{dead:?}");
    relay.end().await.expect("a clean end");
}

#[cfg(feature = "rabbitmq")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn messages_rabbitmq_cannot_route_die_alone_with_its_words() {
    let stage = Stage::set(Kind::Rabbitmq, true).await;
    let mut there = Vec::new();
    for number in 0..20 {
        let key = format!("fits-{number:02}");
        stage.enqueue_to("orders", &key, body(&key, 100)).await;
        stage.enqueue_to("nowhere", &format!("no-{number:04}"), body(&format!("no-{number:04}"), 100)).await;
        there.push(format!("{key} "));
    }
    stage.enqueue_to(&"x".repeat(256), "route", body("route", 100)).await;
    let relay = stage.out_to(stage.address_by_metadata());
    stage.empty().await;
    assert_eq!(arrived(&stage).await, there);
    let dead = stage.dead().await;
    assert_eq!(dead.len(), 21, "{dead:?}");
    assert!(
        dead[..20].iter().all(|(body, words)| body.starts_with("no-") && words.contains("NO_ROUTE (312)")),
        "{dead:?}"
    );
    assert!(dead[20].1.contains("255 bytes"), "{dead:?}");
    relay.end().await.expect("a clean end");
}

async fn a_gap_ends_it(kind: Kind) {
    let mut stage = Stage::set(kind, true).await;
    let relay = stage.inward();
    stage.write(20).await;
    stage.filled(stage.sent.sure()).await;
    relay.end().await.expect("a clean end");
    stage.far.make_anew().await;
    stage.write(1).await;
    let error = stage.inward().ended().await.expect_err("it is not what was read");
    assert!(
        error.is_gap() && error.to_string().contains("another") && error.to_string().contains("accept-gap"),
        "{error}"
    );
}

#[cfg(feature = "kafka")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn replaced_topic_ends_the_way_in_aloud() {
    a_gap_ends_it(Kind::Kafka).await;
}

#[cfg(feature = "rabbitmq")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn replaced_stream_ends_the_way_in_aloud() {
    a_gap_ends_it(Kind::Rabbitmq).await;
}

#[cfg(feature = "kafka")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn a_topic_that_is_made_late_gets_what_comes_then() {
    let stage = Stage::set(Kind::Kafka, true).await;
    let relay = stage.out_to(stage.address_by_metadata());
    stage.enqueue_to("late", "one", body("one", 100)).await;
    stage.empty().await;
    assert_eq!(stage.dead().await.len(), 1);
    let late = crate::far::far(Kind::Kafka, &stage.broker, "late").await;
    for key in ["two", "three"] {
        stage.enqueue_to("late", key, body(key, 100)).await;
    }
    stage.empty().await;
    assert_eq!((stage.dead().await.len(), late.read().await.len()), (1, 2));
    relay.end().await.expect("a clean end");
}

#[cfg(feature = "kafka")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn a_position_has_a_place_in_each_partition() {
    let stage = Stage::set(Kind::Kafka, true).await;
    assert!(stage.far.write("key-0", vec!["key-0 1".to_owned()]).await.iter().all(|(_, confirmed)| *confirmed));
    let mut source = trunkline_relay::source(&stage.address()).await.expect("a source");
    let mut read = Vec::new();
    while read.is_empty() {
        read = source.read(None, 10).await.expect("read");
    }
    let places: Vec<_> = read[0].position.split(',').map(|place| place.split_once(':').expect("a place").1).collect();
    assert!(places.len() == 3 && places.iter().filter(|place| **place == "0").count() == 2, "{places:?}");
}
