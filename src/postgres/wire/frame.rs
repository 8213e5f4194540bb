//! Functions that split bytes into protocol messages.

use std::ops::Range;

/// A message from the server: its type and its body.
pub(crate) type Frame<'a> = (u8, &'a [u8]);

/// Returns an iterator over the complete messages at the start of `bytes`.
pub(crate) fn frames(bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    frames_at(bytes, 0).map(|(kind, body)| (kind, &bytes[body]))
}

/// Returns an iterator over the complete messages that start at offset `at`. For each message,
/// returns the type and the position of the body.
pub(crate) fn frames_at(bytes: &[u8], mut at: usize) -> impl Iterator<Item = (u8, Range<usize>)> + '_ {
    std::iter::from_fn(move || {
        let rest = bytes.get(at..)?;
        let length = length(rest).filter(|length| (SHORTEST..=rest.len()).contains(length))?;
        let body = at + 5..at + length;
        at += length;
        Some((rest[0], body))
    })
}

/// The length of a message without a body: one byte for the type and four bytes for the length.
pub(crate) const SHORTEST: usize = 5;

/// Returns the length of the first message in `bytes`, including the type and the length field.
/// Returns `None` if the header is incomplete.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let [_, length @ ..] = *bytes.first_chunk::<SHORTEST>()?;
    Some((u32::from_be_bytes(length) as usize).saturating_add(1))
}

/// Returns the first two texts in the body of a message. Each text ends with a NUL.
pub(crate) fn texts(body: &[u8]) -> Option<(String, String)> {
    let mut texts = body.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    Some((texts.next()?, texts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_are_cut_and_a_part_is_left() {
        let bytes = b"C\0\0\0\x06abZ\0\0\0\x05ID\0\0\0\x09ab";
        let cut: Vec<_> = frames(bytes).collect();
        assert_eq!(cut, [(b'C', &b"ab"[..]), (b'Z', &b"I"[..])]);
        assert_eq!(frames_at(bytes, 7).collect::<Vec<_>>(), [(b'Z', 12..13)]);
        assert_eq!(frames(b"C\0\0\0\x03abcdef").count(), 0, "a length below the shortest ends it");
        assert_eq!(frames(b"").count() + frames(b"Z\0\0").count() + frames_at(bytes, 99).count(), 0);
    }
}
