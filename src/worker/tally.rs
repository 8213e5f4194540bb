//! Counts the ends of leases for the worker's summary.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::queue::observe::metric::End;

/// The number of messages by the end of their leases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Handled and acknowledged.
    pub done: u64,
    /// Failed, and given back to be tried again. After the queue's last attempt the message is a
    /// dead letter.
    pub retried: u64,
    /// Dead at once, by the handler's or the retry policy's decision.
    pub dead: u64,
    /// Handled or failed, but the lease was already lost, or the database was away and could not
    /// confirm. The message may be handled again.
    pub lost: u64,
    /// Given back unfinished, without counting the attempt: at the shutdown, or because they would
    /// have waited too long.
    pub released: u64,
}

/// The counters of one worker. [`Tally::add`] counts every message once.
#[derive(Default)]
pub(super) struct Tally([AtomicU64; End::ALL.len()]);

impl Tally {
    pub fn add(&self, end: End, messages: usize) {
        self.0[end as usize].fetch_add(messages as u64, Ordering::Relaxed);
    }

    pub fn summary(&self) -> Summary {
        let count = |end: End| self.0[end as usize].load(Ordering::Relaxed);
        Summary {
            done: count(End::Done),
            retried: count(End::Retried),
            dead: count(End::Dead),
            lost: count(End::Lost),
            released: count(End::Released),
        }
    }
}
