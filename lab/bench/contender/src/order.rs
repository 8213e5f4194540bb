//! Checks that the messages of each key arrive in order.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// The number of the next message that each key expects, and the number of violations.
#[derive(Debug)]
pub(crate) struct Order {
    next: Mutex<Vec<u64>>,
    broken: AtomicU64,
}

impl Order {
    /// Creates the state for `keys` keys and for the key of the backlog.
    pub fn of(keys: usize) -> Self {
        Self { next: Mutex::new(vec![0; keys + 1]), broken: AtomicU64::new(0) }
    }

    /// Records that a handler received message `nr` of the key. A message that arrives twice, or
    /// before an earlier message, breaks the order.
    pub fn saw(&self, key: usize, nr: u64) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let is_next = next.get(key) == Some(&nr);
        if let Some(next) = next.get_mut(key) {
            *next = (*next).max(nr + 1);
        }
        if !is_next {
            self.broken.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn broken(&self) -> u64 {
        self.broken.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_or_early_message_breaks_order() {
        let order = Order::of(2);
        for (key, nr) in [(1, 0), (2, 0), (1, 1), (2, 1)] {
            order.saw(key, nr);
        }
        assert_eq!(order.broken(), 0);
        order.saw(1, 1);
        order.saw(1, 3);
        order.saw(1, 2);
        order.saw(1, 4);
        assert_eq!(order.broken(), 3);
    }
}
