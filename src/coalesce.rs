//! Many calls become one row: while one insert is on its way to disk, what arrives meanwhile gathers in the next.
//!
//! No timer and no linger: the first call that finds nobody writing writes at once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::BytesMut;
use tokio::sync::{Notify, SetOnce};

use crate::{error::Error, metadata::Stamped};

/// A batch ends at this many bytes, unless its only message is larger.
pub(crate) const BATCH_BYTES: usize = 256 << 10;
/// Messages that wait may take this much memory; beyond it, callers wait for room.
const PENDING_BYTES: usize = 16 << 20;
/// What one message counts for besides its bytes.
const OVERHEAD: usize = 32;
/// Inserts on their way at the same time; the second starts when a full row waits.
const WRITERS: usize = 2;

/// What became of a batch.
pub(crate) enum Outcome {
    /// Committed; the first message's id.
    Stored(i64),
    /// Not stored as a whole, so each message was tried: its id or its own error.
    Each(Vec<Result<i64, Error>>),
    /// Nothing is stored, or nobody knows.
    Failed(Error),
}

/// Messages that become one row.
pub(crate) struct Batch {
    /// Seconds until they are due.
    pub delay: f64,
    pub count: usize,
    /// The elements as they go over the wire.
    pub elements: BytesMut,
    /// Made when the first message joins that has any.
    pub metadata: Option<Stamped>,
    pub outcome: Arc<SetOnce<Outcome>>,
}

impl Batch {
    fn bytes(&self) -> usize {
        self.elements.len() + self.metadata.as_ref().map_or(0, Stamped::len)
    }
}

/// A caller's place in a batch.
pub(crate) struct Place {
    outcome: Arc<SetOnce<Outcome>>,
    at: usize,
}

impl Place {
    /// The message's id, once its row is committed.
    pub async fn id(self) -> Result<i64, Error> {
        match self.outcome.wait().await {
            Outcome::Stored(first) => Ok(first + self.at as i64),
            Outcome::Each(each) => each[self.at].clone(),
            Outcome::Failed(error) => Err(error.clone()),
        }
    }
}

/// The messages of one queue that wait to be written.
pub(crate) struct Coalescer {
    max_batch: usize,
    pending: Mutex<Pending>,
    room: Notify,
}

#[derive(Default)]
struct Pending {
    batches: VecDeque<Batch>,
    bytes: usize,
    writers: usize,
}

/// Whether the caller has to start a writer.
pub(crate) enum Joined {
    Writing(Place),
    StartWriter(Place),
}

impl Coalescer {
    pub fn new(max_batch: usize) -> Self {
        Self { max_batch, pending: Mutex::default(), room: Notify::new() }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one encoded message, with its encoded metadata or nothing, to the batch that gathers; waits while too much is pending.
    pub async fn join(&self, delay: f64, element: &[u8], metadata: &[u8]) -> Joined {
        loop {
            let room = self.room.notified();
            if let Some(joined) = self.try_join(delay, element, metadata) {
                return joined;
            }
            room.await;
        }
    }

    fn try_join(&self, delay: f64, element: &[u8], metadata: &[u8]) -> Option<Joined> {
        let mut pending = self.pending();
        let bytes = element.len() + metadata.len() + OVERHEAD;
        if pending.bytes > 0 && pending.bytes + bytes > PENDING_BYTES {
            return None;
        }
        pending.bytes += bytes;
        let fits = pending.batches.back().is_some_and(|batch| {
            batch.delay.to_bits() == delay.to_bits()
                && batch.count < self.max_batch
                && batch.bytes() + element.len() + metadata.len() <= BATCH_BYTES
        });
        if !fits {
            let outcome = Arc::new(SetOnce::new());
            pending.batches.push_back(Batch { delay, count: 0, elements: BytesMut::new(), metadata: None, outcome });
        }
        let batch = pending.batches.back_mut()?; // never empty here: pushed above
        batch.elements.extend_from_slice(element);
        if !metadata.is_empty() {
            batch.metadata.get_or_insert_default().push(batch.count, metadata);
        }
        batch.count += 1;
        let place = Place { outcome: batch.outcome.clone(), at: batch.count - 1 };
        // A second insert is worth its row only when that row is full.
        if pending.writers == 0 || pending.writers < WRITERS && pending.batches.len() > 1 {
            pending.writers += 1;
            Some(Joined::StartWriter(place))
        } else {
            Some(Joined::Writing(place))
        }
    }

    /// What one insert takes: the oldest batches, up to `rows`. A writer that gets nothing is done.
    pub fn next(&self, rows: usize) -> Vec<Batch> {
        let mut pending = self.pending();
        let mut bytes = 0;
        let mut taken = Vec::new();
        while taken.len() < rows && (taken.is_empty() || bytes < 4 * BATCH_BYTES) {
            let Some(batch) = pending.batches.pop_front() else { break };
            bytes += batch.elements.len() + batch.count * OVERHEAD;
            taken.push(batch);
        }
        pending.bytes -= bytes;
        if taken.is_empty() {
            pending.writers -= 1;
        }
        drop(pending);
        self.room.notify_waiters();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(coalescer: &Coalescer, delay: f64, bytes: usize) -> Option<Joined> {
        coalescer.try_join(delay, &vec![0; bytes], &[])
    }

    #[test]
    fn a_batch_ends_at_its_count_its_bytes_and_its_delay() {
        let coalescer = Coalescer::new(3);
        for _ in 0..4 {
            join(&coalescer, 0.0, 10);
        }
        join(&coalescer, 0.0, BATCH_BYTES);
        join(&coalescer, 5.0, 10);
        let counts: Vec<_> = coalescer.next(8).iter().map(|batch| batch.count).collect();
        assert_eq!(counts, [3, 1, 1, 1]);
    }

    #[test]
    fn only_the_first_callers_start_writers() {
        let coalescer = Coalescer::new(3);
        let started = (0..10).filter(|_| matches!(join(&coalescer, 0.0, 1), Some(Joined::StartWriter(_)))).count();
        assert_eq!(started, WRITERS);
    }

    #[test]
    fn memory_is_bounded_and_a_single_giant_still_passes() {
        let coalescer = Coalescer::new(1024);
        assert!(join(&coalescer, 0.0, PENDING_BYTES * 2).is_some());
        assert!(join(&coalescer, 0.0, 1).is_none());
        coalescer.next(1);
        assert!(join(&coalescer, 0.0, 1).is_some());
    }
}
