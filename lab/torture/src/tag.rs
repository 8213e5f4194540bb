//! The payloads: a number that is unique within the run, and padding derived from it, which
//! reveals damage.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::plan::{KEYS, PRIORITIES, UNIQUE_KEYS};

/// The tag of a payload that is damaged, or that no process of the run made.
pub const DAMAGED: u64 = 0;

/// The tags of a process, derived from its number in the run, which is at least 1.
#[derive(Debug)]
pub struct Tags(AtomicU64);

impl Tags {
    pub fn of(nr: u64) -> Self {
        Self(AtomicU64::new((nr << 32) + 1))
    }

    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns the length of the padding. Most are short; the longest are stored out of line.
fn filling(tag: u64) -> usize {
    let number = tag.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    if number.is_multiple_of(61) { 5_000 } else { (number % 90) as usize }
}

pub fn payload(tag: u64) -> String {
    format!("{tag}:{}", "x".repeat(filling(tag)))
}

fn tag(payload: &str) -> u64 {
    let read = payload.split_once(':').and_then(|(tag, filled)| Some((tag.parse::<u64>().ok()?, filled)));
    match read {
        Some((tag, filled)) if filled.len() == filling(tag) && filled.bytes().all(|byte| byte == b'x') => tag,
        _ => DAMAGED,
    }
}

/// Returns the text in the metadata, under [`BESIDE`]. Most messages have no such text.
pub fn beside(tag: u64) -> Option<String> {
    tag.is_multiple_of(7).then(|| tag.to_string())
}

/// Returns the tag of a message whose payload and metadata are undamaged, otherwise [`DAMAGED`].
pub fn of(payload: &str, found: Option<&str>) -> u64 {
    let tag = tag(payload);
    if found == beside(tag).as_deref() { tag } else { DAMAGED }
}

pub const BESIDE: &str = "tag";

/// Returns the message's priority in queues with priorities.
pub fn priority(tag: u64) -> u8 {
    (tag % u64::from(PRIORITIES)) as u8
}

/// Returns the message's key in the queue with keys.
pub fn key(tag: u64) -> String {
    format!("key {}", tag % KEYS)
}

/// Returns the message's key in the queue with unique keys. Consecutive tags of one process race
/// for the same key.
pub fn unique(tag: u64) -> String {
    format!("unique {}", tag / 4 % UNIQUE_KEYS)
}

/// Returns the amount that a message adds to its account in the ledger.
pub fn amount(tag: u64) -> i64 {
    (tag % 89) as i64 + 1
}

/// Returns the message's account, one of 16.
pub fn account(tag: u64) -> i32 {
    (tag % 16) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_says_its_tag_and_damage_shows() {
        for tag in (5 << 32..).take(200) {
            let payload = payload(tag);
            let (beside, other) = (beside(tag), (!tag.is_multiple_of(7)).then_some("7"));
            assert_eq!(of(&payload, beside.as_deref()), tag);
            assert_eq!(of(&payload, other), DAMAGED, "its metadata is lost, or another's");
            assert_eq!(of(&format!("{payload}x"), beside.as_deref()), DAMAGED);
        }
        assert_eq!(of("hello", None), DAMAGED);
    }
}
