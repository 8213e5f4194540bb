//! Counts of a relay that callers can read while it runs.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use metrics::Gauge;

/// The counts of a relay since its start.
#[derive(Debug, Default)]
pub struct Progress {
    confirmed: AtomicU64,
    refused: AtomicU64,
    again: AtomicU64,
    held: AtomicU64,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    error: Option<(SystemTime, String)>,
}

impl Progress {
    /// Returns the number of messages that have arrived: confirmed by the broker, or committed in
    /// the queue.
    #[must_use]
    pub fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Relaxed)
    }

    /// Returns the number of messages that were refused for good and are now dead letters.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the number of temporary refusals, counting each attempt.
    #[must_use]
    pub fn again(&self) -> u64 {
        self.again.load(Ordering::Relaxed)
    }

    /// Returns the number of messages that the relay holds until their next attempt.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the last refusal by the broker or the queue, with its time.
    #[must_use]
    pub fn last_error(&self) -> Option<(SystemTime, String)> {
        self.last().error.clone()
    }

    pub(crate) fn confirm(&self, messages: u64) {
        self.confirmed.fetch_add(messages, Ordering::Relaxed);
    }

    pub(crate) fn refuse(&self, why: &str) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.erred(why);
    }

    pub(crate) fn try_again(&self, why: &str) {
        self.again.fetch_add(1, Ordering::Relaxed);
        self.erred(why);
    }

    pub(crate) fn erred(&self, why: &str) {
        self.last().error = Some((SystemTime::now(), why.to_owned()));
    }

    /// Counts a held message until the returned value is dropped.
    pub(crate) fn hold<'a>(&'a self, gauge: &'a Gauge) -> Holding<'a> {
        self.held.fetch_add(1, Ordering::Relaxed);
        gauge.increment(1.0);
        Holding(self, gauge)
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Holding<'a>(&'a Progress, &'a Gauge);

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
        self.1.decrement(1.0);
    }
}
