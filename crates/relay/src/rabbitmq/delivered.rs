//! Converts the messages that a stream delivers.

use bytes::Bytes;
use lapin::{
    BasicProperties,
    message::Delivery,
    types::{AMQPValue, FieldTable},
};

use crate::{
    header::{self, Broker, Header, Headers, Value},
    outgoing::ID,
    source::Incoming,
};

/// The consumer's argument with the start offset, and the header with a message's offset.
pub(super) const OFFSET: &str = "x-stream-offset";

pub(super) fn offset(delivery: &Delivery) -> Option<u64> {
    match delivery.properties.headers().as_ref()?.inner().get(OFFSET)? {
        AMQPValue::LongLongInt(offset) => u64::try_from(*offset).ok(),
        _ => None,
    }
}

pub(super) fn incoming(offset: u64, delivery: &Delivery) -> Incoming {
    let properties = &delivery.properties;
    let table = properties.headers().iter().flat_map(FieldTable::inner).filter(|(name, _)| name.as_str() != OFFSET);
    let table: Vec<_> = table.map(|(name, value)| Header::new(name.as_str(), value_of(value))).collect();
    let id = table.iter().find(|header| header.name() == Some(ID)).map(|header| &header.value);
    let mut own = properties_of(properties);
    // Omits the id that the relay itself set.
    own.retain(|header| header.name() != Some("message-id") || Some(&header.value) != id);
    // Omits headers that are equal to a property.
    let news: Vec<_> = table.iter().filter(|header| !own.contains(header)).cloned().collect();
    let Headers { metadata, key } = header::metadata(&Broker::RABBITMQ, own.into_iter().chain(news));
    Incoming { position: offset.to_string(), key, metadata, body: Bytes::copy_from_slice(&delivery.data) }
}

/// Returns the properties as headers, except the delivery mode.
fn properties_of(properties: &BasicProperties) -> Vec<Header<'_>> {
    let texts = [
        ("content-type", properties.content_type()),
        ("content-encoding", properties.content_encoding()),
        ("correlation-id", properties.correlation_id()),
        ("message-id", properties.message_id()),
        ("type", properties.kind()),
        ("reply-to", properties.reply_to()),
        ("expiration", properties.expiration()),
        ("user-id", properties.user_id()),
        ("app-id", properties.app_id()),
        ("cluster-id", properties.cluster_id()),
    ];
    let numbers = [("priority", properties.priority().map(u64::from)), ("timestamp", *properties.timestamp())];
    let texts = texts
        .into_iter()
        .filter_map(|(name, text)| Some(Header::new(name, Value::of(text.as_ref()?.as_str().as_bytes()))));
    texts
        .chain(numbers.into_iter().filter_map(|(name, number)| Some(Header::text(name, number?.to_string()))))
        .collect()
}

/// Converts a header's value: texts, numbers and booleans to text, other types to JSON.
fn value_of(value: &AMQPValue) -> Value<'_> {
    Value::Text(
        match value {
            AMQPValue::LongString(text) => return Value::of(text.as_bytes()),
            AMQPValue::ShortString(text) => return Value::of(text.as_str().as_bytes()),
            AMQPValue::Void => return Value::Null,
            AMQPValue::Boolean(truth) => truth.to_string(),
            AMQPValue::ShortShortInt(number) => number.to_string(),
            AMQPValue::ShortShortUInt(number) => number.to_string(),
            AMQPValue::ShortInt(number) => number.to_string(),
            AMQPValue::ShortUInt(number) => number.to_string(),
            AMQPValue::LongInt(number) => number.to_string(),
            AMQPValue::LongUInt(number) => number.to_string(),
            AMQPValue::LongLongInt(number) => number.to_string(),
            AMQPValue::Timestamp(seconds) => seconds.to_string(),
            AMQPValue::Float(number) => number.to_string(),
            AMQPValue::Double(number) => number.to_string(),
            AMQPValue::DecimalValue(_)
            | AMQPValue::FieldArray(_)
            | AMQPValue::FieldTable(_)
            | AMQPValue::ByteArray(_) => {
                return Value::Amqp(serde_json::to_string(value).unwrap_or_default().into());
            }
        }
        .into(),
    )
}
