//! The rules of each broker: the headers that it accepts, the header names that it acts on, and the
//! names that the relay uses.

use super::{KEY_ENCODING, TOMBSTONE, Value, destination};
use crate::outgoing::{ATTEMPT, ID, KEY};

#[expect(clippy::struct_excessive_bools, reason = "each is a rule by itself")]
pub(crate) struct Broker {
    pub name: &'static str,
    /// Returns true for names that the broker or its client acts on, or that one of them sets.
    is_order: fn(&str) -> bool,
    /// The names that the relay writes.
    own: &'static [&'static str],
    takes_name: fn(&[u8]) -> bool,
    takes_text: fn(&str) -> bool,
    takes_bytes: bool,
    takes_null: bool,
    takes_amqp: bool,
    /// True if a message may have several headers with the same name.
    pub repeats: bool,
    /// The maximum number of bytes per name.
    pub longest_name: usize,
    /// True if one header carries the key, and another one marks a missing value.
    pub key_is_header: bool,
    /// Checks a destination. Fails with the reason if no message can be sent to it.
    pub destination: fn(&str) -> Result<(), String>,
}

const OWN: &[&str] = &[ID, ATTEMPT, KEY, KEY_ENCODING, TOMBSTONE];

impl Broker {
    pub const NATS: Self = Self {
        name: "NATS",
        is_order: |name| starts(name, "nats-") || name.eq_ignore_ascii_case("kv-operation"),
        own: OWN,
        takes_name: |name| !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':'),
        // Excludes values with white space at an end: clients trim values, and some trim all
        // Unicode white space.
        takes_text: |text| !text.chars().any(char::is_control) && text.trim().len() == text.len(),
        takes_bytes: false,
        takes_null: false,
        takes_amqp: false,
        repeats: true,
        longest_name: usize::MAX,
        key_is_header: true,
        destination: destination::subject,
    };

    pub const REDIS: Self = Self {
        name: "Redis",
        is_order: |name| name == crate::header::BODY,
        own: OWN,
        takes_name: |_| true,
        takes_text: |_| true,
        takes_bytes: true,
        takes_null: false,
        takes_amqp: false,
        repeats: true,
        longest_name: usize::MAX,
        key_is_header: true,
        destination: destination::stream,
    };

    pub const KAFKA: Self = Self {
        name: "Kafka",
        is_order: |_| false,
        own: &[ID, ATTEMPT],
        // Excludes zero bytes, because the client passes names as C strings.
        takes_name: |name| std::str::from_utf8(name).is_ok() && !name.contains(&0),
        takes_text: |_| true,
        takes_bytes: true,
        takes_null: true,
        takes_amqp: false,
        repeats: true,
        longest_name: usize::MAX,
        key_is_header: false,
        destination: destination::topic,
    };

    pub const RABBITMQ: Self = Self {
        name: "RabbitMQ",
        // Names that begin with x- are reserved for the broker's plugins, streams and dead letters.
        is_order: |name| starts(name, "x-") || name.eq_ignore_ascii_case("cc") || name.eq_ignore_ascii_case("bcc"),
        own: OWN,
        takes_name: |name| std::str::from_utf8(name).is_ok_and(|name| name.len() <= 255),
        takes_text: |_| true,
        takes_bytes: true,
        takes_null: true,
        takes_amqp: true,
        repeats: false,
        longest_name: 255,
        key_is_header: true,
        destination: destination::routing_key,
    };

    /// Returns true if the broker carries the header unchanged and does not act on it.
    pub fn takes(&self, name: &[u8], value: &Value<'_>) -> bool {
        let text = std::str::from_utf8(name);
        let is_taken = |name: &&str| self.own.iter().any(|own| own.eq_ignore_ascii_case(name)) || (self.is_order)(name);
        if text.as_ref().is_ok_and(is_taken) || !(self.takes_name)(name) {
            return false;
        }
        match value {
            Value::Text(text) => (self.takes_text)(text),
            Value::Bytes(_) => self.takes_bytes,
            Value::Null => self.takes_null,
            Value::Amqp(_) => self.takes_amqp,
        }
    }

    /// Returns true if the broker carries the key unchanged.
    pub fn takes_key(&self, key: &[u8]) -> bool {
        super::text_of(key).is_some_and(self.takes_text)
    }
}

fn starts(name: &str, with: &str) -> bool {
    name.as_bytes().get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
}
