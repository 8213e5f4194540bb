use std::time::Duration;

use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    message::{Header, Headers, OwnedHeaders, OwnedMessage},
    producer::{BaseRecord, FutureProducer, FutureRecord, Producer, ThreadedProducer},
};
use trunkline::{Draft, Settings};
use trunkline_relay::{Inward, source};

use super::{carry, fetch, queues, there_and_back};
use crate::{
    brokers::{Broker, Kind},
    carried,
    far::far,
    stand::until,
};

const PATIENCE: Duration = Duration::from_secs(30);

fn config(broker: &Broker) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker.addr().to_string());
    config
}

/// Reads keys, values and headers from a topic, without the relay's own headers, sorted by key.
fn read(broker: &Broker, topic: &str) -> Vec<Read> {
    let mut config = config(broker);
    config.set("group.id", "test").set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.create().expect("a client");
    let (mut list, mut left) = (TopicPartitionList::new(), 0);
    for partition in 0..3 {
        let (first, behind) = consumer.fetch_watermarks(topic, partition, PATIENCE).expect("its ends");
        list.add_partition_offset(topic, partition, Offset::Offset(first)).expect("an offset");
        left += behind - first;
    }
    consumer.assign(&list).expect("assigned");
    let next = || of(&consumer.poll(PATIENCE).expect("in time").expect("a message").detach());
    let mut read: Vec<_> = (0..left).map(|_| next()).collect();
    read.sort();
    read
}

type Bytes = Option<Vec<u8>>;
type Slice<'a> = Option<&'a [u8]>;
type Read = (Bytes, Bytes, Vec<(String, Bytes)>);

fn of(message: &OwnedMessage) -> Read {
    let headers = message.headers().into_iter().flat_map(Headers::iter);
    let foreign = headers.filter(|header| header.key != "trunkline-id" && header.key != "trunkline-attempt");
    let mut headers: Vec<_> = foreign.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect();
    headers.sort_by(|one, other| one.0.cmp(&other.0));
    (message.key().map(<[u8]>::to_vec), message.payload().map(<[u8]>::to_vec), headers)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn metadata_comes_back_from_kafka_and_is_never_obeyed() {
    let broker = Broker::start(Kind::Kafka);
    let _topic = far(Kind::Kafka, &broker, "s").await;
    let address = format!("kafka://{}/s", broker.addr());
    there_and_back(&address, &address, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn topic_is_copied_with_keys_headers_and_tombstones() {
    let broker = Broker::start(Kind::Kafka);
    let _topics = (
        far(Kind::Kafka, &broker, "s").await,
        far(Kind::Kafka, &broker, "copy").await,
        far(Kind::Kafka, &broker, "laned").await,
    );
    let producer: FutureProducer = config(&broker).create().expect("a client");
    let header = |key, value| Header { key, value };
    let headers = OwnedHeaders::new()
        .insert(header("attempt", Some(&b"\0\0\0\x2a"[..])))
        .insert(header("again", Some(b"1")))
        .insert(header("again", None))
        .insert(header("again", Some(b"\xff")))
        .insert(header("nothing", None))
        .insert(header("empty", Some(b"")))
        .insert(header("kafka-tombstone", Some(b"no")))
        .insert(header("trunkline-key", Some(b"other")))
        .insert(header("", Some(b"without a name")));
    let messages: [(Slice<'_>, Slice<'_>); 7] = [
        (Some(b"plain"), Some(b"1")),
        (Some(b"\0\x01"), Some(b"2")),
        (Some(b"\xff\xfe"), Some(b"")),
        (Some(b"\xff\xfd"), None),
        (Some(b"deleted"), None),
        (None, Some(b"no key")),
        (Some(b""), Some(b"an empty one")),
    ];
    for (key, value) in messages {
        let mut record = FutureRecord::<[u8], [u8]>::to("s").headers(headers.clone());
        (record.key, record.payload) = (key, value);
        producer.send(record, PATIENCE).await.expect("sent");
    }
    let (out, back) = queues().await;
    let address = |topic: &str| format!("kafka://{}/{topic}", broker.addr());
    let all = fetch(&back, &address("s"), 7).await;
    back.enqueue_many(all.into_iter().map(|one| Draft::new(one.payload).metadata(one.metadata))).await.expect("again");
    carry(&back, &address("copy")).await;
    let (there, copied) = tokio::task::block_in_place(|| (read(&broker, "s"), read(&broker, "copy")));
    assert_eq!(copied, there);

    // A queue with keys also copies messages exactly, but refuses those without a key.
    let db = out.db();
    db.create_queue("laned", &Settings::of::<Vec<u8>>().partitions(4)).await.expect("created");
    let laned = db.queue("laned").await.expect("opened");
    let stop = tokio_util::sync::CancellationToken::new();
    let relay = Inward::new(source(&address("s")).await.expect("a source"), laned.clone()).pass_over(true);
    let progress = relay.progress();
    let running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    until("all were read", async || laned.stats().await.is_ok_and(|stats| stats.messages + progress.refused() >= 7))
        .await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    carry(&laned, &address("laned")).await;
    let copied = tokio::task::block_in_place(|| read(&broker, "laned"));
    let keyed: Vec<_> = there.into_iter().filter(|(key, ..)| key.as_ref().is_some_and(|key| !key.is_empty())).collect();
    assert_eq!(copied, keyed);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn tombstone_is_null_in_json_queue_and_tombstone_again_outside() {
    let broker = Broker::start(Kind::Kafka);
    let _topics = (far(Kind::Kafka, &broker, "s").await, far(Kind::Kafka, &broker, "copy").await);
    let producer: FutureProducer = config(&broker).create().expect("a client");
    for value in [Some("{\"a\": 1}"), None, Some("null")] {
        let mut record = FutureRecord::<str, str>::to("s").key("k");
        record.payload = value;
        producer.send(record, PATIENCE).await.expect("sent");
    }
    let (out, _) = queues().await;
    let db = out.db();
    db.create_queue("json", &Settings::of::<serde_json::Value>().max_attempts(1)).await.expect("created");
    let json = db.queue("json").await.expect("opened");
    let address = |topic: &str| format!("kafka://{}/{topic}", broker.addr());
    let all = fetch(&json, &address("s"), 3).await;
    assert_eq!(all.iter().filter(|one| &*one.payload.0 == b"null").count(), 2);
    json.enqueue_many(all.into_iter().map(|one| Draft::new(one.payload).metadata(one.metadata))).await.expect("again");
    carry(&json, &address("copy")).await;
    let copied = tokio::task::block_in_place(|| read(&broker, "copy"));
    let mut values: Vec<_> = copied.into_iter().map(|(_, value, _)| value).collect();
    values.sort();
    assert_eq!(values, [None, Some(b"null".to_vec()), Some(b"{\"a\": 1}".to_vec())]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn impossible_topic_makes_a_dead_letter_at_once() {
    let broker = Broker::start(Kind::Kafka);
    let _topic = far(Kind::Kafka, &broker, "s").await;
    let long = "x".repeat(250);
    let wrong = ["", ".", "..", "a b", "ü", "a/b", "a\nb", "__consumer_offsets", &long];
    let mut messages: Vec<_> = wrong.iter().map(|to| (*to, "refused")).collect();
    messages.push(("s", "there"));
    let dead = carried::carry(&format!("kafka://{}/{{metadata.to}}", broker.addr()), &messages).await;
    assert!(dead.len() == wrong.len() && dead.iter().all(|(_, words)| words.contains("the topic")), "{dead:?}");
    assert_eq!(carried::arrived(&format!("kafka://{}/s", broker.addr()), 1).await, ["there"]);
}

/// Writes five messages in one transaction. The transaction's marker also has an offset.
fn transact(broker: &Broker) {
    let mut config = config(broker);
    config.set("transactional.id", "t");
    let producer: ThreadedProducer<rdkafka::producer::DefaultProducerContext> = config.create().expect("a client");
    producer.init_transactions(PATIENCE).expect("begun");
    for keep in [true, false] {
        producer.begin_transaction().expect("begun");
        for number in 0..5 {
            let body = format!("{number}");
            producer
                .send(BaseRecord::<str, str>::to("s").key("k").payload(&body))
                .map_err(|(error, _)| error)
                .expect("sent");
        }
        producer.flush(PATIENCE).expect("sent");
        if keep { producer.commit_transaction(PATIENCE) } else { producer.abort_transaction(PATIENCE) }.expect("ended");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn nothing_lags_behind_transactions_that_were_read() {
    let broker = Broker::start(Kind::Kafka);
    let _topic = far(Kind::Kafka, &broker, "s").await;
    tokio::task::block_in_place(|| transact(&broker));
    let address = format!("kafka://{}/s", broker.addr());
    let mut last = None::<String>;
    for round in 0..2 {
        let mut source = source(&address).await.expect("a source");
        let (mut read, mut lag, end) = (0, None, std::time::Instant::now() + PATIENCE);
        while read < 5 * (1 - round) || lag != Some(0) {
            assert!(std::time::Instant::now() < end, "{read} were read, and {lag:?} is the lag");
            let some = source.read(last.as_deref(), 100).await.expect("read");
            read += some.len();
            last = some.last().map(|one| one.position.clone()).or(last);
            lag = source.lag();
        }
        assert_eq!(read, 5 * (1 - round), "what was given up does not come, and nothing twice");
    }
}
