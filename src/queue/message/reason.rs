//! The reason for a failure, as a text that can be stored. Only this file limits its length.

use std::fmt::Write;

/// The number of characters that are kept from the beginning of a long reason, and from its end.
const KEPT: usize = 8000;
/// The maximum length of a reason, in characters: enough for both ends and a line between them.
/// Tracebacks begin with the call and end with the error, so both ends are kept.
const LONGEST: usize = 16 << 10;

/// Returns a reason that Postgres can store: without NUL, and with at most 16,384 characters. In a
/// longer reason, a line states how many characters are omitted in the middle.
pub(crate) fn reason_of(text: impl Into<String>) -> String {
    let mut text: String = text.into();
    if let Some(bounded) = bounded(&text) {
        text = bounded;
    }
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

fn bounded(text: &str) -> Option<String> {
    if text.len() <= LONGEST {
        return None; // no character takes less than a byte
    }
    let count = text.chars().count();
    if count <= LONGEST {
        return None;
    }
    let left_out = count - 2 * KEPT;
    let head = text.char_indices().nth(KEPT).map_or(text.len(), |(at, _)| at);
    let tail = text.char_indices().nth_back(KEPT - 1).map_or(0, |(at, _)| at);
    Some(format!("{}\n... {left_out} characters left out ...\n{}", &text[..head], &text[tail..]))
}

/// Rewrites a reason in ASCII, for a server whose encoding lacks some of its characters.
pub(crate) fn in_ascii(reason: &str) -> String {
    reason.chars().fold(String::with_capacity(reason.len()), |mut ascii, c| {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            let _ = write!(ascii, "\\u{{{:x}}}", c as u32); // writing to a string cannot fail
        }
        ascii
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_reason_stays_unchanged() {
        let longest = "ä".repeat(LONGEST);
        for text in ["", "no", &longest] {
            assert_eq!(reason_of(text), text);
        }
        assert_eq!(reason_of("a\0b"), "a\u{fffd}b");
    }

    #[test]
    fn a_long_reason_keeps_its_head_and_its_tail() {
        for middle in ["x", "ä", "\u{1f600}"] {
            let reason = reason_of(format!("head{}tail", middle.repeat(1 << 20)));
            assert!(reason.starts_with("head") && reason.ends_with("tail"));
            assert!(reason.contains(&format!("\n... {} characters left out ...\n", (1 << 20) + 8 - 2 * KEPT)));
            assert!((2 * KEPT..LONGEST).contains(&reason.chars().count()));
            assert_eq!(reason_of(&*reason), reason, "once is enough");
        }
    }

    #[test]
    fn a_reason_in_ascii_can_be_read() {
        assert_eq!(in_ascii("caf\u{e9} \u{1f600}"), "caf\\u{e9} \\u{1f600}");
    }
}
