//! A RabbitMQ stream drops messages while a relay reads it. The relay ends with an error, or
//! continues if its address accepts gaps.

use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};
use trunkline_relay::Source;

use crate::brokers::{Broker, Kind};

/// The number of messages that are written while the stream is read. The broker sends fewer of them
/// in advance, and the stream keeps fewer.
const MESSAGES: usize = 400;
/// The size of a message. For messages of this size, a source keeps its consumer.
const BYTES: usize = 50_000;

struct Stream {
    channel: Channel,
    _connection: Connection,
}

impl Stream {
    /// Declares a stream `s` that keeps one or two segments of about ten messages.
    async fn declare(broker: &Broker) -> Self {
        let address = format!("amqp://{}", broker.addr());
        let connection = Connection::connect(&address, ConnectionProperties::default()).await.expect("connected");
        let channel = connection.create_channel().await.expect("a channel");
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("stream".into()));
        arguments.insert("x-stream-max-segment-size-bytes".into(), AMQPValue::LongLongInt(500_000));
        arguments.insert("x-max-length-bytes".into(), AMQPValue::LongLongInt(1_000_000));
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare("s".into(), durable, arguments).await.expect("declared");
        channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirming");
        Self { channel, _connection: connection }
    }

    async fn publish(&self, messages: usize, body: &[u8]) {
        let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
        for _ in 0..messages {
            let sent = self.channel.basic_publish("".into(), "s".into(), options, body, properties.clone()).await;
            assert!(sent.expect("sent").await.expect("an answer").is_ack());
        }
    }
}

/// Reads until a message with this body. Returns the number of messages before it.
async fn read_until(
    source: &mut dyn Source,
    after: &mut Option<String>,
    last: &[u8],
) -> trunkline_relay::Result<usize> {
    let mut messages = 0;
    loop {
        let read = source.read(after.as_deref(), 1000).await?;
        *after = read.last().map(|last| last.position.clone()).or(after.take());
        messages += read.len();
        if read.last().is_some_and(|read| read.body == last) {
            return Ok(messages - 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn gap_made_while_reading_ends_relay_after_earlier_messages() {
    let broker = tokio::task::block_in_place(|| Broker::start(Kind::Rabbitmq));
    let stream = Stream::declare(&broker).await;
    let source = async |options: &str| {
        let address = format!("rabbitmq://{}/s{options}", broker.addr());
        trunkline_relay::source(&address).await.expect("a source")
    };
    let (mut source, mut accepts) = (source("").await, source("?accept-gap=true").await);
    let (mut after, mut also, body) = (None, None, vec![b'x'; BYTES]);
    let first = vec![b'y'; BYTES];
    stream.publish(4, &body).await;
    stream.publish(1, &first).await;
    assert_eq!(read_until(&mut *source, &mut after, &first).await.expect("read"), 4);
    assert_eq!(read_until(&mut *accepts, &mut also, &first).await.expect("read"), 4);
    stream.publish(MESSAGES, &body).await;
    stream.publish(1, b"last").await;
    let error = read_until(&mut *source, &mut after, b"last").await.expect_err("messages are missing");
    let before: u64 = after.expect("a position").parse().expect("an offset");
    assert!(before > 50, "the messages that were on their way are read: {before}");
    let words = format!("messages are gone, {} to ", before + 1);
    assert!(error.is_gap() && error.to_string().contains(&words), "{error}, not {words}");
    assert!(read_until(&mut *accepts, &mut also, b"last").await.expect("it goes on") < MESSAGES);
}
