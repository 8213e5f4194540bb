//! Limits on the size of a reply, and the count of statements that await a reply.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The limits that a correct reply does not exceed. The rows of a larger reply are discarded, so
/// that a server cannot exhaust the client's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bound {
    /// The maximum number of rows, if known in advance.
    pub rows: Option<usize>,
    /// True if `max_answer` does not apply. The rows may be the only copy of the data, for example
    /// messages that were taken.
    pub whole: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Bytes(usize),
    Rows(usize),
}

/// The statements of a connection.
#[derive(Debug, Default)]
pub(crate) struct Load {
    running: AtomicUsize,
    ended: AtomicUsize,
}

impl Load {
    /// Returns the number of statements that are being sent or whose replies are due.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Returns the number of statements that have ended since the program began.
    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Counts a statement as load until its reply has arrived, even if its caller no longer waits.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Load>);

impl InFlight {
    pub fn new(load: &Arc<Load>) -> Self {
        load.running.fetch_add(1, Ordering::Relaxed);
        Self(load.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed); // first, because no end is expected when none is running
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}
