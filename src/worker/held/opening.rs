//! Starts messages when the buckets of their keys allow it, and gives late messages back: see
//! `bucket.rs`.

use std::time::Instant;

use super::{
    Held,
    order::{Order, Prefetched},
};

impl<T> Held<T> {
    /// Makes messages ready to start if their buckets allow it. Returns true if any message is
    /// ready, and the time when the next bucket lets a message start.
    pub fn open(&mut self, now: Instant) -> (bool, Option<Instant>) {
        let ready = self.order.as_mut().map(|order| order.opened(now)).unwrap_or_default();
        if self.waiting.is_empty() {
            self.started = now; // without a ready message, no message could start earlier
        }
        let has_some = !ready.is_empty();
        for message in ready {
            self.awaits_hand(message);
        }
        (has_some, self.order.as_ref().and_then(Order::opens))
    }

    pub fn opens_sooner(&mut self) -> bool {
        self.order.as_mut().is_some_and(Order::is_sooner)
    }

    /// Returns true if a message was leased too long ago to start: if its lease has ended or, with
    /// a rate, if more than a quarter of its lease time has passed. The next worker of the
    /// partition relies on this bound.
    pub(super) fn is_late(&self, next: &Prefetched<T>, now: Instant) -> bool {
        next.until < if next.message.rate.is_some() { now + self.lease * 3 / 4 } else { now }
    }

    /// Gives a late message back instead of starting it. Its lease may not have ended on the
    /// server, where it began some time after the request.
    pub(super) fn send_back(&mut self, late: Prefetched<T>) {
        let lease = self.give_up(late);
        match &mut self.order {
            Some(order) => order.goes_back(lease),
            None => self.late.push(lease),
        }
    }
}
