//! A broker is far away, and a relay has many questions to it. It refuses some messages of a large
//! batch, or has a topic with many partitions.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

#[cfg(feature = "rabbitmq")]
use lapin::{ConnectionProperties, options::ExchangeDeleteOptions};
#[cfg(feature = "kafka")]
use rdkafka::{
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
};
use tokio::time::{Instant, timeout};
use trunkline_embedded::DelayProxy;
use trunkline_relay::{Outcome, Outgoing, Sink, sink};

use crate::{
    brokers::{Broker, Kind},
    stand::{DEADLINE, until},
};

/// The delay of the link to the broker, in each direction.
const DELAY: Duration = Duration::from_millis(100);
/// The time limit for a batch. One round trip after another for each message takes longer.
const IN_TIME: Duration = Duration::from_secs(25);
#[cfg(feature = "kafka")]
const PARTITIONS: i32 = 100;

fn far_from(broker: SocketAddr) -> DelayProxy {
    DelayProxy::start("127.0.0.1:0", broker, DELAY).expect("a proxy")
}

/// Sends messages, each to the destination for its number, until none is refused for now. Returns
/// the outcomes.
async fn produced(sink: &dyn Sink, messages: usize, to: impl Fn(usize) -> String) -> Vec<Outcome> {
    let message = |number: usize| Outgoing::new(format!("q/1/{number}"), to(number), format!("{number:04}"));
    let mut left: Vec<_> = (0..messages).map(message).collect();
    let (mut settled, end) = (HashMap::new(), Instant::now() + DEADLINE);
    while !left.is_empty() {
        assert!(Instant::now() < end, "{} messages are refused for now", left.len());
        let outcomes = timeout(IN_TIME, sink.produce(&left)).await.expect("in time");
        for (message, outcome) in std::mem::take(&mut left).into_iter().zip(outcomes) {
            match outcome {
                Outcome::RefusedForNow(_) => left.push(message),
                outcome => drop(settled.insert(message.id, outcome)),
            }
        }
    }
    (0..messages).map(|number| settled[&format!("q/1/{number}")].clone()).collect()
}

/// Returns the number of messages that were confirmed. Fails if another message was not refused
/// with these words.
fn confirmed(outcomes: &[Outcome], words: &str) -> usize {
    let is_refused = |outcome: &Outcome| matches!(outcome, Outcome::RefusedForGood(said) if said.contains(words));
    let (confirmed, others): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| **outcome == Outcome::Confirmed);
    assert!(others.iter().copied().all(is_refused), "{others:?}");
    confirmed.len()
}

#[cfg(feature = "rabbitmq")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn rabbitmqs_refusals_are_found_over_a_slow_link() {
    let setup = crate::brokers::Setup {
        files: &[("definitions.json", crate::rights::DEFINITIONS)],
        lines: &["load_definitions = FOLDER/definitions.json"],
    };
    let broker = tokio::task::block_in_place(|| Broker::with(Kind::Rabbitmq, &setup));
    let proxy = far_from(broker.addr());
    let far = async |login: &str| {
        let address = format!("rabbitmq://{login}@{}/{{metadata.to}}?exchange=events", proxy.addr());
        sink(&address).await.expect("a sink").0
    };
    let to = |number: usize| if number == 100 { "no.x".to_owned() } else { format!("yes.{}", number % 10) };
    let relay = far("relay:relay").await;
    let outcomes = produced(&*relay, 200, to).await;
    assert_eq!((confirmed(&outcomes, "ACCESS_REFUSED"), outcomes.len()), (199, 200));
    assert_ne!(outcomes[100], Outcome::Confirmed);
    let mut copies = HashMap::new();
    for body in crate::carried::arrived(&format!("rabbitmq://{}/all", broker.addr()), 199).await {
        *copies.entry(body).or_insert(0) += 1;
    }
    assert_eq!((copies.len(), copies.get("0100")), (199, None));
    assert!(copies.values().all(|copies| *copies <= 3), "{copies:?}");
    // Each message has a destination of its own, and all are forbidden.
    let outcomes = produced(&*relay, 60, |number| format!("no.{number}")).await;
    assert_eq!((confirmed(&outcomes, "ACCESS_REFUSED"), outcomes.len()), (0, 60));
    // The exchange is deleted while a sink uses it.
    let guest = far("guest:guest").await;
    let admin = format!("amqp://{}", broker.addr());
    let connection = lapin::Connection::connect(&admin, ConnectionProperties::default()).await.expect("connected");
    let channel = connection.create_channel().await.expect("a channel");
    channel.exchange_delete("events".into(), ExchangeDeleteOptions::default()).await.expect("deleted");
    let outcomes = produced(&*guest, 60, |number| format!("yes.{number}")).await;
    assert_eq!((confirmed(&outcomes, "NOT_FOUND"), outcomes.len()), (0, 60));
}

#[cfg(feature = "kafka")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn kafka_is_asked_many_questions_at_once_over_a_slow_link() {
    let mut proxy = None;
    let behind = |port: u16| proxy.insert(far_from(([127, 0, 0, 1], port).into())).addr().port();
    let broker = tokio::task::block_in_place(|| Broker::behind(Kind::Kafka, behind));
    // All but one of the topics are missing.
    let topic = crate::far::far(Kind::Kafka, &broker, "yes").await;
    let to = |number: usize| if number == 100 { "yes".to_owned() } else { format!("no-{number}") };
    let (sink, _) = sink(&format!("kafka://{}/{{metadata.to}}", broker.addr())).await.expect("a sink");
    let outcomes = produced(&*sink, 200, to).await;
    assert_eq!((confirmed(&outcomes, "no such topic"), outcomes.len()), (1, 200));
    assert_eq!((&outcomes[100], topic.read().await.len()), (&Outcome::Confirmed, 1));

    let mut config = rdkafka::ClientConfig::new();
    config.set("bootstrap.servers", broker.direct().to_string());
    let topic = NewTopic::new("s", PARTITIONS, TopicReplication::Fixed(1));
    let admin: AdminClient<DefaultClientContext> = config.create().expect("a client");
    let made = admin.create_topics(&[topic], &AdminOptions::new().operation_timeout(Some(IN_TIME))).await;
    made.expect("asked").pop().expect("an answer").expect("a topic");
    let source =
        async |addr: SocketAddr| trunkline_relay::source(&format!("kafka://{addr}/s")).await.expect("a source");
    let near = async || source(broker.direct()).await.read(None, 10).await.is_ok();
    until("all partitions have leaders", near).await;
    // After fifteen seconds without a report, another relay takes over the position.
    let mut far = source(broker.addr()).await;
    let read = timeout(Duration::from_secs(10), far.read(None, 10)).await;
    assert!(read.expect("in time").expect("read").is_empty());
}
