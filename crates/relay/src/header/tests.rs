//! Metadata and headers survive a round trip unchanged, or the relay refuses the message and names
//! the header. No broker acts on a header.

use proptest::{collection::vec, prelude::*, sample::select};
use trunkline::Metadata;

use super::{Broker, Header, Headers, KEY_ENCODING, TOMBSTONE, Value, headers, metadata, text_of_key};
use crate::outgoing::{ATTEMPT, ID, KEY, Outgoing};

const BROKERS: [&Broker; 4] = [&Broker::NATS, &Broker::REDIS, &Broker::KAFKA, &Broker::RABBITMQ];

/// Names that brokers act on or that the relay uses, and names that no broker can carry.
const NAMES: &[&str] = &[
    "Nats-Rollup",
    "nats-ttl",
    "NATS-EXPECTED-STREAM",
    "Nats-Msg-Id",
    "KV-Operation",
    "nats-subject",
    "CC",
    "bcc",
    "x-delay",
    "X-Death",
    "x-stream-offset",
    "body",
    ID,
    ATTEMPT,
    KEY,
    KEY_ENCODING,
    TOMBSTONE,
    "Trunkline-Id",
    "content-type",
    "message-id",
    "type",
    "tenant",
    "",
    " ",
    "a b",
    "a:b",
    "%41",
    "ü",
    "line\nbreak",
    "trunkline-header.",
    "trunkline-header.1.text.a",
    "trunkline-header.2.text.tenant",
    "trunkline-header.1.text.CC",
    "trunkline-header.1.base64.b",
    "trunkline-header.3.null.tenant",
    "trunkline-header.01.text.a",
];
const TEXTS: &[&str] = &[
    "",
    "all",
    "sub",
    " x",
    "x\t",
    "\u{a0}",
    "a\r\nNats-Rollup: all",
    "true",
    "base64",
    "/w==",
    "AA==",
    "%0A",
    "ü\u{85}",
    "a.b",
];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![3 => select(NAMES).prop_map(str::to_owned), 1 => "[^\0]{0,8}", 1 => "trunkline-header\\.[0-3]\\.(text|base64|null|amqp)\\.[a-cC%0-9.]{0,4}"]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![2 => select(TEXTS).prop_map(str::to_owned), 1 => "[^\0]{0,12}"]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![text().prop_map(String::into_bytes), vec(any::<u8>(), 0..6)]
}

fn outgoing(metadata: Metadata, key: Option<String>) -> Outgoing {
    let key = key.map(Into::into);
    Outgoing { key, metadata, ..Outgoing::new("q/1/1", "to", "body") }
}

/// Orders headers as a broker does: headers with the same name keep their order, and RabbitMQ sorts
/// by name.
fn over<'a>(broker: &Broker, mut all: Vec<Header<'a>>) -> Vec<Header<'a>> {
    for header in &all {
        if broker.name == "NATS" {
            let Value::Text(text) = &header.value else { panic!("{header:?}") };
            assert_eq!(text.trim(), &**text);
        }
    }
    if !broker.repeats {
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let names = all.len();
        all.dedup_by(|one, other| one.name == other.name);
        assert_eq!(all.len(), names, "a name is there once");
    }
    all
}

/// Returns the headers that the relay did not write.
fn foreign(broker: &Broker, all: &[Header<'_>]) -> Vec<Header<'static>> {
    let names = if broker.key_is_header { &[ID, ATTEMPT, KEY, KEY_ENCODING][..] } else { &[ID, ATTEMPT] };
    let own = |header: &&Header<'_>| !names.contains(&header.name().unwrap_or_default());
    let owned = |value: &Value<'_>| match value {
        Value::Text(text) => Value::Text(text.clone().into_owned().into()),
        Value::Bytes(bytes) => Value::Bytes(bytes.clone().into_owned().into()),
        Value::Null => Value::Null,
        Value::Amqp(json) => Value::Amqp(json.clone().into_owned().into()),
    };
    let header = |header: &Header<'_>| Header { name: header.name.to_vec().into(), value: owned(&header.value) };
    all.iter().filter(own).map(header).collect()
}

#[test]
fn no_header_is_one_that_a_broker_obeys() {
    for (broker, name) in [
        (&Broker::NATS, "Nats-Rollup"),
        (&Broker::NATS, "nats-expected-last-msg-id"),
        (&Broker::RABBITMQ, "CC"),
        (&Broker::RABBITMQ, "BCC"),
        (&Broker::RABBITMQ, "x-delay"),
        (&Broker::REDIS, "body"),
    ] {
        let message = outgoing(Metadata::new().with(name, "all"), None);
        let sent = headers(broker, &message).expect("carried");
        let [header] = &foreign(broker, &sent)[..] else { panic!("{sent:?}") };
        assert_eq!(header, &Header::text(format!("trunkline-header.1.text.{name}"), "all"), "{}", broker.name);
    }
}

#[test]
fn what_brokers_have_and_metadata_has_not_is_put_back() {
    let all = vec![
        Header::text("a", "1"),
        Header::text("a", "2"),
        Header::new("n", Value::Null),
        Header::new("z", Value::Bytes(b"\0\x2a".into())),
        Header::text("a", "3"),
    ];
    let Headers { metadata, .. } = metadata(&Broker::KAFKA, all);
    let expected = [
        ("a", "1"),
        ("trunkline-header.1.base64.z", "ACo="),
        ("trunkline-header.1.null.n", ""),
        ("trunkline-header.2.text.a", "2"),
        ("trunkline-header.3.text.a", "3"),
    ];
    assert_eq!(metadata.iter().collect::<Vec<_>>(), expected);
}

proptest! {
    #[test]
    fn metadata_comes_back_or_is_refused_by_name(
        entries in vec((name(), text()), 0..5),
        key in proptest::option::of(bytes()),
    ) {
        let mut all: Metadata = entries.into_iter().collect();
        let key = key.map(|key| text_of_key(&key));
        if let Some((_, true)) = key {
            all.insert(KEY_ENCODING, "base64");
        }
        let message = outgoing(all.clone(), key.map(|(key, _)| key));
        for broker in BROKERS {
            let sent = match headers(broker, &message) {
                Ok(sent) => sent,
                Err(why) => {
                    prop_assert!(all.iter().any(|(name, _)| why.contains(&format!("{name:?}"))), "{why}");
                    prop_assert!(all.iter().any(|(name, _)| name.starts_with("trunkline-") || name == TOMBSTONE), "{why}");
                    continue;
                }
            };
            for header in foreign(broker, &sent) {
                let is_marker = header.name() == Some(TOMBSTONE);
                prop_assert!(is_marker || broker.takes(&header.name, &header.value), "{} obeys {header:?}", broker.name);
            }
            let mut back = metadata(broker, over(broker, sent.clone()));
            if !broker.key_is_header {
                back.key = message.key.as_deref().map(str::to_owned);
                let encoding = all.get(KEY_ENCODING).map(str::to_owned);
                if let Some(encoding) = encoding {
                    back.metadata.insert(KEY_ENCODING, encoding);
                }
            }
            prop_assert_eq!(back.metadata.remove(ID), Some("q/1/1".into()));
            prop_assert_eq!(back.metadata.remove(ATTEMPT), Some("1".into()));
            let mut expected = all.clone();
            expected.remove(ID);
            expected.remove(ATTEMPT);
            prop_assert_eq!(&back.metadata, &expected, "{} had {:?}", broker.name, sent);
            prop_assert_eq!(back.key.as_deref(), message.key.as_deref());
        }
    }

    #[test]
    fn headers_of_a_broker_come_back_or_are_never_obeyed(
        all in vec((bytes(), prop_oneof![bytes().prop_map(Some), Just(None)]), 0..6),
        names in vec(name(), 0..6),
    ) {
        let names = names.into_iter().map(String::into_bytes).chain(all.iter().map(|(name, _)| name.clone()));
        let all: Vec<_> = names.zip(all.iter().cycle().map(|(_, value)| value)).collect();
        for broker in BROKERS {
            let value = |value: &'_ Option<Vec<u8>>| value.clone().map_or(Value::Null, |value| match super::text_of(&value) {
                Some(text) => Value::Text(text.to_owned().into()),
                None => Value::Bytes(value.into()),
            });
            let header = |(name, of): &(Vec<u8>, &Option<Vec<u8>>)| Header { name: name.clone().into(), value: value(of) };
            // Keeps the headers that the broker can carry and that the relay did not write.
            let mut there: Vec<_> = all.iter().map(header).filter(|header| broker.takes(&header.name, &header.value)).collect();
            there.sort_by(|one, other| one.name.cmp(&other.name));
            if !broker.repeats {
                there.dedup_by(|one, other| one.name == other.name);
            }
            let found = metadata(broker, there.clone());
            let message = outgoing(found.metadata, found.key);
            let sent = headers(broker, &message).expect("what came in goes out");
            let mut back = foreign(broker, &sent);
            back.sort_by(|one, other| one.name.cmp(&other.name));
            // Compares only if no header is escaped, because an escaped header becomes the original
            // header again.
            let is_plain = |header: &Header<'_>| !super::escape::is_escaped(&header.name);
            if there.iter().all(is_plain) {
                prop_assert_eq!(&back, &there, "{}", broker.name);
            }
            let again = metadata(broker, over(broker, sent.clone()));
            let mut twice = again.metadata;
            twice.remove(ID);
            twice.remove(ATTEMPT);
            let mut once = message.metadata.clone();
            once.remove(ID);
            once.remove(ATTEMPT);
            prop_assert_eq!(twice, once, "{}", broker.name);
        }
    }
}
