//! What a worker that reports knows of itself.

use std::time::{Instant, SystemTime};

use uuid::Uuid;

use crate::worker::calls::{Calls, Counted};

/// Of one worker.
pub(super) struct Report {
    pub calls: Calls,
    pub worker: Uuid,
    pub began: SystemTime,
    /// Held while something is told.
    pub told: tokio::sync::Mutex<Told>,
}

/// What was told last, and when. What could not be told is in the next one.
pub(super) struct Told {
    pub counted: Counted,
    pub at: Instant,
    pub failed: bool,
}

impl Report {
    pub fn new() -> Self {
        let told = Told { counted: Counted::default(), at: Instant::now(), failed: false };
        Self {
            calls: Calls::default(),
            worker: Uuid::new_v4(),
            began: SystemTime::now(),
            told: tokio::sync::Mutex::new(told),
        }
    }
}
