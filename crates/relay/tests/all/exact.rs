//! Metadata, keys, payloads and headers pass through each real broker unchanged, or the relay
//! refuses them by name. No broker acts on them.

#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;

use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use tokio_util::sync::CancellationToken;
use trunkline::{Db, Draft, Message, Metadata, Queue, Settings};
use trunkline_relay::{ATTEMPT, ID, Inward, KEY, Raw, Relay, sink, source};

use crate::stand::until;

/// The number of messages per run.
const MESSAGES: usize = 300;
const ENCODING: &str = "trunkline-key-encoding";
const TOMBSTONE: &str = "kafka-tombstone";

/// Names that some broker acts on or that the relay uses, and names that some broker cannot carry.
const NAMES: &[&str] = &[
    "Nats-Rollup",
    "Nats-TTL",
    "Nats-Expected-Stream",
    "Nats-Expected-Last-Sequence",
    "Nats-Expected-Last-Msg-Id",
    "Nats-Msg-Id",
    "nats-rollup",
    "nats-subject",
    "KV-Operation",
    "CC",
    "BCC",
    "cc",
    "x-delay",
    "x-death",
    "x-stream-offset",
    "x-stream-filter-value",
    "body",
    "content-type",
    "message-id",
    "type",
    "user-id",
    "expiration",
    ID,
    ATTEMPT,
    KEY,
    "Trunkline-Key",
    "",
    " ",
    "a b",
    "a:b",
    "%41",
    "ü",
    "line\r\nNats-Rollup: all",
    "trunkline-header.",
    "trunkline-header.1.text.CC",
    "trunkline-header.1.base64.b",
    "trunkline-header.2.text.content-type",
    "tenant",
];
const TEXTS: &[&str] = &[
    "",
    "all",
    "sub",
    " x",
    "x\t",
    "\u{a0}",
    "a\r\nNats-Rollup: all",
    "true",
    "s",
    "0",
    "1000",
    "/w==",
    "AA==",
    "%0A",
    "ü\u{85}",
    "nowhere",
];

/// Escaped headers, as they arrive from brokers whose headers metadata cannot store unchanged.
const ESCAPED: &[(&str, &str)] = &[
    ("trunkline-header.1.base64.b", "/w=="),
    ("trunkline-header.1.base64.CC", "AA=="),
    ("trunkline-header.1.base64.%FFn", "/w=="),
    ("trunkline-header.1.null.n", ""),
    ("trunkline-header.1.null.Nats-Rollup", ""),
    ("trunkline-header.2.text.tenant", "two"),
    ("trunkline-header.3.base64.tenant", "AAA="),
    ("trunkline-header.1.amqp.a", r#"{"FieldArray":[{"LongInt":7},{"LongString":[120]}]}"#),
    ("trunkline-header.1.amqp.x-death", r#"{"FieldArray":[{"FieldTable":{"count":{"LongLongInt":1}}}]}"#),
    ("trunkline-header.1.amqp.broken", "%5B"),
    ("trunkline-header.1.text.kafka-tombstone", "no"),
    ("trunkline-header.1.text.trunkline-key", "other"),
];

fn escaped() -> impl Strategy<Value = (String, String)> {
    select(ESCAPED).prop_map(|(name, text)| (name.to_owned(), text.to_owned()))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => select(NAMES).prop_map(str::to_owned), 1 => "[^\0]{0,8}", 1 => "n{256,300}"]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => select(TEXTS).prop_map(str::to_owned), 1 => "[^\0]{0,40}"]
}

/// Generates the key in the metadata of a queue without keys: text, or base64 of other bytes.
fn key() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    prop_oneof![
        2 => Just(Vec::new()),
        2 => text().prop_map(|key| vec![(KEY, key)]),
        1 => select(&["/w==", "AA==", "not base64"]).prop_map(|key| vec![(KEY, key.to_owned()), (ENCODING, "base64".to_owned())]),
    ]
}

fn payload() -> impl Strategy<Value = (Vec<u8>, bool)> {
    prop_oneof![3 => (vec(any::<u8>(), 0..64), Just(false)), 1 => (Just(Vec::new()), Just(true)), 1 => (vec(any::<u8>(), 1..4), Just(true))]
}

/// Generates messages whose metadata have different values of `case`.
fn messages() -> Vec<(Metadata, Vec<u8>)> {
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &[7; 32]),
    );
    let entry = prop_oneof![3 => (name(), text()), 1 => escaped()];
    let strategy = (vec(entry, 0..4), key(), payload());
    let mut message = |case: usize| {
        let tree = strategy.new_tree(&mut runner).expect("a message");
        let (entries, key, (body, is_tombstone)) = tree.current();
        let mut metadata: Metadata = entries.into_iter().filter(|(name, _)| name != KEY).collect();
        for (name, text) in key {
            metadata.insert(name, text);
        }
        if is_tombstone {
            metadata.insert(TOMBSTONE, "true");
        }
        metadata.insert("case", case.to_string());
        (metadata, body)
    };
    (0..MESSAGES).map(&mut message).collect()
}

/// Creates two queues of bytes, without keys.
pub async fn queues() -> (Queue<Raw>, Queue<Raw>) {
    let db = Db::connect(&trunkline_embedded::test_database().expect("a database")).await.expect("connected");
    db.migrate().await.expect("migrated");
    let settings = Settings::of::<Vec<u8>>().max_attempts(1);
    for name in ["out", "back"] {
        db.create_queue(name, &settings).await.expect("created");
    }
    (db.queue("out").await.expect("opened"), db.queue("back").await.expect("opened"))
}

/// Relays out of a queue until it is empty.
pub async fn carry(queue: &Queue<Raw>, address: &str) {
    let (sink, route) = sink(address).await.expect("a sink");
    let stop = CancellationToken::new();
    let running = tokio::spawn(Relay::new(queue.clone(), sink).route(route).run(stop.clone().cancelled_owned()));
    until("the queue is empty", async || queue.stats().await.is_ok_and(|stats| stats.messages == 0)).await;
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
}

/// Relays into a queue until it has `messages` messages, and checks that no more arrive.
pub async fn fetch(queue: &Queue<Raw>, address: &str, messages: u64) -> Vec<Message<Raw>> {
    let stop = CancellationToken::new();
    let relay = Inward::new(source(address).await.expect("a source"), queue.clone());
    let mut running = tokio::spawn(relay.run(stop.clone().cancelled_owned()));
    let stored =
        until("the queue is filled", async || queue.stats().await.is_ok_and(|stats| stats.messages >= messages));
    tokio::select! {
        ended = &mut running => panic!("the relay has ended: {:?}", ended.expect("no panic").err()),
        () = stored => {}
    }
    stop.cancel();
    running.await.expect("no panic").expect("a clean end");
    let mut all = Vec::new();
    loop {
        let some = queue.take(10_000).await.expect("taken");
        if some.is_empty() {
            assert_eq!(all.len() as u64, messages);
            return all;
        }
        all.extend(some);
    }
}

/// Removes the metadata that a relay or a broker adds to each message.
fn stripped(mut metadata: Metadata) -> Metadata {
    for name in [ID, ATTEMPT] {
        metadata.remove(name);
    }
    metadata
}

/// Returns a message's metadata as it is expected to arrive.
fn expected(metadata: &Metadata, by_nats: bool) -> Metadata {
    let mut expected = stripped(metadata.clone());
    if by_nats {
        // Replaces the first header with this name, which is from this stream.
        let before = expected.remove("nats-subject");
        expected.insert("nats-subject", "s.x");
        if let Some(before) = before {
            let escaped: String = before
                .bytes()
                .map(|byte| match byte {
                    b'!'..=b'~' if !b"%:".contains(&byte) => char::from(byte).to_string(),
                    other => format!("%{other:02X}"),
                })
                .collect();
            expected.insert("trunkline-header.2.text.nats-subject", escaped);
        }
    }
    expected
}

/// Carries messages to the broker and back. The broker already has `before` messages, and must keep
/// them all.
pub async fn there_and_back(out_to: &str, in_from: &str, before: u64) {
    let (out, back) = queues().await;
    let messages = messages();
    let draft =
        |(metadata, body): &(Metadata, Vec<u8>)| Draft::new(Raw(body.clone().into())).metadata(metadata.clone());
    out.enqueue_many(messages.iter().map(draft)).await.expect("enqueued");
    carry(&out, out_to).await;
    let dead = out.dead_letters(0, 10_000).await.expect("listed");
    for letter in &dead {
        let named = letter.metadata.iter().any(|(name, _)| letter.error.contains(&format!("{name:?}")))
            || letter.error.contains("255 bytes")
            || letter.error.contains(ENCODING);
        assert!(named, "{} of {:?}", letter.error, letter.metadata);
    }
    let dead: Vec<_> = dead.iter().filter_map(|letter| letter.metadata.get("case")).collect();
    let all = fetch(&back, in_from, before + (MESSAGES - dead.len()) as u64).await;
    let is_ours = |message: &&Message<Raw>| message.metadata.get("case").is_some();
    assert_eq!(all.iter().filter(|message| !is_ours(message)).count() as u64, before, "none of the others has gone");
    assert!(dead.len() < MESSAGES / 2, "{} of them are dead", dead.len());
    let mut case = (0..MESSAGES).collect::<std::collections::BTreeSet<_>>();
    for message in all.iter().filter(is_ours) {
        let number: usize = message.metadata.get("case").and_then(|case| case.parse().ok()).expect("a number");
        assert!(case.remove(&number), "{number} came once");
        let (metadata, body) = &messages[number];
        assert_eq!(&message.payload.0, body, "{metadata:?}");
        assert_eq!(stripped(message.metadata.clone()), expected(metadata, in_from.starts_with("nats")));
    }
    assert_eq!(case.len(), dead.len(), "all others came");
}
