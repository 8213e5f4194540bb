//! The work of each heartbeat: it renews leases, and gives back messages that would not start soon.

use std::{collections::HashSet, time::Instant};

use super::{Held, MARGIN, order::Prefetched};
use crate::{queue::message::Lease, worker::renewal_barrier::Renewal};

#[derive(Debug)]
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
    /// Settles parts of rows that have waited for the rest, gives up messages whose lease has
    /// ended, and notifies their handlers. If `may_renew` is set, also returns the leases to renew.
    /// If `may_release` is set, also returns the leases of messages that would not start soon. The
    /// caller gives these messages back, and then passes their number to [`Held::end_giving_back`].
    pub fn beat(&mut self, now: Instant, may_renew: bool, may_release: bool) -> Beat {
        self.groups.beat();
        let has_company = self.has_company(now);
        let mut release = self.lapse(now);
        if may_release {
            release.extend(self.too_early(now));
        } else {
            let later = std::mem::take(&mut release);
            match &mut self.order {
                Some(order) => order.again(&later),
                None => self.late.extend(later),
            }
        }
        self.returning += release.len();
        // The renewal begins before the check for handlers that end a lease themselves. A handler
        // that ends its lease after the check then waits for this renewal.
        let renewal = may_renew.then(|| self.renewals.begin());
        let renew = if may_renew { self.renewable(now) } else { Vec::new() };
        let begins = self.alone_is_next() && self.may_begin(now);
        let changed = self.confirm_ended(now) || has_company || begins || self.is_settling();
        Beat { release, renewal: renewal.filter(|_| !renew.is_empty()), renew, changed }
    }

    /// Records that the server has been asked to end the leases of this number of messages.
    pub fn end_giving_back(&mut self, count: usize) {
        self.returning -= count;
    }

    /// Gives up messages whose leases have ended, even if the server does not answer, and notifies
    /// their handlers. Returns the leases of messages that have not started.
    fn lapse(&mut self, now: Instant) -> Vec<Lease> {
        let mut given_up = Vec::new();
        while self.waiting.front().is_some_and(|waiting| waiting.until < now) {
            let late = self.waiting.pop_front();
            given_up.extend(late.map(|late| self.give_up(late)));
        }
        if let Some(order) = &mut self.order {
            order.late(now).into_iter().for_each(|group| self.groups.close(group));
        }
        for hand in &mut self.hands {
            let told = hand.told.as_ref();
            let (settled, extended) = told.map_or((false, None), |told| match told.is_settled() {
                true => (true, None), // does not take the extension: it counts again if the transaction is rolled back
                false => (false, told.take_extended()),
            });
            for running in hand.running.iter_mut().filter(|running| !running.lost && !settled) {
                running.until = extended.map_or(running.until, |extended| extended.of(running.until));
                if running.until + MARGIN < now {
                    running.lost = true;
                    if let Some(told) = told {
                        told.lose();
                    }
                }
            }
        }
        given_up
    }

    /// Removes messages that would not start soon, and returns the leases to give back.
    fn too_early(&mut self, now: Instant) -> Vec<Lease> {
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
        release
    }

    /// Returns the leases to renew: those of running messages, and of messages that wait to run
    /// alone.
    fn renewable(&self, now: Instant) -> Vec<Lease> {
        let soon = now + self.lease * 2 / 3;
        let mut renew = self.keeps(soon);
        for hand in &self.hands {
            let is_not_ours = hand.told.as_ref().is_some_and(|told| told.is_settled() || told.is_extending());
            let running = hand.running.iter().filter(|running| !running.lost && !is_not_ours);
            renew.extend(running.filter(|running| running.until < soon).map(|running| running.lease));
        }
        renew
    }

    /// Records that leases were renewed; `asked` is the time before the request, because the reply
    /// may arrive long after the renewal. Notifies the handlers whose leases are lost.
    pub fn renewed(&mut self, leases: &[Lease], lost: &[i64], asked: Instant) {
        let (leases, lost): (HashSet<&Lease>, HashSet<&i64>) = (leases.iter().collect(), lost.iter().collect());
        let kept = self.waiting.iter_mut().filter(|waiting| waiting.is_kept());
        for waiting in kept {
            let lease = waiting.message.lease();
            if leases.contains(&lease) && !lost.contains(&lease.id) {
                waiting.until = waiting.until.max(asked + self.lease);
            }
        }
        for hand in &mut self.hands {
            for running in hand.running.iter_mut().filter(|running| leases.contains(&running.lease)) {
                if lost.contains(&running.lease.id) {
                    running.lost = true;
                    hand.told.iter().for_each(|told| told.lose());
                } else {
                    running.until = running.until.max(asked + self.lease);
                }
            }
        }
    }
}
