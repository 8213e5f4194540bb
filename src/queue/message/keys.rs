//! Keys, which order messages, and rates, which limit how many messages of a key start.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::{BufMut, BytesMut};
use postgres_types::Type;
use sha2::{Digest, Sha256};

use crate::postgres::array::Elements;

/// The maximum length of a key, in bytes.
pub(crate) const LONGEST: usize = 1024;

/// Returns the partition of a key: the first four bytes of its SHA-256, as an integer, modulo the
/// number of partitions. The SQL function `trunkline.lane_of` returns the same number.
pub(crate) fn lane_of(key: &str, lanes: u32) -> u16 {
    let hash = Sha256::digest(key);
    let first = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
    (first % lanes.max(1)) as u16
}

/// The partitions of a queue with keys, as last read from the database. When partitions are added,
/// all of them are renumbered.
pub(crate) struct KeyLanes(AtomicU32);

impl KeyLanes {
    pub fn new(first: u16, lanes: u32) -> Self {
        Self(AtomicU32::new(Self::packed(first, lanes)))
    }

    /// Packs both numbers into one. A queue has at most 256 partitions.
    fn packed(first: u16, lanes: u32) -> u32 {
        u32::from(first) << 16 | lanes & 0xffff
    }

    pub fn set(&self, first: u16, lanes: u32) {
        self.0.store(Self::packed(first, lanes), Ordering::Relaxed);
    }

    pub fn of(&self, key: &str) -> u16 {
        let packed = self.0.load(Ordering::Relaxed);
        (packed >> 16) as u16 + lane_of(key, packed & 0xffff)
    }
}

/// Appends a key as an element of an array.
pub(crate) fn write(key: &str, out: &mut BytesMut) {
    out.put_i32(key.len() as i32);
    out.put_slice(key.as_bytes());
}

/// Returns the array of `count` keys as a parameter.
pub(crate) fn array(count: usize, keys: &[u8]) -> Elements<'_> {
    Elements { element: Type::TEXT.oid(), count: count as i32, nulls: false, values: keys }
}

/// The rate at which workers may start messages of a key, as a lease returns it. A token bucket
/// refills at this rate, and each message that starts takes one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The time between two messages of a key.
    pub each: Duration,
    /// The time in which an empty bucket becomes full.
    pub whole: Duration,
    /// The time until the bucket is full, if it was empty when the partition changed owners.
    pub full_in: Duration,
}

impl Rate {
    /// Reads the three numbers of seconds that the statement returns.
    pub fn of(told: &[f64]) -> Option<Arc<Self>> {
        let &[each, whole, full_in] = told else { return None };
        let seconds = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
        Some(Arc::new(Self { each: seconds(each), whole: seconds(whole), full_in: seconds(full_in) }))
    }
}

/// Returns the key of the message at the position `at` in a row.
pub(crate) fn key_of(keys: &[&str], at: i64) -> Option<Arc<str>> {
    usize::try_from(at).ok().and_then(|at| keys.get(at)).map(|key| (*key).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_same_lane_everywhere() {
        // `printf a | sha256sum` prints ca978112.
        assert_eq!(u32::from(lane_of("a", 64)), 0xca97_8112 % 64);
        assert_eq!(lane_of("a", 1), 0);
    }
}
