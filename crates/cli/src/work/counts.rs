//! Counts of commands, shown on a terminal.

use std::{
    convert::Infallible,
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use indicatif::ProgressBar;

use crate::progress;

/// The counts of commands. The worker itself counts the outcomes of the messages.
#[derive(Debug)]
pub struct Counts {
    bar: ProgressBar,
    /// Locked while the thread that writes is writing. A slow reader may make that take long.
    /// No other thread waits for the bar meanwhile.
    writing: Mutex<()>,
    done: AtomicU64,
    started: AtomicU64,
    ended: AtomicU64,
    failed: AtomicU64,
    dead: AtomicU64,
}

/// A command that counts as running until this value is dropped.
pub struct Running<'a>(&'a Counts);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Relaxed);
    }
}

impl Counts {
    pub fn new(queue: &str) -> Self {
        let zero = AtomicU64::default;
        let (bar, writing) = (progress::work(queue), Mutex::default());
        Self { bar, writing, done: zero(), started: zero(), ended: zero(), failed: zero(), dead: zero() }
    }

    pub fn start(&self) -> Running<'_> {
        self.started.fetch_add(1, Relaxed);
        Running(self)
    }

    pub fn done(&self) {
        self.done.fetch_add(1, Relaxed);
    }

    pub fn failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    pub fn dead(&self) {
        self.dead.fetch_add(1, Relaxed);
    }

    pub fn started(&self) -> u64 {
        self.started.load(Relaxed)
    }

    pub fn running(&self) -> u64 {
        let ended = self.ended.load(Relaxed);
        self.started.load(Relaxed).saturating_sub(ended)
    }

    /// Calls `write`. Its output appears above the progress bar.
    pub fn beside_progress<R>(&self, write: impl FnOnce() -> R) -> R {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.bar.suspend(write)
    }

    /// Shows the progress until the future is dropped.
    pub async fn show(&self) -> Infallible {
        let mut ticks = tokio::time::interval(progress::TICK);
        loop {
            ticks.tick().await;
            let Some(_free) = self.free() else { continue };
            let [failed, dead] = [&self.failed, &self.dead].map(|count| count.load(Relaxed));
            let (running, rate) = (self.running(), self.bar.per_sec());
            self.bar.set_position(self.done.load(Relaxed));
            self.bar.set_message(format!("{failed} failed, {dead} dead, {running} running, {rate:.0}/s"));
            self.bar.tick();
        }
    }

    pub fn clear(&self) {
        if let Some(_free) = self.free() {
            self.bar.finish_and_clear();
        }
    }

    /// Keeps the other thread from writing. Returns `None` while it is writing.
    fn free(&self) -> Option<MutexGuard<'_, ()>> {
        match self.writing.try_lock() {
            Ok(free) => Some(free),
            Err(TryLockError::Poisoned(free)) => Some(free.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
