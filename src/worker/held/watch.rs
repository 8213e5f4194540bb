//! Leases that are there no more long before their time: a message was cancelled, or its queue purged.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use super::{HandState, Held};
use crate::queue::message::Lease;

/// Handlers that run for so long, and want to know, are told so soon: within a second, with the pause between two beats.
const CHECK: Duration = Duration::from_millis(700);

impl<T> Held<T> {
    /// Leases to look after: those of handlers that want to know, every so often. Say with [`Held::gone`] which are there no more.
    pub fn check(&mut self, now: Instant) -> Vec<Lease> {
        if now.duration_since(self.checked) < CHECK {
            return Vec::new();
        }
        self.checked = now;
        let wants = |hand: &&HandState| {
            let runs = hand.since.is_some_and(|since| now.duration_since(since) >= CHECK);
            runs && hand.told.as_ref().is_some_and(|told| !told.is_settled())
        };
        let running = self.hands.iter().filter(wants).flat_map(|hand| &hand.running);
        running.filter(|running| !running.lost).map(|running| running.lease).collect()
    }

    /// Of these leases some are there no more: their handlers are told.
    pub fn gone(&mut self, leases: &[Lease], gone: &[i64]) {
        let gone: HashSet<&i64> = gone.iter().collect();
        let gone: HashSet<&Lease> = leases.iter().filter(|lease| gone.contains(&lease.id)).collect();
        for hand in &mut self.hands {
            // It may have begun to end its lease itself meanwhile.
            let settled = hand.told.as_ref().is_some_and(|told| told.is_settled());
            for running in hand.running.iter_mut().filter(|running| !settled && gone.contains(&running.lease)) {
                running.lost = true;
                hand.told.iter().for_each(|told| told.lose());
            }
        }
    }
}
