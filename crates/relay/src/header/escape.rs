//! The escaped form `trunkline-header.NTH.KIND.NAME` of a header that the other side cannot carry
//! unchanged. It occurs in metadata and in brokers' headers.
//!
//! NTH counts the headers with the same name from 1. KIND is `text`, `base64` (bytes that are not
//! text), `null` or `amqp`. NAME and text values are graphic ASCII, and everything else is
//! percent-encoded, such as `%0A`.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};

use super::{Value, text_of};

const PREFIX: &str = "trunkline-header.";
const MOST: u32 = 1 << 20;
const PLAIN: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b':');

/// A header, and its number among the headers with the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Escaped<'a> {
    pub name: Cow<'a, [u8]>,
    pub nth: u32,
    pub value: Value<'a>,
}

impl<'a> Escaped<'a> {
    pub fn first(name: Cow<'a, [u8]>, value: Value<'a>) -> Self {
        Self { name, nth: 1, value }
    }

    pub fn encode(&self) -> (String, String) {
        let escaped = |text: &str| percent_encode(text.as_bytes(), PLAIN).to_string();
        let (kind, text) = match &self.value {
            Value::Text(text) => ("text", escaped(text)),
            Value::Bytes(bytes) => ("base64", BASE64_STANDARD.encode(bytes)),
            Value::Null => ("null", String::new()),
            Value::Amqp(json) => ("amqp", escaped(json)),
        };
        (format!("{PREFIX}{}.{kind}.{}", self.nth, percent_encode(&self.name, PLAIN)), text)
    }

    /// Decodes a name and a value that [`Escaped::encode`] produced. Returns `None` for any other
    /// form, so each header has exactly one escaped form.
    pub fn decode(name: &str, text: &str) -> Option<Escaped<'static>> {
        let Parts { nth, kind, name: of } = Parts::of(name)?;
        let text_in = |text: &str| text_of(&plain(text)).map(|text| Cow::Owned(text.to_owned()));
        let value = match kind {
            Encoding::Text => Value::Text(text_in(text)?),
            Encoding::Base64 => Value::Bytes(Cow::Owned(BASE64_STANDARD.decode(text).ok()?)),
            Encoding::Null => Value::Null,
            Encoding::Amqp => Value::Amqp(text_in(text)?),
        };
        let is_text = matches!(&value, Value::Bytes(bytes) if text_of(bytes).is_some());
        let decoded = Escaped { name: Cow::Owned(of), nth, value };
        let same = decoded.encode();
        (!is_text && (&*same.0, &*same.1) == (name, text)).then_some(decoded)
    }
}

/// Returns true if a name has the escaped form, whatever its value is. No other header may have
/// such a name.
pub(super) fn is_escaped(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| Parts::of(name).is_some())
}

struct Parts {
    nth: u32,
    kind: Encoding,
    name: Vec<u8>,
}

enum Encoding {
    Text,
    Base64,
    Null,
    Amqp,
}

impl Parts {
    fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(3, '.');
        let nth = parts.next()?.parse().ok().filter(|nth| (1..=MOST).contains(nth))?;
        let kind = match parts.next()? {
            "text" => Encoding::Text,
            "base64" => Encoding::Base64,
            "null" => Encoding::Null,
            "amqp" => Encoding::Amqp,
            _ => return None,
        };
        Some(Self { nth, kind, name: plain(parts.next()?) })
    }
}

fn plain(text: &str) -> Vec<u8> {
    percent_decode_str(text).collect()
}
