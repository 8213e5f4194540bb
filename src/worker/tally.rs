//! What became of messages, counted at one place.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of the messages that a worker leased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Handled and acknowledged.
    pub done: u64,
    /// Failed, and given back to be tried again. After the queue's last attempt that is a dead letter.
    pub retried: u64,
    /// Dead at once, because the handler or the retry policy said so.
    pub dead: u64,
    /// Handled or failed, but the lease was lost by then, or could not be confirmed because the database was away; it
    /// may be done again.
    pub lost: u64,
    /// Given back unfinished, and not charged: at the shutdown, or because they would have waited too long.
    pub released: u64,
}

/// What can become of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Retried,
    Dead,
    Lost,
    Released,
}

/// The counters of one worker. Every message comes past [`Tally::add`] once.
#[derive(Default)]
pub(super) struct Tally([AtomicU64; 5]);

impl Tally {
    pub fn add(&self, outcome: Outcome, messages: usize) {
        self.0[outcome as usize].fetch_add(messages as u64, Ordering::Relaxed);
    }

    pub fn summary(&self) -> Summary {
        let [done, retried, dead, lost, released] = self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        Summary { done, retried, dead, lost, released }
    }
}
