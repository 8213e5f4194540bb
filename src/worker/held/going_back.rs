//! What goes back for the sake of the order of keys: see `order.rs`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Held, order::Order};
use crate::queue::message::Lease;

impl<T> Held<T> {
    /// Messages of keys that are to be given back, in their order: they came behind one that
    /// failed, or too many of them. Say with [`Held::confirm`] when they are.
    pub fn give_back(&mut self) -> Vec<Lease> {
        self.order.as_mut().map(Order::give_back).unwrap_or_default()
    }

    /// Keys of which enough is held, and for how long they may rest.
    pub fn full(&mut self) -> Vec<(Arc<str>, Duration)> {
        self.order.as_mut().map(Order::full).unwrap_or_default()
    }

    /// Messages are about to be leased.
    pub fn fetching(&mut self, now: Instant) {
        self.asked = now;
        if let Some(order) = &mut self.order {
            order.fetching();
        }
    }

    /// The server has ended these leases, or they were over.
    pub fn confirm(&mut self, leases: impl IntoIterator<Item = Lease>) {
        if let Some(order) = &mut self.order {
            leases.into_iter().for_each(|lease| order.confirm(lease));
        }
    }

    /// These could not be given back yet.
    pub fn give_back_again(&mut self, leases: &[Lease]) {
        if let Some(order) = &mut self.order {
            order.again(leases);
        }
    }
}
