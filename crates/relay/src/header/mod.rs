//! Headers: names and values that accompany a body, for every broker and both directions.
//!
//! Metadata has one text per name. Brokers allow more: bytes that are not text, names without a
//! value, repeated names, and names that they act on. A header that the other side cannot carry
//! unchanged travels under a name that describes it, `trunkline-header.NTH.KIND.NAME`, and is
//! decoded where possible: see [`escape`]. So a header arrives exactly, or the message is refused
//! with the header's name. The relay never changes a header, and no broker acts on metadata.

#![cfg_attr(
    not(all(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis")),
    allow(dead_code, unused_imports, reason = "each broker uses its part")
)]

mod broker;
mod destination;
mod escape;
mod inward;
mod key;
mod outward;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub(crate) use self::{
    broker::Broker,
    inward::{Headers, metadata},
    key::{KEY_ENCODING, bytes_of_key, text_of_key},
    outward::headers,
};

/// The name in the metadata that marks a message without a value, as in Kafka.
pub(crate) const TOMBSTONE: &str = "kafka-tombstone";
pub(crate) const TRUE: &str = "true";

/// The field of a Redis entry that contains the payload.
pub(crate) const BODY: &str = "body";

/// A header of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header<'a> {
    /// The name. It is text, except for Redis, which allows any bytes as a name.
    pub name: Cow<'a, [u8]>,
    pub value: Value<'a>,
}

/// A header's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// UTF-8 without a zero byte, which metadata can carry.
    Text(Cow<'a, str>),
    /// Any other bytes.
    Bytes(Cow<'a, [u8]>),
    /// No value. This is different from an empty value.
    Null,
    /// Any other AMQP value (a decimal, an array, a table or a byte array), as JSON.
    Amqp(Cow<'a, str>),
}

impl<'a> Header<'a> {
    pub fn new(name: impl Into<Cow<'a, str>>, value: Value<'a>) -> Self {
        let name = match name.into() {
            Cow::Borrowed(name) => Cow::Borrowed(name.as_bytes()),
            Cow::Owned(name) => Cow::Owned(name.into_bytes()),
        };
        Self { name, value }
    }

    pub fn text(name: impl Into<Cow<'a, str>>, text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(name, Value::Text(text.into()))
    }

    pub fn name(&self) -> Option<&str> {
        std::str::from_utf8(&self.name).ok()
    }
}

impl<'a> Value<'a> {
    /// Returns a text value if the bytes are text, otherwise a byte value.
    pub fn of(bytes: &'a [u8]) -> Self {
        match text_of(bytes) {
            Some(text) => Self::Text(text.into()),
            None => Self::Bytes(bytes.into()),
        }
    }

    /// Returns the value's bytes, for a broker with binary values.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::Bytes(bytes) => Some(bytes),
            Self::Null | Self::Amqp(_) => None,
        }
    }
}

/// Returns bytes as text, if PostgreSQL can store them as text.
fn text_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
