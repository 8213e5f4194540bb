//! The work of each heartbeat: it renews leases, and gives back messages that would not start soon.

use std::{collections::HashSet, time::Instant};

use super::{Held, MARGIN, order::Prefetched};
use crate::{queue::message::Lease, worker::renewal_barrier::Renewal};

#[derive(Debug, Default)]
pub(in crate::worker) struct Beat {
    /// The leases of messages to give back, because they would not start soon.
    pub release: Vec<Lease>,
    /// The leases of running messages, to be renewed.
    pub renew: Vec<Lease>,
    /// The guard of the renewal, dropped after these leases are renewed.
    pub renewal: Option<Renewal>,
    /// True if there are messages to settle, an isolated message may start, or an isolated message
    /// has run long enough for others to start beside it.
    pub changed: bool,
}

impl<T> Held<T> {
    /// Settles parts of rows that have waited for the rest. If `may_send`, it also gives back
    /// messages that have waited too long, renews running messages, and notifies handlers whose
    /// lease has ended.
    pub fn beat(&mut self, now: Instant, may_send: bool) -> Beat {
        self.groups.beat();
        let has_company = self.has_company(now);
        let beat = if may_send { self.due(now) } else { Beat::default() };
        let begins = self.alone_is_next() && self.may_begin(now);
        Beat { changed: has_company || begins || self.is_settling(), ..beat }
    }

    fn due(&mut self, now: Instant) -> Beat {
        let hands = self.hands();
        let stalled = now.duration_since(self.started);
        if !self.waiting.is_empty() && stalled > 2 * self.ahead.horizon() {
            self.ahead.stalled(hands, stalled);
        }
        let (target, half) = (self.ahead.target(hands), now + self.lease / 2);
        let mut given_up = Vec::new();
        while stalled > 2 * self.ahead.horizon()
            && self.waiting.len() > target
            && let Some(last) = self.last_of_many()
        {
            given_up.push(last);
        }
        let is_late = |waiting: &Prefetched<T>| waiting.until < if waiting.is_kept() { now } else { half };
        while self.waiting.front().is_some_and(is_late) {
            given_up.extend(self.waiting.pop_front());
        }
        let mut release: Vec<Lease> = given_up.into_iter().map(|waiting| self.give_up(waiting)).collect();
        if let Some(order) = &mut self.order {
            order.late(half).into_iter().for_each(|group| self.groups.close(group));
        }
        release.extend(self.give_back());
        // The renewal begins before the check for handlers that end a lease themselves: a handler
        // that does so later waits for this renewal.
        let renewal = self.renewals.begin();
        let mut renew = self.keeps(now + self.lease * 2 / 3);
        for hand in &mut self.hands {
            let (settled, extended) =
                hand.told.as_ref().map_or((false, None), |told| (told.is_settled(), told.extended()));
            for running in hand.running.iter_mut().filter(|running| !running.lost && !settled) {
                running.until = extended.map_or(running.until, |extended| extended.max(running.until));
                if running.until + MARGIN < now {
                    running.lost = true;
                    hand.told.iter().for_each(|told| told.lose());
                } else if running.until < now + self.lease * 2 / 3 {
                    renew.push(running.lease);
                }
            }
        }
        Beat { release, renewal: (!renew.is_empty()).then_some(renewal), renew, changed: false }
    }

    /// Records that leases were renewed; `now` is the time when the reply arrived. Notifies the
    /// handlers whose leases are lost.
    pub fn renewed(&mut self, leases: &[Lease], lost: &[i64], now: Instant) {
        let (leases, lost): (HashSet<&Lease>, HashSet<&i64>) = (leases.iter().collect(), lost.iter().collect());
        let kept = self.waiting.iter_mut().filter(|waiting| waiting.is_kept());
        for waiting in kept {
            let lease = waiting.message.lease();
            if leases.contains(&lease) && !lost.contains(&lease.id) {
                waiting.until = waiting.until.max(now + self.lease);
            }
        }
        for hand in &mut self.hands {
            for running in hand.running.iter_mut().filter(|running| leases.contains(&running.lease)) {
                if lost.contains(&running.lease.id) {
                    running.lost = true;
                    hand.told.iter().for_each(|told| told.lose());
                } else {
                    running.until = running.until.max(now + self.lease);
                }
            }
        }
    }
}
