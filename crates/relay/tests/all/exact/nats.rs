use async_nats::{
    HeaderMap,
    jetstream::{
        self,
        consumer::{AckPolicy, pull},
        stream::{Config, Stream},
    },
};
use futures_util::StreamExt;
use trunkline::Draft;
use trunkline_relay::{Raw, sink};

use super::{carry, fetch, queues, there_and_back};
use crate::{
    brokers::{Broker, Kind},
    carried,
    stand::until,
};

struct Place {
    server: String,
    jetstream: jetstream::Context,
    stream: Stream,
    broker: Broker,
}

impl Place {
    /// Creates a stream `s` that acts on every header it can, with five messages on another
    /// subject.
    async fn new() -> Self {
        let broker = Broker::start(Kind::Nats);
        let server = format!("nats://{}", broker.addr());
        let jetstream = jetstream::new(async_nats::connect(&server).await.expect("connected"));
        let config = |name: &str| Config {
            name: name.to_owned(),
            subjects: vec![format!("{name}.>")],
            allow_rollup: true,
            allow_direct: true,
            ..Config::default()
        };
        until("JetStream is there", async || jetstream.create_stream(config("copy")).await.is_ok()).await;
        let stream = jetstream.create_stream(config("s")).await.expect("made");
        let place = Self { server, jetstream, stream, broker };
        for _ in 0..5 {
            place.publish("s.before", HeaderMap::new()).await;
        }
        place
    }

    async fn publish(&self, subject: &'static str, headers: HeaderMap) {
        let sent = self.jetstream.publish_with_headers(subject, headers, "there".into()).await.expect("sent");
        sent.await.expect("confirmed");
    }

    async fn messages(&self) -> u64 {
        self.stream.get_info().await.expect("asked").state.messages
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn metadata_comes_back_from_nats_and_is_never_obeyed() {
    let place = Place::new().await;
    there_and_back(&format!("{}/s.x", place.server), &format!("{}/s", place.server), 5).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn a_stream_is_copied_to_another_with_each_header() {
    let place = Place::new().await;
    let mut headers = HeaderMap::new();
    for text in ["one", "two", "three"] {
        headers.append("Seen", text);
    }
    for (name, text) in
        [("Nats-Expected-Stream", "s"), ("Nats-Rollup", "sub"), ("Nats-Msg-Id", "7"), ("trunkline-key", "k")]
    {
        headers.insert(name, text);
    }
    place.publish("s.x", headers).await;
    let (_, back) = queues().await;
    let all = fetch(&back, &format!("{}/s", place.server), 6).await;
    back.enqueue_many(all.into_iter().map(|one| Draft::new(one.payload).metadata(one.metadata))).await.expect("again");
    carry(&back, &format!("{}/copy.x", place.server)).await;
    assert_eq!(back.stats().await.expect("counted").dead, 0);
    let copy = place.jetstream.get_stream("copy").await.expect("it is there");
    let state = copy.get_info().await.expect("asked").state;
    assert_eq!(state.messages, 6, "none was rolled up");
    // Reads through a consumer: a message that is fetched by its number lacks the first of several
    // headers with the same name.
    let config = pull::Config { ack_policy: AckPolicy::None, ..pull::Config::default() };
    let consumer = copy.create_consumer(config).await.expect("a consumer");
    // Messages without a key may arrive in any order.
    let all: Vec<_> = consumer.messages().await.expect("asked").take(6).collect().await;
    let all = all.into_iter().map(|one| one.expect("a message").headers.clone().unwrap_or_default());
    let headers = all.into_iter().find(|headers| headers.get("Seen").is_some()).expect("the one with headers");
    let texts = |name: &str| headers.get_all(name).map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts("Seen"), ["one", "two", "three"]);
    assert_eq!(texts("trunkline-header.1.text.Nats-Rollup"), ["sub"]);
    assert_eq!(texts("trunkline-header.1.text.Nats-Expected-Stream"), ["s"]);
    assert_eq!(texts("trunkline-header.1.text.Nats-Msg-Id"), ["7"]);
    assert_eq!(texts("trunkline-key"), ["k"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn impossible_subject_makes_a_dead_letter_at_once() {
    let place = Place::new().await;
    let long = format!("s.{}", "x".repeat(5000));
    let purge = "$JS.API.STREAM.PURGE.s";
    let wrong = [
        "",
        ".",
        "s.",
        "s..x",
        ".s",
        "s.*",
        "s.>",
        "*",
        "s.a b",
        "s.a\r\nPUB s.x 1",
        "s.\t",
        "$SYS.REQ.x",
        "_INBOX.x",
        purge,
        &long,
    ];
    let mut messages: Vec<_> = wrong.iter().map(|to| (*to, "refused")).collect();
    messages.extend([("s.first", "first"), ("s.ü", "second")]);
    let dead = carried::carry(&format!("{}/{{metadata.to}}", place.server), &messages).await;
    assert_eq!(dead.len(), wrong.len(), "{dead:?}");
    for (body, words) in &dead {
        assert!(body == "refused" && words.contains("the subject") && words.len() < 400, "{words}");
    }
    assert_eq!(place.messages().await, 7, "the stream is whole");
    // Tests a field within a subject, which fills one token.
    let dead =
        carried::carry(&format!("{}/s.x.{{metadata.to}}", place.server), &[("a.b", "no"), ("", "no"), ("c", "yes")])
            .await;
    assert!(dead.len() == 2 && dead[0].1.contains("{+metadata.to}") && dead[1].1.contains("empty token"), "{dead:?}");
    let dead = carried::carry(&format!("{}/s.x.{{+metadata.to}}", place.server), &[("a.b", "yes")]).await;
    assert_eq!(dead, []);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn answer_of_another_client_confirms_nothing() {
    let place = Place::new().await;
    let client = async_nats::connect(&place.server).await.expect("connected");
    let mut requests = client.subscribe("service.x").await.expect("subscribed");
    client.flush().await.expect("flushed");
    let answering = tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let reply = request.reply.expect("it asks");
            client.publish(reply, r#"{"ok":true}"#.into()).await.expect("answered");
        }
    });
    let (sink, _) = sink(&format!("{}/service.x", place.server)).await.expect("a sink");
    let message = trunkline_relay::Outgoing::new("q/1/1", "service.x", Raw::default().0);
    let outcome = sink.produce(std::slice::from_ref(&message)).await;
    assert!(
        matches!(&outcome[..], [trunkline_relay::Outcome::RefusedForNow(why)] if why.contains("not an acknowledgement")),
        "{outcome:?}"
    );
    answering.abort();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn headers_that_the_client_cannot_read_arrive_byte_by_byte() {
    use tokio::io::AsyncWriteExt;
    let place = Place::new().await;
    let headers: [&[u8]; 2] = [b"NATS/1.0\r\nbytes: \xff\x00\r\n\r\n", b"NATS/1.0\r\na name: text\r\n\r\n"];
    let mut raw = tokio::net::TcpStream::connect(place.broker.addr()).await.expect("connected");
    let mut lines = b"CONNECT {\"verbose\":false,\"headers\":true}\r\n".to_vec();
    for header in headers {
        lines.extend(format!("HPUB s.x {} {}\r\n", header.len(), header.len() + 4).bytes());
        lines.extend([header, b"body\r\n"].concat());
    }
    lines.extend(b"PING\r\n");
    raw.write_all(&lines).await.expect("sent");
    until("they are stored", async || place.messages().await == 7).await;
    place.publish("s.after", HeaderMap::new()).await;
    let (_, back) = queues().await;
    let all = fetch(&back, &format!("{}/s", place.server), 8).await;
    let has = |name: &str, text: &str| all.iter().any(|one| one.metadata.get(name) == Some(text));
    assert!(has("trunkline-header.1.base64.bytes", "/wA=") && has("a name", "text"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn stream_without_its_last_message_keeps_its_consumer() {
    let place = Place::new().await;
    place.stream.delete_message(5).await.expect("deleted");
    let mut source = trunkline_relay::source(&format!("{}/s", place.server)).await.expect("a source");
    let mut position = None;
    while position.as_deref().is_none_or(|position: &str| !position.ends_with(":4")) {
        let mut read = source.read(position.as_deref(), 10).await.expect("read");
        position = read.pop().map(|last| last.position).or(position);
    }
    for _ in 0..4 {
        assert!(source.read(position.as_deref(), 10).await.expect("read").is_empty());
    }
    let consumers = place.stream.get_info().await.expect("asked").state.consumer_count;
    assert_eq!(consumers, 1, "each read began another consumer");
    place.publish("s.after", HeaderMap::new()).await;
    let read = source.read(position.as_deref(), 10).await.expect("read");
    assert!(matches!(&read[..], [one] if one.position.ends_with(":6")), "{read:?}");
}
