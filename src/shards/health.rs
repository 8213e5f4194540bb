//! The health of a shard for enqueues: state that all callers share, without I/O.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use crate::error::Error;

/// The silence in milliseconds after which a shard receives no more calls. This applies if calls
/// wait for the shard and there are other shards.
const SILENCE: u64 = 1000;
/// The time in milliseconds between checks whether a shard is draining, while messages are
/// enqueued.
const ASK: u64 = 5000;

/// The fitness of a shard for enqueues; lower values are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fitness {
    Healthy,
    /// Calls are waiting, and the server has been silent for too long.
    Unresponsive,
    /// The shard is draining, so it is used only if there is no other shard.
    Drains,
    /// The server could not be reached. A task tries it again, and no caller waits for it.
    Down,
    /// The shard is drained, and refuses messages.
    Drained,
}

#[derive(Debug)]
pub(super) struct Health {
    origin: Instant,
    /// The number of waiting calls.
    load: AtomicUsize,
    /// The time of the last answer or of the start of the first waiting call, whichever is later,
    /// in milliseconds since the origin.
    heard: AtomicU64,
    /// The time of the next check whether the shard is draining, in milliseconds since the origin.
    ask: AtomicU64,
    is_down: AtomicBool,
    drains: AtomicBool,
    is_drained: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            origin: Instant::now(),
            load: AtomicUsize::new(0),
            heard: AtomicU64::new(0),
            ask: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
            drains: AtomicBool::new(false),
            is_drained: AtomicBool::new(false),
            error: Mutex::default(),
        }
    }
}

/// A waiting call, which is counted until this guard is dropped.
pub(super) struct WaitingCall<'a>(&'a Health);

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.0.load.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Health {
    fn at(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.origin).as_millis() as u64
    }

    fn reason(&self) -> MutexGuard<'_, Option<Error>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(&self, now: Instant) -> WaitingCall<'_> {
        if self.load.fetch_add(1, Ordering::Relaxed) == 0 {
            self.answered(now);
        }
        WaitingCall(self)
    }

    pub fn answered(&self, now: Instant) {
        self.heard.store(self.at(now), Ordering::Relaxed);
    }

    pub fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    pub fn fitness(&self, now: Instant) -> Fitness {
        if self.is_down.load(Ordering::Relaxed) {
            return Fitness::Down;
        }
        if self.is_drained.load(Ordering::Relaxed) {
            return Fitness::Drained;
        }
        if self.drains.load(Ordering::Relaxed) {
            return Fitness::Drains;
        }
        let silence = self.at(now).saturating_sub(self.heard.load(Ordering::Relaxed));
        if self.load() > 0 && silence > SILENCE { Fitness::Unresponsive } else { Fitness::Healthy }
    }

    /// Marks the shard as down. Returns true if it was up before.
    pub fn lost(&self, error: Error) -> bool {
        let mut reason = self.reason(); // stays locked, so that the reason and `is_down` agree
        *reason = Some(error);
        !self.is_down.swap(true, Ordering::Relaxed)
    }

    pub fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    /// Marks the shard as up.
    pub fn back(&self) {
        let mut reason = self.reason();
        *reason = None;
        self.is_down.store(false, Ordering::Relaxed);
    }

    pub fn error(&self) -> Option<Error> {
        self.reason().clone()
    }

    /// Returns true if the shard is draining or drained, as it last reported, even if it is down
    /// now.
    pub fn is_leaving(&self) -> bool {
        self.drains.load(Ordering::Relaxed) || self.is_drained.load(Ordering::Relaxed)
    }

    /// Records whether the shard is draining, as its database reports.
    pub fn drains(&self, drains: bool) {
        self.drains.store(drains, Ordering::Relaxed);
        if !drains {
            self.is_drained.store(false, Ordering::Relaxed);
        }
    }

    /// Marks the shard as drained, because it refused a message.
    pub fn drained(&self) {
        self.drains.store(true, Ordering::Relaxed);
        self.is_drained.store(true, Ordering::Relaxed);
    }

    /// Returns true if a check for draining is due. The caller must then check.
    pub fn claim_ask(&self, now: Instant) -> bool {
        let (now, due) = (self.at(now), self.ask.load(Ordering::Relaxed));
        let next = now + ASK;
        now >= due && self.ask.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SILENCE: Duration = Duration::from_millis(super::SILENCE);
    const ASK: Duration = Duration::from_millis(super::ASK);

    #[test]
    fn only_a_shard_with_unanswered_calls_is_unresponsive() {
        let (health, now) = (Health::default(), Instant::now());
        let late = now + SILENCE * 2;
        assert_eq!(health.fitness(late), Fitness::Healthy);
        let first = health.begin(now);
        assert_eq!((health.fitness(now), health.fitness(late)), (Fitness::Healthy, Fitness::Unresponsive));
        health.answered(late);
        assert_eq!(health.fitness(late), Fitness::Healthy, "others were answered meanwhile");
        drop(first);
        assert_eq!(health.fitness(late), Fitness::Healthy);
        let _second = health.begin(late + SILENCE * 9);
        assert_eq!(health.fitness(late + SILENCE * 9), Fitness::Healthy, "a pause without calls is no silence");
    }

    #[test]
    fn worse_state_counts() {
        let (health, now) = (Health::default(), Instant::now());
        health.drains(true);
        assert_eq!(health.fitness(now), Fitness::Drains);
        health.drained();
        assert_eq!(health.fitness(now), Fitness::Drained);
        assert!(health.lost(Error::invalid("gone")) && !health.lost(Error::invalid("still gone")));
        assert_eq!(health.fitness(now), Fitness::Down);
        assert_eq!(health.error().map(|error| error.to_string()).as_deref(), Some("still gone"));
        health.back();
        health.drains(false);
        assert_eq!(health.fitness(now), Fitness::Healthy);
    }

    #[test]
    fn one_caller_asks_every_few_seconds() {
        let (health, now) = (Health::default(), Instant::now());
        assert!(health.claim_ask(now) && !health.claim_ask(now + ASK / 2) && health.claim_ask(now + ASK));
    }
}
