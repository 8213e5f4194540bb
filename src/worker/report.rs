//! The state of a worker's reports.

use std::time::{Instant, SystemTime};

use uuid::Uuid;

use crate::worker::calls::{Calls, Counted};

pub(super) struct Report {
    pub calls: Calls,
    pub worker: Uuid,
    pub began: SystemTime,
    /// The last report. The lock is held while a report is sent.
    pub told: tokio::sync::Mutex<Told>,
}

/// The last report. If a report cannot be sent, the next one also covers its time.
pub(super) struct Told {
    pub counted: Counted,
    pub at: Instant,
    pub failed: bool,
    /// True once the worker's final report has begun. No report follows it.
    pub is_over: bool,
}

impl Report {
    pub fn new() -> Self {
        let told = Told { counted: Counted::default(), at: Instant::now(), failed: false, is_over: false };
        Self {
            calls: Calls::default(),
            worker: Uuid::new_v4(),
            began: SystemTime::now(),
            told: tokio::sync::Mutex::new(told),
        }
    }
}
