//! Gives messages back to preserve the order of keys: see `order.rs`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Held, MARGIN, order::Order};
use crate::queue::message::Lease;

impl<T> Held<T> {
    /// Removes and returns the leases to give back, in order: messages behind a failed message, and
    /// messages beyond a key's limit. After the server has ended the leases, call
    /// [`Held::confirm`].
    pub fn give_back(&mut self) -> Vec<Lease> {
        self.order.as_mut().map(Order::give_back).unwrap_or_default()
    }

    /// Removes and returns the keys that have enough messages in this worker, each with the time
    /// for which it may rest.
    pub fn full(&mut self) -> Vec<(Arc<str>, Duration)> {
        self.order.as_mut().map(Order::full).unwrap_or_default()
    }

    /// Records that messages are about to be leased.
    pub fn fetching(&mut self, now: Instant) {
        self.asked = now;
        if let Some(order) = &mut self.order {
            order.fetching();
        }
    }

    /// Records that the server has ended these leases.
    pub fn confirm(&mut self, leases: impl IntoIterator<Item = Lease>) {
        if let Some(order) = &mut self.order {
            leases.into_iter().for_each(|lease| order.confirm(lease));
        }
    }

    /// Records that the server refuses to end this lease, which therefore expires at `until`.
    pub fn confirm_at_the_end(&mut self, lease: Lease, until: Instant) {
        if self.order.is_some() {
            self.endless.push((lease, until));
        }
    }

    /// Confirms refused leases that have expired. Returns true if there are any.
    pub(super) fn confirm_ended(&mut self, now: Instant) -> bool {
        let ended: Vec<Lease> =
            self.endless.extract_if(.., |(_, until)| *until + MARGIN < now).map(|(lease, _)| lease).collect();
        let are_some = !ended.is_empty();
        self.confirm(ended);
        are_some
    }

    /// Keeps leases that could not be given back, so that the next try includes them.
    pub fn give_back_again(&mut self, leases: &[Lease]) {
        if let Some(order) = &mut self.order {
            order.again(leases);
        }
    }
}
