//! Gives up the worker's messages when it ends.

use super::Held;
use crate::queue::message::Lease;

impl<T> Held<T> {
    /// Removes all waiting messages and returns their leases, so that the caller can release them.
    pub fn give_up_waiting(&mut self) -> Vec<Lease> {
        let mut given_up: Vec<Lease> =
            std::mem::take(&mut self.waiting).into_iter().map(|waiting| self.give_up(waiting)).collect();
        if let Some(order) = &mut self.order {
            order.close().into_iter().for_each(|group| self.groups.close(group));
            given_up.extend(order.give_back());
        }
        given_up
    }

    /// Notifies every handler that the worker gives up on it. Returns true if any handler can be
    /// notified.
    pub fn tell_all(&mut self) -> bool {
        self.hands.iter().filter_map(|hand| hand.told.as_ref()).map(|told| told.lose()).count() > 0
    }

    /// Removes all running messages. Returns the leases that are not lost; the caller releases them
    /// after the handlers have been dropped.
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

    pub fn is_running(&self) -> bool {
        self.hands.iter().any(|hand| !hand.running.is_empty())
    }
}
