//! The payloads of the adapters: a number, and padding derived from the number. They are simple
//! enough for adapters in four languages.

use crate::tag::DAMAGED;

fn filling(tag: u64) -> usize {
    if tag.is_multiple_of(61) { 5_000 } else { (tag % 90) as usize }
}

pub fn of(tag: u64) -> String {
    format!("{tag}:{}", "x".repeat(filling(tag)))
}

/// Returns the number in an intact payload, or [`DAMAGED`].
pub fn tag(payload: &str) -> u64 {
    let tag = payload.split_once(':').and_then(|(tag, _)| tag.parse().ok());
    tag.filter(|tag| of(*tag) == payload).unwrap_or(DAMAGED)
}

/// The work of a handler, derived from the number of its message and the attempt. It is the same
/// for every rival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// The duration in milliseconds.
    pub lasts: u64,
    pub fails: bool,
}

pub fn work(tag: u64, attempt: i32, lease: u64) -> Work {
    match tag % 100 {
        0..3 => Work { lasts: 10, fails: true },
        3..9 => Work { lasts: 10, fails: attempt == 1 },
        // The work takes longer than the lease, and some of it fails. By the time it ends, the next
        // attempt has begun and is still running.
        9..15 if attempt == 1 => Work { lasts: lease * 3 / 2, fails: tag % 100 >= 12 },
        9..15 if attempt == 2 => Work { lasts: lease * 7 / 10, fails: false },
        15..25 => Work { lasts: lease * 3 / 5, fails: false },
        _ => Work { lasts: 5 + tag % 25, fails: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_says_its_number_and_damage_shows() {
        for number in 1_000_000..1_000_200 {
            assert_eq!(tag(&of(number)), number);
            assert_eq!(tag(&format!("{}x", of(number))), DAMAGED);
        }
        assert_eq!(tag("hello"), DAMAGED);
    }

    #[test]
    fn handlers_fail_always_or_once_or_outlast_their_lease() {
        assert!(work(2, 5, 2000).fails);
        assert!(work(3, 1, 2000).fails && !work(3, 2, 2000).fails);
        assert_eq!((work(9, 1, 2000).lasts, work(9, 2, 2000).lasts, work(9, 3, 2000).lasts), (3000, 1400, 14));
        assert!(work(12, 1, 2000).fails && !work(12, 2, 2000).fails);
    }
}
