//! Leases that are there no more long before their time: a message was cancelled, or its queue
//! purged.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use super::{HandState, Held};
use crate::queue::message::Lease;

/// Leases are looked after this often: at every second beat, of which there are four a second, and
/// whose timer may be a little early …
const CHECK: Duration = Duration::from_millis(450);
/// … but for those that have only begun: most handlers are quick, and the next look finds them
/// gone. A handler is so told of a lease that is gone after 750 ms, and the round trip.
const YOUNG: Duration = Duration::from_millis(250);

impl<T> Held<T> {
    /// Leases to look after: those of handlers that want to know, every so often. Say with
    /// [`Held::gone`] which are there no more.
    pub fn check(&mut self, now: Instant) -> Vec<Lease> {
        if now.duration_since(self.checked) < CHECK {
            return Vec::new();
        }
        self.checked = now;
        let wants = |hand: &&HandState| {
            let runs = hand.since.is_some_and(|since| now.duration_since(since) >= YOUNG);
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
