//! Large messages arrive a few at a time, so memory and transactions never hold a thousand of them.

use trunkline_relay::{Outcome, Outgoing};

use crate::brokers::{Broker, Kind};
#[cfg(any(feature = "kafka", feature = "rabbitmq"))]
use crate::far::far;

const MESSAGES: usize = 250;
const BYTES: usize = 150_000;
/// The maximum number of bytes per read, including its last message.
const MOST: usize = (16 << 20) + BYTES;

async fn read_in_parts(kind: Kind) {
    let broker = tokio::task::block_in_place(|| Broker::start(kind));
    let (out, from) = match kind {
        #[cfg(feature = "nats")]
        Kind::Nats => {
            let server = format!("nats://{}", broker.addr());
            crate::stand::make_stream(&server).await;
            (format!("{server}/s.x"), format!("{server}/s"))
        }
        Kind::Redis => (format!("redis://{}/s", broker.addr()), format!("redis://{}/s", broker.addr())),
        #[cfg(any(feature = "kafka", feature = "rabbitmq"))]
        kind => {
            let address = far(kind, &broker, "orders").await.address(broker.addr().port());
            (address.clone(), address)
        }
        #[allow(unreachable_patterns, reason = "which brokers are tested, the features say")]
        kind => unreachable!("{kind:?}"),
    };
    let (sink, route) = trunkline_relay::sink(&out).await.expect("a sink");
    let to = route.fixed().expect("the same for all");
    let all: Vec<_> = (0..MESSAGES).map(|at| Outgoing::new(format!("q/1/{at}"), to, vec![b'x'; BYTES])).collect();
    for some in all.chunks(50) {
        assert!(sink.produce(some).await.iter().all(|outcome| *outcome == Outcome::Confirmed));
    }
    let mut source = trunkline_relay::source(&from).await.expect("a source");
    let (mut after, mut read) = (None::<String>, 0);
    while read < MESSAGES {
        let some = source.read(after.as_deref(), 1000).await.expect("read");
        let bytes: usize = some.iter().map(|message| message.body.len()).sum();
        assert!(bytes <= MOST, "{bytes} at a time, of {} messages", some.len());
        read += some.len();
        after = some.last().map(|last| last.position.clone()).or(after);
    }
    assert_eq!(read, MESSAGES);
}

#[cfg(feature = "nats")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs NATS: see .ci/brokers"]
async fn nats_hands_large_messages_over_in_parts() {
    read_in_parts(Kind::Nats).await;
}

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis: see .ci/brokers"]
async fn redis_hands_large_messages_over_in_parts() {
    read_in_parts(Kind::Redis).await;
}

#[cfg(feature = "kafka")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka: see .ci/brokers"]
async fn kafka_hands_large_messages_over_in_parts() {
    read_in_parts(Kind::Kafka).await;
}

#[cfg(feature = "rabbitmq")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn rabbitmq_hands_large_messages_over_in_parts() {
    read_in_parts(Kind::Rabbitmq).await;
}
