use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The bound of an honest reply. What exceeds it is not kept, so that a server cannot exhaust its
/// client's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bound {
    /// The most rows, if that is known in advance.
    pub rows: Option<usize>,
    /// Rows of any size are kept, and `max_answer` does not apply: they are the only copy, as with
    /// messages that were taken.
    pub whole: bool,
}

/// The bound that a reply exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Bytes(usize),
    Rows(usize),
}

/// Counts a statement of a connection while its reply is due, even if its caller no longer waits.
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
