//! Hooks that a consumer or a worker calls while it works, for the tests, logs and metrics of a
//! program.

use std::{fmt, sync::Arc};

use tracing::warn;

use crate::{
    error::caught,
    queue::message::{Lease, failure::Failure},
};

type BeforeWait = dyn Fn() + Send + Sync;
type AfterAttempt = dyn Fn(Lease, Result<(), &Failure>) + Send + Sync;

/// Functions, called in the order in which they were added.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    before_wait: Vec<Arc<BeforeWait>>,
    after_attempt: Vec<Arc<AfterAttempt>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before_wait, after_attempt } = self;
        out.debug_struct("Hooks").field("waits", &before_wait.len()).field("attempts", &after_attempt.len()).finish()
    }
}

impl Hooks {
    pub fn add_before_wait(&mut self, hook: impl Fn() + Send + Sync + 'static) {
        self.before_wait.push(Arc::new(hook));
    }

    pub fn add_after_attempt(&mut self, hook: impl Fn(Lease, Result<(), &Failure>) + Send + Sync + 'static) {
        self.after_attempt.push(Arc::new(hook));
    }

    pub fn before_wait(&self) {
        self.before_wait.iter().for_each(|hook| call(|| hook()));
    }

    /// Returns true if there are hooks for attempts.
    pub fn watch_attempts(&self) -> bool {
        !self.after_attempt.is_empty()
    }

    pub fn after_attempt<'a>(&self, attempts: impl Iterator<Item = (Lease, Result<(), &'a Failure>)>) {
        for (lease, outcome) in attempts {
            self.after_attempt.iter().for_each(|hook| call(|| hook(lease, outcome)));
        }
    }
}

/// Calls a hook. If the hook panics, the work continues.
fn call(hook: impl FnOnce()) {
    if let Err(panic) = caught(hook) {
        warn!(panic, "hook panicked; the work continues");
    }
}
