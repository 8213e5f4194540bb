//! What each broker takes as a header, which names it obeys, and which are the relay's.

use super::{KEY_ENCODING, TOMBSTONE, Value, destination};
use crate::outgoing::{ATTEMPT, ID, KEY};

/// A broker's rules.
#[expect(clippy::struct_excessive_bools, reason = "each is a rule by itself")]
pub(crate) struct Broker {
    pub name: &'static str,
    /// Names that the broker, or its own client, takes for orders or has a use for.
    is_order: fn(&str) -> bool,
    /// Names that the relay itself writes.
    own: &'static [&'static str],
    takes_name: fn(&[u8]) -> bool,
    takes_text: fn(&str) -> bool,
    takes_bytes: bool,
    takes_null: bool,
    takes_amqp: bool,
    /// Whether it can have a name several times.
    pub repeats: bool,
    /// Bytes of a name at most.
    pub longest_name: usize,
    /// Whether the key is a header, and a missing value a header, too.
    pub key_is_header: bool,
    /// Errs with the reason where a message can never go to that place.
    pub destination: fn(&str) -> Result<(), String>,
}

const OWN: &[&str] = &[ID, ATTEMPT, KEY, KEY_ENCODING, TOMBSTONE];

impl Broker {
    pub const NATS: Self = Self {
        name: "NATS",
        is_order: |name| starts(name, "nats-") || name.eq_ignore_ascii_case("kv-operation"),
        own: OWN,
        takes_name: |name| !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':'),
        // Clients trim values, some all that Unicode has for white space.
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
        // Its client hands names over as C has them.
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
        // What begins with x- is for its plugins, its streams and its dead letters.
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

    /// Whether it can have that header as it is, without doing what it says.
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

    /// Whether it can have a key as it is.
    pub fn takes_key(&self, key: &[u8]) -> bool {
        super::text_of(key).is_some_and(self.takes_text)
    }
}

fn starts(name: &str, with: &str) -> bool {
    name.as_bytes().get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
}
