//! Counts how leases ended, for the worker's summary.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::queue::observe::metric::End;

/// The numbers of messages, by how their leases ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The number of messages that were handled and acknowledged.
    pub done: u64,
    /// The number of messages that failed and were given back for another attempt.
    pub retried: u64,
    /// The number of messages that became dead letters: after the last attempt that the queue
    /// allows, or by decision of the handler or the retry policy.
    pub dead: u64,
    /// The number of messages whose lease was lost before their handler returned, or whose result
    /// could not be settled because the database was unreachable. These messages may be handled
    /// again.
    pub lost: u64,
    /// The number of messages that were given back unfinished, without counting the attempt: during
    /// the shutdown, or because they would have waited too long.
    pub released: u64,
}

/// The counters of one worker. Each delivery is added to one counter.
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
