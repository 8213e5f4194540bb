//! The worker's messages of one key.

use std::{collections::VecDeque, time::Instant};

use super::super::{bucket::Bucket, bytes::HeldBytes};
use crate::queue::message::Message;

/// A message that waits for a task.
pub(crate) struct Prefetched<T> {
    pub message: Message<T>,
    pub group: usize,
    pub until: Instant,
    pub bytes: Option<HeldBytes>,
}

pub(super) struct Key<T> {
    /// The number of the key's messages that are running or ready to start.
    pub active: usize,
    pub behind: VecDeque<Prefetched<T>>,
    /// The number of leases that the server has not ended yet.
    pub ending: usize,
    /// True if the key is barred until the current lease statement has returned.
    pub is_stale: bool,
    pub bucket: Option<Bucket>,
    /// True if a timer is set for the time when the bucket lets a message start.
    pub is_timed: bool,
}

impl<T> Default for Key<T> {
    fn default() -> Self {
        Self { active: 0, behind: VecDeque::new(), ending: 0, is_stale: false, bucket: None, is_timed: false }
    }
}

impl<T> Key<T> {
    pub fn is_barred(&self) -> bool {
        self.ending > 0 || self.is_stale
    }

    pub fn is_idle(&self) -> bool {
        self.active == 0 && self.behind.is_empty() && !self.is_barred() && self.bucket.is_none()
    }

    /// Returns the time at which the bucket lets one more message start, after all waiting
    /// messages.
    pub fn opens(&self, now: Instant) -> Instant {
        self.bucket.as_ref().map_or(now, |bucket| bucket.opens(self.behind.len(), now))
    }

    /// Returns true if the first waiting message may start. If none is waiting, returns true if a
    /// new message may start.
    pub fn is_open(&self, per_key: usize, now: Instant) -> bool {
        self.active < per_key && self.bucket.as_ref().is_none_or(|bucket| bucket.opens(0, now) <= now)
    }

    pub fn activate(&mut self) {
        self.active += 1;
        self.bucket.iter_mut().for_each(Bucket::promise);
    }
}
