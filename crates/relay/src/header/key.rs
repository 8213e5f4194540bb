//! Conversion of keys. The queue's keys are text. Kafka's keys, and keys in headers of other
//! brokers, may be any bytes.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine};
use trunkline::Metadata;

use super::text_of;

/// The name of the header, and of the metadata entry, for the encoding of a key that is not text:
/// `base64`.
pub(crate) const KEY_ENCODING: &str = "trunkline-key-encoding";
pub(super) const BASE64: &str = "base64";

/// Returns a broker's key as text for the queue, and true if the text is base64.
pub(crate) fn text_of_key(bytes: &[u8]) -> (String, bool) {
    match text_of(bytes) {
        Some(text) => (text.to_owned(), false),
        None => (BASE64_STANDARD.encode(bytes), true),
    }
}

/// Returns a queue's key as bytes for the broker, or the reason why it cannot be decoded.
pub(crate) fn bytes_of_key<'a>(key: Option<&'a str>, metadata: &Metadata) -> Result<Option<Cow<'a, [u8]>>, String> {
    let Some(encoding) = metadata.get(KEY_ENCODING) else { return Ok(key.map(|key| key.as_bytes().into())) };
    let bytes = key.filter(|_| encoding == BASE64).and_then(bytes_in);
    let bytes = bytes.ok_or_else(|| {
        format!("the metadata's name {KEY_ENCODING:?} is the relay's own: it is \"base64\", of a key that is base64 of bytes that are no text")
    })?;
    Ok(Some(bytes.into()))
}

fn bytes_in(key: &str) -> Option<Vec<u8>> {
    let bytes = BASE64_STANDARD.decode(key).ok()?;
    (text_of_key(&bytes) == (key.to_owned(), true)).then_some(bytes)
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).ok()
}

/// Encodes a key for a header that cannot carry it unchanged.
pub(super) fn encode(key: &[u8]) -> String {
    BASE64_STANDARD.encode(key)
}
