//! A message whose lease ran out may have killed its worker, and would again. So it runs alone: it
//! begins when nothing else runs, and nothing begins beside it. No message waits for longer than a
//! second, neither that one for the others nor they for it: one that has run for a second is not
//! dangerous. What was leased before it runs before it, and nothing is leased while it waits for a
//! hand, so that few are charged if it kills again: those that wait behind others of their keys.

use std::time::{Duration, Instant};

use super::{Held, order::Prefetched};
use crate::queue::message::Lease;

/// A message that has run for this long has not killed its worker at once.
const ALONE: Duration = Duration::from_secs(1);

impl<T> Prefetched<T> {
    /// Whether its lease is renewed while it waits.
    pub(super) fn is_kept(&self) -> bool {
        self.message.ran_out && self.message.rate.is_none()
    }
}

impl<T> Held<T> {
    /// Lets a message wait for a hand.
    pub(super) fn awaits_hand(&mut self, new: Prefetched<T>) {
        self.to_run_alone += usize::from(new.message.ran_out);
        self.waiting.push_back(new);
    }

    /// The last of those that wait and need not run alone: given back, one of the others would come
    /// among many.
    pub(super) fn last_of_many(&mut self) -> Option<Prefetched<T>> {
        let last = self.waiting.iter().rposition(|waiting| !waiting.message.ran_out)?;
        self.waiting.remove(last)
    }

    /// Of those that wait to run alone, the ones whose leases are to be renewed: given back
    /// instead, they would come among many. Where keys have a rate, nothing may begin late, and
    /// they go back.
    pub(super) fn keeps(&self, until: Instant) -> Vec<Lease> {
        if self.to_run_alone == 0 {
            return Vec::new();
        }
        let keeps = |waiting: &&Prefetched<T>| waiting.is_kept() && waiting.until < until;
        self.waiting.iter().filter(keeps).map(|waiting| waiting.message.lease()).collect()
    }

    /// Whether the next that begins is to run alone.
    pub(super) fn alone_is_next(&self) -> bool {
        self.waiting.front().is_some_and(|first| first.message.ran_out)
    }

    /// Whether one runs alone.
    pub fn runs_alone(&self) -> bool {
        self.alone.is_some()
    }

    /// The one that ran alone has lived for long enough. Returns whether there was one.
    pub(super) fn has_company(&mut self, now: Instant) -> bool {
        self.alone.take_if(|(_, since)| now.duration_since(*since) > ALONE).is_some()
    }

    /// Whether the first that waits may begin.
    pub(super) fn may_begin(&self, now: Instant) -> bool {
        let lives = |since: Instant| now.duration_since(since) > ALONE;
        self.alone.is_none_or(|(_, since)| lives(since))
            && (!self.alone_is_next() || self.hands.iter().filter_map(|hand| hand.since).all(lives))
    }

    /// How many of those that wait may begin now.
    pub fn ready(&self, now: Instant) -> usize {
        match self.may_begin(now) {
            false => 0,
            true if self.alone_is_next() => 1,
            true if self.to_run_alone > 0 => self.waiting.iter().take_while(|waiting| !waiting.message.ran_out).count(),
            true => self.waiting.len(),
        }
    }
}
