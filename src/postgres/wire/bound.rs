use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// How much of an honest answer there can be. What comes beyond is not kept, so that a server
/// cannot use up the memory of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bound {
    /// Rows, where that is known before.
    pub rows: Option<usize>,
    /// However many bytes: what these rows say is nowhere else, as with messages that were taken.
    /// `max_answer` does not count.
    pub whole: bool,
}

/// What an answer was more than.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Bytes(usize),
    Rows(usize),
}

/// Counts a statement of a connection while its answer is due, whether or not its caller still
/// waits for it.
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
