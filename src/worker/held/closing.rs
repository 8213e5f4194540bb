//! What a worker that ends does with what it holds.

use super::Held;
use crate::queue::message::Lease;

impl<T> Held<T> {
    /// All that waits, to be given back.
    pub fn give_up_waiting(&mut self) -> Vec<Lease> {
        let mut given_up: Vec<Lease> =
            std::mem::take(&mut self.waiting).into_iter().map(|waiting| self.give_up(waiting)).collect();
        if let Some(order) = &mut self.order {
            order.close().into_iter().for_each(|group| self.groups.close(group));
            given_up.extend(order.give_back());
        }
        given_up
    }

    /// Tells every handler that the worker gives up on it. Returns whether one listens.
    pub fn tell_all(&mut self) -> bool {
        self.hands.iter().filter_map(|hand| hand.told.as_ref()).map(|told| told.lose()).count() > 0
    }

    /// The leases of running messages that are not lost, to be released after their handlers were
    /// dropped.
    pub fn give_up_running(&mut self) -> Vec<Lease> {
        let mut given_up = Vec::new();
        for nr in 0..self.hands.len() {
            let settled = self.hands[nr].told.as_ref().is_some_and(|told| told.is_settled());
            for running in std::mem::take(&mut self.hands[nr].running) {
                if !running.lost && !settled {
                    given_up.push(running.lease);
                }
                self.groups.close(running.group);
            }
        }
        given_up
    }

    /// Whether a handler runs.
    pub fn is_running(&self) -> bool {
        self.hands.iter().any(|hand| !hand.running.is_empty())
    }
}
