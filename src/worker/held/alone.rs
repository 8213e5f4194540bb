//! Isolates messages whose lease expired. Such a message may have crashed its worker, and may do so
//! again. Therefore it starts when nothing else is running, and nothing else starts while it is
//! isolated.
//!
//! A message that has been running for a second is treated like any other. So the isolated message
//! waits at most a second for running messages, and delays later messages by at most a second.
//!
//! Messages run in the order in which they were leased, and the worker leases nothing while an
//! isolated message waits for a task. If that message crashes the worker again, few other messages
//! lose an attempt: only those behind earlier messages with the same key.

use std::time::{Duration, Instant};

use super::{Held, order::Prefetched};
use crate::queue::message::Lease;

/// The running time after which a message is assumed not to crash its worker.
const ALONE: Duration = Duration::from_secs(1);

impl<T> Prefetched<T> {
    /// Returns true if the worker renews the message's lease while the message waits.
    pub(super) fn is_kept(&self) -> bool {
        self.message.ran_out && self.message.rate.is_none()
    }
}

impl<T> Held<T> {
    pub(super) fn awaits_hand(&mut self, new: Prefetched<T>) {
        self.to_run_alone += usize::from(new.message.ran_out);
        self.waiting.push_back(new);
    }

    /// Removes the last waiting message that need not run alone. Messages that must run alone are
    /// not given back, because they would be leased again together with many others.
    pub(super) fn last_of_many(&mut self) -> Option<Prefetched<T>> {
        let last = self.waiting.iter().rposition(|waiting| !waiting.message.ran_out)?;
        self.waiting.remove(last)
    }

    /// Returns the leases to renew for messages that wait to run alone. Messages with a rate are
    /// given back instead, because they may not start late.
    pub(super) fn keeps(&self, until: Instant) -> Vec<Lease> {
        if self.to_run_alone == 0 {
            return Vec::new();
        }
        let keeps = |waiting: &&Prefetched<T>| waiting.is_kept() && waiting.until < until;
        self.waiting.iter().filter(keeps).map(|waiting| waiting.message.lease()).collect()
    }

    pub(super) fn alone_is_next(&self) -> bool {
        self.waiting.front().is_some_and(|first| first.message.ran_out)
    }

    pub fn runs_alone(&self) -> bool {
        self.alone.is_some()
    }

    /// Ends the isolation of a message that has run long enough. Returns true if an isolation
    /// ended.
    pub(super) fn has_company(&mut self, now: Instant) -> bool {
        self.alone.take_if(|(_, since)| now.duration_since(*since) > ALONE).is_some()
    }

    pub(super) fn may_begin(&self, now: Instant) -> bool {
        let lives = |since: Instant| now.duration_since(since) > ALONE;
        self.alone.is_none_or(|(_, since)| lives(since))
            && (!self.alone_is_next() || self.hands.iter().filter_map(|hand| hand.since).all(lives))
    }

    /// Returns the number of waiting messages that may start now.
    pub fn ready(&self, now: Instant) -> usize {
        match self.may_begin(now) {
            false => 0,
            true if self.alone_is_next() => 1,
            true if self.to_run_alone > 0 => self.waiting.iter().take_while(|waiting| !waiting.message.ran_out).count(),
            true => self.waiting.len(),
        }
    }
}
