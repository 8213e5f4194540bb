//! Finds leases that ended early because a message was cancelled or its queue was purged.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use super::{HandState, Held};
use crate::queue::message::Lease;

/// The minimum time between checks. There are four heartbeats a second, whose timer may be slightly
/// early. With this minimum, every second heartbeat checks.
const CHECK: Duration = Duration::from_millis(450);
/// The age below which a handler's lease is not checked. Most handlers end before that age, and the
/// next check covers the others. A handler is therefore notified within 750 ms and a round trip
/// after its lease is lost.
const YOUNG: Duration = Duration::from_millis(250);

impl<T> Held<T> {
    /// Returns the leases to check, if a check is due: those of handlers that can be notified. Pass
    /// the result of the check to [`Held::gone`].
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

    /// Marks the leases that no longer exist, and notifies their handlers.
    pub fn gone(&mut self, leases: &[Lease], gone: &[i64]) {
        let gone: HashSet<&i64> = gone.iter().collect();
        let gone: HashSet<&Lease> = leases.iter().filter(|lease| gone.contains(&lease.id)).collect();
        for hand in &mut self.hands {
            // Skips a lease that its handler has begun to end itself since the check.
            let settled = hand.told.as_ref().is_some_and(|told| told.is_settled());
            for running in hand.running.iter_mut().filter(|running| !settled && gone.contains(&running.lease)) {
                running.lost = true;
                hand.told.iter().for_each(|told| told.lose());
            }
        }
    }
}
