//! A NATS stream has dropped messages that the relay has not read. The relay ends with an error,
//! or continues if its address accepts gaps. It reads a stream ahead by a limited number of bytes.

use std::{fs, path::Path};

use async_nats::jetstream::{self, stream::Stream};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::Instant;
use trunkline_relay::{Inward, Source};

use crate::{
    brokers::{Broker, Kind},
    carried::queue,
    stand::{DEADLINE, make_stream, until},
};

struct Place {
    broker: Broker,
    jetstream: jetstream::Context,
    stream: Stream,
}

impl Place {
    async fn new() -> Self {
        let broker = Broker::start(Kind::Nats);
        let address = format!("nats://{}", broker.addr());
        make_stream(&address).await;
        let jetstream = jetstream::new(async_nats::connect(address).await.expect("connected"));
        let stream = jetstream.get_stream("s").await.expect("it is there");
        Self { broker, jetstream, stream }
    }

    async fn publish(&self, subject: &'static str, messages: u64) {
        for _ in 0..messages {
            let published = self.jetstream.publish(subject, "x".into()).await.expect("sent");
            published.await.expect("confirmed");
        }
    }

    fn address(&self, options: &str) -> String {
        format!("nats://{}/s{options}", self.broker.addr())
    }

    async fn source(&self, options: &str) -> Box<dyn Source> {
        trunkline_relay::source(&self.address(options)).await.expect("a source")
    }
}

/// Reads `messages` messages after a position. Returns the new position.
async fn read(source: &mut dyn Source, mut after: Option<String>, messages: usize) -> Option<String> {
    let mut left = messages;
    while left > 0 {
        let read = source.read(after.as_deref(), left).await.expect("read");
        left -= read.len();
        after = read.last().map(|last| last.position.clone()).or(after);
    }
    after
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn gap_made_between_runs_ends_the_next_relay_aloud() {
    let place = Place::new().await;
    let queue = queue().await;
    let relay = async |options: &str, messages: u64| {
        let stored = async || queue.stats().await.is_ok_and(|stats| stats.messages >= messages);
        let relay = Inward::new(place.source(options).await, queue.clone()).name("one");
        Box::pin(relay.run(until("they are in the queue", stored))).await
    };
    place.publish("s.x", 20).await;
    relay("", 20).await.expect("in order");
    place.publish("s.x", 15).await;
    place.stream.purge().sequence(31).await.expect("purged");
    let error = relay("", 25).await.expect_err("ten are missing");
    assert!(error.is_gap() && error.to_string().contains("10 messages are gone, 21 to 30"), "{error}");
    relay("?accept-gap=true", 25).await.expect("it goes on");
    assert_eq!(queue.stats().await.expect("counted").messages, 25);
    relay("", 25).await.expect("behind the gap all is well");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn gap_made_while_reading_ends_relay_after_earlier_messages() {
    let place = Place::new().await;
    let (mut source, mut accepts) = (place.source("").await, place.source("?accept-gap=true").await);
    place.publish("s.x", 5).await;
    let after = read(&mut *source, None, 5).await;
    let also = read(&mut *accepts, None, 5).await;
    // Publishes more messages than the server sends in advance.
    place.publish("s.x", 5000).await;
    place.stream.purge().await.expect("purged");
    place.publish("s.x", 1).await;
    let (mut after, mut before) = (after, 5);
    let error = loop {
        match source.read(after.as_deref(), 1000).await {
            Ok(read) => {
                before += read.len();
                after = read.last().map(|last| last.position.clone()).or(after);
            }
            Err(error) => break error,
        }
    };
    assert!(before < 5005, "it was not all on its way");
    let words = format!("{} messages are gone, {} to 5005", 5005 - before, before + 1);
    assert!(error.is_gap() && error.to_string().contains(&words), "{error}, not {words}");
    let mut last = also;
    while !last.as_deref().is_some_and(|position| position.ends_with(":5006")) {
        last =
            accepts.read(last.as_deref(), 1000).await.expect("it goes on").last().map(|m| m.position.clone()).or(last);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn server_sends_few_large_messages_ahead_of_a_reader() {
    const BYTES: usize = 150_000;
    /// The maximum number of large messages that wait in the reader's memory.
    const MOST: u64 = (16 << 20) / BYTES as u64;
    let place = Place::new().await;
    // The average size of the stream's messages is small when the reader starts.
    place.publish("s.x", 100).await;
    let mut source = place.source("").await;
    let after = read(&mut *source, None, 100).await;
    let large = Bytes::from(vec![b'x'; BYTES]);
    for _ in 0..250 {
        place.jetstream.publish("s.x", large.clone()).await.expect("sent").await.expect("confirmed");
    }
    let mut consumers = place.stream.consumers();
    let consumer = consumers.next().await.expect("there is one").expect("listed");
    let ahead = consumer.delivered.stream_sequence - 100;
    assert!((1..=MOST).contains(&ahead), "{ahead} messages of {BYTES} bytes");
    assert!(read(&mut *source, after, 250).await.is_some_and(|position| position.ends_with(":350")));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn stream_restored_from_a_backup_ends_its_reader_aloud() {
    let mut place = Place::new().await;
    place.publish("s.x", 5).await;
    let mut source = place.source("").await;
    let after = read(&mut *source, None, 5).await;
    let (data, backup) = (place.broker.file("data"), place.broker.file("backup"));
    place.broker.end();
    copy(&data, &backup);
    place.broker.start_again();
    until("the stream is back", async || place.jetstream.get_stream("s").await.is_ok()).await;
    place.publish("s.x", 5).await;
    let (mut after, mut left) = (after, 5);
    let end = Instant::now() + DEADLINE;
    while left > 0 {
        assert!(Instant::now() < end, "{left} messages are not read");
        let read = source.read(after.as_deref(), 10).await.unwrap_or_default(); // the server is back, or not yet
        left -= read.len();
        after = read.last().map(|last| last.position.clone()).or(after);
    }
    place.broker.end();
    fs::remove_dir_all(&data).expect("removed");
    copy(&backup, &data);
    place.broker.start_again();
    let error = loop {
        assert!(Instant::now() < end, "no gap is reported");
        match source.read(after.as_deref(), 10).await {
            Ok(read) => assert!(read.is_empty()),
            Err(error) if error.is_gap() => break error,
            Err(_) => tokio::task::yield_now().await, // the client has no connection yet
        }
    };
    assert!(error.to_string().contains("the stream ends at 5, before the position 10"), "{error}");
}

/// Copies a folder with all folders within it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let to = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            copy(&entry, &to);
        } else {
            fs::copy(&entry, &to).expect("copied");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn messages_deleted_singly_or_on_other_subjects_are_no_gap() {
    let place = Place::new().await;
    place.publish("s.some", 2).await;
    place.publish("s.other", 3).await;
    place.stream.delete_message(4).await.expect("deleted");
    place.publish("s.some", 2).await;
    for (options, messages) in [("", 6), ("?subject=s.some", 4)] {
        let after = read(&mut *place.source(options).await, None, messages).await;
        assert!(after.as_deref().is_some_and(|position| position.ends_with(":7")), "{after:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn reader_of_some_subjects_keeps_consumer_while_others_get_messages() {
    let place = Place::new().await;
    place.publish("s.some", 2).await;
    let mut source = place.source("?subject=s.some").await;
    let after = read(&mut *source, None, 2).await;
    for _ in 0..3 {
        place.publish("s.other", 1).await;
        assert!(source.read(after.as_deref(), 1000).await.expect("read").is_empty());
    }
    let consumers = place.jetstream.get_stream("s").await.expect("it is there").cached_info().state.consumer_count;
    assert_eq!((consumers, source.lag()), (1, Some(0)));
    place.publish("s.some", 1).await;
    assert!(read(&mut *source, after, 1).await.is_some_and(|position| position.ends_with(":6")));
}
