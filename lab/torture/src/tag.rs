//! The payloads: a number that no other message of the run has, and a filling that follows from it,
//! so that damage shows.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::plan::{KEYS, PRIORITIES, UNIQUE_KEYS};

/// Which of no message: a payload that is none of ours, or is damaged.
pub const DAMAGED: u64 = 0;

/// The tags of a process: `nr` is its own in the run, at least 1.
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

/// Mostly short; some are kept out of line by the server.
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

/// The text beside the payload, under [`BESIDE`]; most have none.
pub fn beside(tag: u64) -> Option<String> {
    tag.is_multiple_of(7).then(|| tag.to_string())
}

/// The tag of a message that is as it was enqueued, payload and metadata.
pub fn of(payload: &str, found: Option<&str>) -> u64 {
    let tag = tag(payload);
    if found == beside(tag).as_deref() { tag } else { DAMAGED }
}

/// The name in the metadata.
pub const BESIDE: &str = "tag";

/// In queues with priorities.
pub fn priority(tag: u64) -> u8 {
    (tag % u64::from(PRIORITIES)) as u8
}

/// In the queue with keys.
pub fn key(tag: u64) -> String {
    format!("key {}", tag % KEYS)
}

/// In the queue with unique keys: those of one process that follow each other race for one.
pub fn unique(tag: u64) -> String {
    format!("unique {}", tag / 4 % UNIQUE_KEYS)
}

/// The amount that a message adds to its account in the ledger.
pub fn amount(tag: u64) -> i64 {
    (tag % 89) as i64 + 1
}

/// There are 16 accounts.
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
