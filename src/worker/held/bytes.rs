//! Limits the bytes of the messages that a worker holds, in addition to their number.
//!
//! The server does not report sizes before a lease. So the number of messages in a lease follows
//! from the sizes in earlier leases. If messages become larger, one lease may exceed the limit.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use crate::queue::message::Message;

/// The number of messages in the first lease, whose sizes are unknown.
const FIRST: usize = 4;

/// The maximum number of bytes that a worker holds, and the sizes of the messages that it leased.
pub(crate) struct ByteLimit<T> {
    most: usize,
    size: fn(&Message<T>) -> usize,
    held: Arc<AtomicUsize>,
    /// The messages and bytes of the lease whose messages arrive.
    arrived: (usize, usize),
    /// The expected size of a message. Larger messages raise it at once; smaller ones lower it
    /// gradually.
    expected: usize,
    /// The maximum number of messages in the next lease.
    next: usize,
}

/// The bytes of a message. They count as held until this value is dropped.
pub(crate) struct HeldBytes {
    bytes: usize,
    held: Arc<AtomicUsize>,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Relaxed);
    }
}

impl<T> ByteLimit<T> {
    pub fn new(most: usize, size: fn(&Message<T>) -> usize) -> Self {
        Self { most, size, held: Arc::default(), arrived: (0, 0), expected: 0, next: FIRST }
    }

    /// Returns the number of messages to lease now. Returns zero until a quarter of the bytes is
    /// free, because small leases split rows.
    pub fn room(&self) -> usize {
        let free = self.most.saturating_sub(self.held.load(Relaxed));
        if free < self.most / 4 { 0 } else { (free / self.expected.max(1)).clamp(1, self.next) }
    }

    /// Counts a message of the current lease.
    pub fn hold(&mut self, message: &Message<T>) -> HeldBytes {
        let bytes = (self.size)(message);
        self.arrived.0 += 1;
        self.arrived.1 += bytes;
        self.held.fetch_add(bytes, Relaxed);
        HeldBytes { bytes, held: self.held.clone() }
    }

    /// Ends a lease: estimates the size of the next messages.
    pub fn leased(&mut self) {
        let (messages, bytes) = std::mem::take(&mut self.arrived);
        if let Some(average) = bytes.checked_div(messages) {
            self.expected = average.max(self.expected - self.expected / 8);
            self.next = self.next.max(messages.saturating_mul(4));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant, SystemTime};

    use super::*;
    use crate::{
        queue::message::metadata::Metadata,
        worker::{groups::Decision, held::Held},
    };

    const LEASE: Duration = Duration::from_secs(30);

    fn message(id: i64, bytes: usize) -> Message<usize> {
        Message {
            id,
            attempt: 1,
            enqueued_at: SystemTime::UNIX_EPOCH,
            payload: bytes,
            metadata: Metadata::new(),
            key: None,
            rate: None,
            ran_out: false,
            released: 0,
        }
    }

    /// Creates a set of at most 1,000 bytes.
    fn held(per_key: Option<usize>, now: Instant) -> Held<usize> {
        let mut held = Held::new(LEASE, per_key, now);
        held.limit = Some(ByteLimit::new(1000, |message| message.payload));
        held
    }

    fn lease(held: &mut Held<usize>, messages: usize, bytes: usize, now: Instant) {
        held.leased((0..messages as i64).map(|nr| message(1024 + nr, bytes)).collect(), Vec::new(), now);
    }

    fn room(held: &Held<usize>) -> usize {
        held.limit.as_ref().expect("a limit").room()
    }

    #[test]
    fn leases_grow_while_messages_are_small() {
        let now = Instant::now();
        let mut held = held(None, now);
        for room in [FIRST, FIRST * 4, FIRST * 16] {
            assert_eq!(held.room(5000, 1), room);
            lease(&mut held, room, 0, now);
            held.give_up_waiting();
        }
    }

    #[test]
    fn large_messages_are_leased_until_the_bytes_are_used_up() {
        let now = Instant::now();
        let mut held = held(None, now);
        lease(&mut held, FIRST, 100, now);
        assert_eq!(room(&held), 6, "600 bytes are free");
        lease(&mut held, 6, 100, now);
        assert_eq!(room(&held), 0);
        let tasks: Vec<_> = (0..10).map(|_| held.hand()).collect();
        for nr in &tasks {
            drop(held.next(*nr, 1, false, now).expect("it waits"));
        }
        for (nr, free) in tasks.into_iter().zip([0, 0, 3, 4]) {
            held.finish(nr, [Decision::Done], now);
            assert_eq!(room(&held), free, "a quarter is free, or not yet");
        }
    }

    #[test]
    fn message_larger_than_all_bytes_is_leased_alone() {
        let now = Instant::now();
        let mut held = held(None, now);
        lease(&mut held, 1, 5000, now);
        assert_eq!(room(&held), 0);
        held.give_up_waiting();
        assert_eq!((room(&held), held.room(5000, 1)), (1, 1));
    }

    #[test]
    fn messages_that_go_back_in_the_order_of_their_key_hold_no_bytes() {
        let now = Instant::now();
        let mut held = held(Some(1), now);
        let of_key = |id| Message { key: Some("a key".into()), ..message(id, 100) };
        held.leased((1024..1034).map(of_key).collect(), Vec::new(), now);
        let nr = held.hand();
        held.next(nr, 1, false, now).expect("it waits");
        assert_eq!(room(&held), 0);
        held.finish(nr, [Decision::Retry(Duration::ZERO, "by chance".to_owned())], now);
        assert_eq!((held.give_back().len(), room(&held)), (9, 10), "those behind it go back");
    }
}
