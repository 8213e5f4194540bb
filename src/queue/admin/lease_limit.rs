//! The limit of leases as a handle knows it. It may be set or removed while handles are open.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// The time after which a handle reads the limit again.
const RENEWED_AFTER: Duration = Duration::from_secs(5);

/// The answer to whether a queue limits its leases, as last read from the database.
#[derive(Debug)]
pub(crate) struct LeaseLimit {
    is_set: AtomicBool,
    read_at: Mutex<Instant>,
}

impl LeaseLimit {
    pub fn new(is_set: bool) -> Self {
        Self { is_set: AtomicBool::new(is_set), read_at: Mutex::new(Instant::now()) }
    }

    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    pub fn set(&self, is_set: bool) {
        self.is_set.store(is_set, Ordering::Relaxed);
    }

    /// Returns true if the caller should read the limit again.
    pub fn claim(&self, now: Instant) -> bool {
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = now.saturating_duration_since(*read_at) >= RENEWED_AFTER;
        if is_due {
            *read_at = now;
        }
        is_due
    }
}
