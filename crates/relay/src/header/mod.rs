//! Headers: names and values beside a body, of every broker and both ways.
//!
//! Metadata has names with one text each. Brokers have more: bytes that are no text, names without
//! a value, a name several times; and names that they obey. What has no plain place on the other
//! side travels under a name that says what it is, `trunkline-header.NTH.KIND.NAME`, and is put
//! back where it can be: see [`escape`]. So it is carried exactly, or refused by name; it is never
//! changed, and no broker obeys metadata.

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

/// The metadata's name by which a message without a value, as Kafka has them, is known.
pub(crate) const TOMBSTONE: &str = "kafka-tombstone";
/// Its text.
pub(crate) const TRUE: &str = "true";

/// The field of a Redis entry with the payload.
pub(crate) const BODY: &str = "body";

/// A header, as a broker has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header<'a> {
    /// Text, but for Redis, whose names are any bytes.
    pub name: Cow<'a, [u8]>,
    pub value: Value<'a>,
}

/// A header's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// UTF-8 without a zero byte: what metadata can have.
    Text(Cow<'a, str>),
    /// Anything else.
    Bytes(Cow<'a, [u8]>),
    /// No value, which is not the empty one.
    Null,
    /// A value of AMQP's that is no text, number or truth, as JSON.
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

    /// The name, where it is text.
    pub fn name(&self) -> Option<&str> {
        std::str::from_utf8(&self.name).ok()
    }
}

impl<'a> Value<'a> {
    /// Text where it is some, else bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        match text_of(bytes) {
            Some(text) => Self::Text(text.into()),
            None => Self::Bytes(bytes.into()),
        }
    }

    /// What a broker with binary values stores of it.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::Bytes(bytes) => Some(bytes),
            Self::Null | Self::Amqp(_) => None,
        }
    }
}

/// Bytes as text, where Postgres can store them as such.
fn text_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
