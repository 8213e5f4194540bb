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

/// Counts a statement as load until its reply has arrived, even if its caller no longer waits.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    pub fn new(load: &Arc<AtomicUsize>) -> Self {
        load.fetch_add(1, Ordering::Relaxed);
        Self(load.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
