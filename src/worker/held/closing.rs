//! Gives up the worker's messages when it ends.

use super::Held;
use crate::{queue::message::Lease, worker::attempt::OwnEnd};

/// The messages of handlers that were dropped, or whose results were not settled.
#[derive(Debug, Default)]
pub(in crate::worker) struct GivenUp {
    /// The leases that are neither lost nor ended by the handlers. The caller releases them.
    pub leases: Vec<Lease>,
    /// The number of messages that the handlers themselves have acknowledged.
    pub done: usize,
    /// The number of messages that the handlers themselves have given back.
    pub released: usize,
    /// The number of messages whose leases are lost, or whose results were not settled.
    pub lost: usize,
    /// The number of messages whose end has an unknown outcome.
    pub unknown: usize,
}

impl<T> Held<T> {
    /// Removes all waiting messages and returns their leases, so that the caller can release them.
    pub fn give_up_waiting(&mut self) -> Vec<Lease> {
        let mut given_up: Vec<Lease> =
            std::mem::take(&mut self.waiting).into_iter().map(|waiting| self.give_up(waiting)).collect();
        if let Some(order) = &mut self.order {
            order.close().into_iter().for_each(|group| self.groups.close(group));
        }
        given_up.extend(self.give_back());
        given_up
    }

    /// Notifies every handler that the worker gives up on it. Returns true if any handler can be
    /// notified.
    pub fn tell_all(&mut self) -> bool {
        self.hands.iter().filter_map(|hand| hand.told.as_ref()).map(|told| told.lose()).count() > 0
    }

    /// Removes all running messages. Call this method after the handlers have been dropped.
    pub fn give_up_running(&mut self) -> GivenUp {
        let mut given_up = GivenUp::default();
        for nr in 0..self.hands.len() {
            let own_end = self.hands[nr].told.as_ref().map_or(OwnEnd::None, |told| told.own_end());
            for running in std::mem::take(&mut self.hands[nr].running) {
                match own_end {
                    OwnEnd::None | OwnEnd::Undone | OwnEnd::ReleaseFailed if running.lost => given_up.lost += 1,
                    OwnEnd::None | OwnEnd::Undone | OwnEnd::ReleaseFailed => given_up.leases.push(running.lease),
                    OwnEnd::Committed => given_up.done += 1,
                    OwnEnd::Released => given_up.released += 1,
                    OwnEnd::Assumed | OwnEnd::Open => given_up.unknown += 1,
                }
                self.groups.close(running.group);
            }
        }
        given_up
    }

    /// Removes all results that wait for their settlement. Also returns the number of those whose
    /// settlement the server has not answered.
    pub fn give_up_results(&mut self) -> GivenUp {
        let lost = std::mem::take(&mut self.groups.settling).len();
        GivenUp { lost, unknown: self.underway, ..GivenUp::default() }
    }

    pub fn is_running(&self) -> bool {
        self.hands.iter().any(|hand| !hand.running.is_empty())
    }
}
