use std::collections::BTreeMap;

use futures_util::StreamExt;
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    options::{BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions},
    types::{AMQPValue, FieldArray, FieldTable},
};
use trunkline::Draft;

use super::{carry, fetch, queues, there_and_back};
use crate::{
    brokers::{Broker, Kind},
    far::far,
};

async fn channel(broker: &Broker) -> (Channel, Connection) {
    let address = format!("amqp://{}", broker.addr());
    let connection = Connection::connect(&address, ConnectionProperties::default()).await.expect("connected");
    (connection.create_channel().await.expect("a channel"), connection)
}

/// Returns the headers of the first message of a stream.
async fn first(broker: &Broker, stream: &str) -> BTreeMap<String, AMQPValue> {
    let (channel, _connection) = channel(broker).await;
    channel.basic_qos(1, BasicQosOptions::default()).await.expect("asked");
    let mut arguments = FieldTable::default();
    arguments.insert("x-stream-offset".into(), AMQPValue::LongString("first".into()));
    let consumer = channel.basic_consume(stream.into(), "".into(), BasicConsumeOptions::default(), arguments).await;
    let delivery = consumer.expect("a consumer").next().await.expect("one").expect("a message");
    delivery.ack(BasicAckOptions::default()).await.expect("acknowledged");
    let headers = delivery.properties.headers().clone().unwrap_or_default();
    headers.inner().iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn metadata_comes_back_from_rabbitmq_and_is_never_obeyed() {
    let broker = Broker::start(Kind::Rabbitmq);
    let _streams = (far(Kind::Rabbitmq, &broker, "s").await, far(Kind::Rabbitmq, &broker, "nowhere").await);
    let address = format!("rabbitmq://{}/s", broker.addr());
    there_and_back(&address, &address, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs RabbitMQ: see .ci/brokers"]
async fn stream_is_copied_with_headers_of_each_kind() {
    let broker = Broker::start(Kind::Rabbitmq);
    let _streams = (far(Kind::Rabbitmq, &broker, "s").await, far(Kind::Rabbitmq, &broker, "copy").await);
    let (channel, _connection) = channel(&broker).await;
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("asked");
    let mut table = FieldTable::default();
    let long = |bytes: &[u8]| AMQPValue::LongString(bytes.into());
    for (name, value) in [
        ("text", long(b"a")),
        ("bytes", long(b"\0\xff")),
        ("void", AMQPValue::Void),
        ("array", AMQPValue::FieldArray(FieldArray::from(vec![long(b"x"), AMQPValue::LongInt(7)]))),
        ("number", AMQPValue::LongInt(42)),
        ("x-death", long(b"forged")),
        ("trunkline-key", long(b"k")),
    ] {
        table.insert(name.into(), value);
    }
    let properties = BasicProperties::default()
        .with_headers(table)
        .with_content_type("text/plain".into())
        .with_correlation_id("c".into())
        .with_expiration("60000".into())
        .with_priority(3);
    let published =
        channel.basic_publish("".into(), "s".into(), BasicPublishOptions::default(), b"body", properties).await;
    published.expect("sent").await.expect("confirmed");
    let there = first(&broker, "s").await;
    let (_, back) = queues().await;
    let all = fetch(&back, &format!("rabbitmq://{}/s", broker.addr()), 1).await;
    let metadata = all[0].metadata.clone();
    for (name, text) in [
        ("text", "a"),
        ("number", "42"),
        ("trunkline-key", "k"),
        ("content-type", "text/plain"),
        ("correlation-id", "c"),
        ("priority", "3"),
    ] {
        assert_eq!(metadata.get(name), Some(text), "{metadata:?}");
    }
    back.enqueue_many(all.into_iter().map(|one| Draft::new(one.payload).metadata(one.metadata))).await.expect("again");
    carry(&back, &format!("rabbitmq://{}/copy", broker.addr())).await;
    let mut copied = first(&broker, "copy").await;
    assert_eq!(copied.remove("trunkline-header.1.text.x-death"), Some(long(b"forged")), "{copied:?}");
    for (name, value) in there {
        match &*name {
            "x-death" => assert!(!copied.contains_key("x-death")),
            "number" => assert_eq!(copied[&name], long(b"42")),
            "x-stream-offset" => {}
            _ => assert_eq!(copied.get(&name), Some(&value), "{name} of {copied:?}"),
        }
    }
}
