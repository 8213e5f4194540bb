//! Keys. The queue's are text; Kafka's, and those in headers of other brokers, may be any bytes.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine};
use trunkline::Metadata;

use super::text_of;

/// The header, and the metadata's name, that says how a key is written that is no text: `base64`.
pub(crate) const KEY_ENCODING: &str = "trunkline-key-encoding";
pub(super) const BASE64: &str = "base64";

/// A broker's key as the queue has it, and whether it is base64.
pub(crate) fn text_of_key(bytes: &[u8]) -> (String, bool) {
    match text_of(bytes) {
        Some(text) => (text.to_owned(), false),
        None => (BASE64_STANDARD.encode(bytes), true),
    }
}

/// A queue's key as the broker is to have it, or why there is none.
pub(crate) fn bytes_of_key<'a>(key: Option<&'a str>, metadata: &Metadata) -> Result<Option<Cow<'a, [u8]>>, String> {
    let Some(encoding) = metadata.get(KEY_ENCODING) else { return Ok(key.map(|key| key.as_bytes().into())) };
    let bytes = key.filter(|_| encoding == BASE64).and_then(bytes_in);
    let bytes = bytes.ok_or_else(|| {
        format!("the metadata's name {KEY_ENCODING:?} is the relay's own: it is \"base64\", of a key that is base64 of bytes that are no text")
    })?;
    Ok(Some(bytes.into()))
}

/// The bytes that [`text_of_key`] has written so.
fn bytes_in(key: &str) -> Option<Vec<u8>> {
    let bytes = BASE64_STANDARD.decode(key).ok()?;
    (text_of_key(&bytes) == (key.to_owned(), true)).then_some(bytes)
}

/// The bytes of a key in a header.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).ok()
}

/// A key for a header that cannot have it plain.
pub(super) fn encode(key: &[u8]) -> String {
    BASE64_STANDARD.encode(key)
}
