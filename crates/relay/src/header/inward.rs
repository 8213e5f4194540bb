//! Converts the headers of a broker to metadata and key.

use std::{borrow::Cow, collections::HashMap};

use trunkline::Metadata;

use super::{
    Broker, Header, KEY_ENCODING, TOMBSTONE, TRUE, Value,
    escape::{Escaped, is_escaped},
    key, text_of, text_of_key,
};
use crate::outgoing::KEY;

/// The metadata and the key that a broker's headers are converted to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    pub metadata: Metadata,
    /// The key. Set only for brokers that carry the key as a header.
    pub key: Option<String>,
}

/// Names that the relay itself uses in metadata. A broker's header with such a name is escaped,
/// unless the header has the same meaning.
const MEANT: [&str; 3] = [KEY, KEY_ENCODING, TOMBSTONE];

/// Returns the metadata and the key. Headers that the relay wrote take precedence.
pub(crate) fn metadata<'a>(broker: &Broker, all: impl IntoIterator<Item = Header<'a>>) -> Headers {
    let (mut found, mut plain, mut escaped) = (Headers::default(), Vec::new(), Vec::new());
    let mut key: Option<Value<'_>> = None;
    let mut encoding = None;
    for header in all {
        let name = header.name().unwrap_or_default();
        match (name, &header.value) {
            (KEY, Value::Text(_) | Value::Bytes(_)) if broker.key_is_header && key.is_none() => {
                key = Some(header.value);
            }
            (KEY_ENCODING, Value::Text(text)) if broker.key_is_header && encoding.is_none() => {
                encoding = Some(text.clone());
            }
            (TOMBSTONE, Value::Text(text))
                if broker.key_is_header && text == TRUE && found.metadata.get(TOMBSTONE).is_none() =>
            {
                found.metadata.insert(TOMBSTONE, TRUE);
            }
            (_, Value::Text(text)) => match Escaped::decode(name, text) {
                Some(header) => escaped.push(header),
                None => plain.push(header),
            },
            _ => plain.push(header),
        }
    }
    let (key, unused) = read_key(key.as_ref(), encoding);
    if let Some((key, is_base64)) = key {
        if is_base64 {
            found.metadata.insert(KEY_ENCODING, key::BASE64);
        }
        found.key = Some(key);
    }
    plain.extend(unused);
    let mut counts: HashMap<Vec<u8>, u32> = HashMap::with_capacity(plain.len());
    let mut add = |name: Cow<'_, [u8]>, at_least: u32, value: Value<'_>| {
        let count = counts.entry(name.to_vec()).or_default();
        *count = at_least.max(count.saturating_add(1));
        let (name, text) = entry(Escaped { name, nth: *count, value });
        found.metadata.insert(name, text);
    };
    for Header { name, value } in plain {
        add(name, 1, value);
    }
    escaped.sort_by(|one, other| (&one.name, one.nth).cmp(&(&other.name, other.nth)));
    for Escaped { name, nth, value } in escaped {
        add(name, nth, value);
    }
    found
}

/// Returns the key. Also returns the header that names the encoding if the encoding does not apply.
fn read_key<'a>(
    key: Option<&Value<'a>>,
    encoding: Option<Cow<'a, str>>,
) -> (Option<(String, bool)>, Option<Header<'a>>) {
    let decoded = match (key, encoding.as_deref()) {
        (Some(Value::Text(text)), Some(key::BASE64)) => key::decode(text),
        _ => None,
    };
    if let Some(bytes) = decoded {
        return (Some(text_of_key(&bytes)), None);
    }
    let key = key.and_then(Value::bytes).map(text_of_key);
    (key, encoding.map(|encoding| Header::text(KEY_ENCODING, encoding)))
}

/// Returns true if metadata can contain a header under its own name.
pub(super) fn is_plain(header: &Escaped<'_>) -> bool {
    let (Some(name), Value::Text(_)) = (text_of(&header.name), &header.value) else { return false };
    header.nth == 1 && !MEANT.contains(&name) && !is_escaped(name.as_bytes())
}

fn entry(header: Escaped<'_>) -> (String, String) {
    if !is_plain(&header) {
        return header.encode();
    }
    let Escaped { name, value: Value::Text(text), .. } = header else { return header.encode() };
    (String::from_utf8_lossy(&name).into_owned(), text.into_owned())
}
