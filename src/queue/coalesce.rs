//! Many calls become one row: calls that arrive while an insert is on its way to disk gather in the next batch.
//!
//! No timer and no linger: a call that finds no insert on its way starts one at once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::BytesMut;
use tokio::sync::{Notify, SetOnce};

use crate::{error::Error, queue::metadata::Stamped};

/// A batch ends at this many bytes, unless its only message is larger.
pub(crate) const BATCH_BYTES: usize = 256 << 10;
/// Messages that wait may take this much memory; beyond it, callers wait for room.
const PENDING_BYTES: usize = 16 << 20;
/// Bytes that a message counts for besides its own.
const OVERHEAD: usize = 32;
/// Inserts on their way at the same time.
const WRITERS: usize = 2;
/// The second one starts when so many messages wait, or a full row: while the server stores one row, the other is made.
const WORTH_ANOTHER: usize = 128;

/// The result of a batch's insert.
pub(crate) enum Insertion {
    /// Committed; the first message's id.
    Stored(i64),
    /// Not stored as a whole, so each message was tried: its id or its own error.
    Each(Vec<Result<i64, Error>>),
    /// Nothing is stored, or the outcome is unknown.
    Failed(Error),
}

/// Messages that become one row.
pub(crate) struct Batch {
    /// When they are due: seconds from now, or a negative time (see [`Due::number`](crate::queue::draft::Due::number)).
    pub due: f64,
    pub count: usize,
    /// The elements as they go over the wire.
    pub elements: BytesMut,
    /// Made when the first message joins that has any.
    pub metadata: Option<Stamped>,
    pub outcome: Arc<SetOnce<Insertion>>,
    /// Bytes that its messages were counted for when they joined; subtracted when it leaves.
    counted: usize,
}

impl Batch {
    fn bytes(&self) -> usize {
        self.elements.len() + self.metadata.as_ref().map_or(0, Stamped::len)
    }
}

/// A caller's place in a batch.
pub(crate) struct Receipt {
    outcome: Arc<SetOnce<Insertion>>,
    at: usize,
}

impl Receipt {
    /// The message's id, once its row is committed.
    pub async fn id(self) -> Result<i64, Error> {
        match self.outcome.wait().await {
            Insertion::Stored(first) => Ok(first + self.at as i64),
            Insertion::Each(each) => {
                each.get(self.at).cloned().unwrap_or_else(|| Err(Error::ended("an enqueue", true)))
            }
            Insertion::Failed(error) => Err(error.clone()),
        }
    }
}

/// The messages of one queue that wait to be written.
pub(crate) struct Coalescer {
    max_batch: usize,
    pending: Mutex<Gathering>,
    room: Notify,
}

#[derive(Default)]
struct Gathering {
    batches: VecDeque<Batch>,
    bytes: usize,
    writers: usize,
}

/// A caller's receipt, and a writer that the caller has to start if one is needed.
pub(crate) struct Joined {
    pub place: Receipt,
    pub writer: Option<Writer>,
}

impl Coalescer {
    pub fn new(max_batch: usize) -> Arc<Self> {
        Arc::new(Self { max_batch, pending: Mutex::default(), room: Notify::new() })
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Gathering> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one encoded message, with its encoded metadata or nothing, to the batch that gathers; waits while too much is pending.
    pub async fn join(self: &Arc<Self>, due: f64, element: &[u8], metadata: &[u8]) -> Joined {
        loop {
            let room = self.room.notified();
            if let Some(joined) = self.try_join(due, element, metadata) {
                return joined;
            }
            room.await;
        }
    }

    fn try_join(self: &Arc<Self>, due: f64, element: &[u8], metadata: &[u8]) -> Option<Joined> {
        let mut pending = self.pending();
        let bytes = element.len() + metadata.len() + OVERHEAD;
        if pending.bytes > 0 && pending.bytes + bytes > PENDING_BYTES {
            return None;
        }
        pending.bytes += bytes;
        let fits = pending.batches.back().is_some_and(|batch| {
            batch.due.to_bits() == due.to_bits()
                && batch.count < self.max_batch
                && batch.bytes() + element.len() + metadata.len() <= BATCH_BYTES
        });
        if !fits {
            let outcome = Arc::new(SetOnce::new());
            let batch = Batch { due, count: 0, elements: BytesMut::new(), metadata: None, outcome, counted: 0 };
            pending.batches.push_back(batch);
        }
        let batch = pending.batches.back_mut()?; // never empty here: pushed above
        batch.elements.extend_from_slice(element);
        if !metadata.is_empty() {
            batch.metadata.get_or_insert_default().push(batch.count, metadata);
        }
        batch.count += 1;
        batch.counted += bytes;
        let place = Receipt { outcome: batch.outcome.clone(), at: batch.count - 1 };
        let worth_another =
            pending.batches.len() > 1 || pending.batches.back().is_some_and(|batch| batch.count >= WORTH_ANOTHER);
        let starts = pending.writers == 0 || pending.writers < WRITERS && worth_another;
        let writer = starts.then(|| {
            pending.writers += 1;
            Writer { coalescer: self.clone(), underway: Vec::new(), is_done: false }
        });
        Some(Joined { place, writer })
    }
}

/// The turn to insert gathered batches. However it ends, by a panic or with its runtime, no caller waits for it any longer: the next
/// caller starts another.
pub(crate) struct Writer {
    coalescer: Arc<Coalescer>,
    /// Of the batches that were handed out last.
    underway: Vec<Arc<SetOnce<Insertion>>>,
    is_done: bool,
}

impl Writer {
    /// The batches of the next insert: the oldest, up to `rows`. None ends the turn.
    pub fn next(&mut self, rows: usize) -> Vec<Batch> {
        let mut pending = self.coalescer.pending();
        let mut bytes = 0;
        let mut taken = Vec::new();
        while taken.len() < rows && (taken.is_empty() || bytes < 4 * BATCH_BYTES) {
            let Some(batch) = pending.batches.pop_front() else { break };
            bytes += batch.counted;
            taken.push(batch);
        }
        pending.bytes -= bytes;
        if taken.is_empty() && !std::mem::replace(&mut self.is_done, true) {
            pending.writers -= 1;
        }
        drop(pending);
        self.underway.clear();
        self.underway.extend(taken.iter().map(|batch| batch.outcome.clone()));
        self.coalescer.room.notify_waiters();
        taken
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut pending = self.coalescer.pending();
        pending.writers -= 1;
        // No other writer is left for the waiting batches; their callers must not wait for the next one.
        let unsent = if pending.writers == 0 { std::mem::take(&mut pending.batches) } else { VecDeque::new() };
        pending.bytes -= unsent.iter().map(|batch| batch.counted).sum::<usize>();
        drop(pending);
        for outcome in &self.underway {
            let _ = outcome.set(Insertion::Failed(Error::ended("an enqueue", true))); // those that were answered stay so
        }
        for batch in unsent {
            let _ = batch.outcome.set(Insertion::Failed(Error::ended("an enqueue", false))); // nobody else answers it
        }
        self.coalescer.room.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(coalescer: &Arc<Coalescer>, delay: f64, bytes: usize) -> Option<Joined> {
        coalescer.try_join(delay, &vec![0; bytes], &[])
    }

    fn writer(coalescer: &Arc<Coalescer>, bytes: usize) -> Writer {
        join(coalescer, 0.0, bytes).and_then(|joined| joined.writer).expect("nobody writes yet")
    }

    /// Bytes that are counted, and writers.
    fn left(coalescer: &Arc<Coalescer>) -> (usize, usize) {
        let pending = coalescer.pending();
        (pending.bytes, pending.writers)
    }

    fn outcome(joined: &Joined) -> &Error {
        match joined.place.outcome.get() {
            Some(Insertion::Failed(error)) => error,
            _ => panic!("not answered"),
        }
    }

    #[test]
    fn a_batch_ends_at_its_count_its_bytes_and_its_delay() {
        let coalescer = Coalescer::new(3);
        let mut writer = writer(&coalescer, 10);
        for _ in 0..3 {
            join(&coalescer, 0.0, 10);
        }
        join(&coalescer, 0.0, BATCH_BYTES);
        join(&coalescer, 5.0, 10);
        let counts: Vec<_> = writer.next(8).iter().map(|batch| batch.count).collect();
        assert_eq!(counts, [3, 1, 1, 1]);
    }

    #[test]
    fn only_the_first_callers_start_writers() {
        let coalescer = Coalescer::new(3);
        let writers: Vec<_> = (0..10).filter_map(|_| join(&coalescer, 0.0, 1)?.writer).collect();
        assert_eq!(writers.len(), WRITERS);
    }

    #[test]
    fn memory_is_bounded_and_a_single_giant_still_passes() {
        let coalescer = Coalescer::new(1024);
        let mut writer = writer(&coalescer, PENDING_BYTES * 2);
        assert!(join(&coalescer, 0.0, 1).is_none());
        writer.next(1);
        assert!(join(&coalescer, 0.0, 1).is_some());
    }

    /// Null stands for those that have no metadata: those bytes were never counted, and the others' were.
    #[test]
    fn what_messages_were_counted_for_is_given_back_with_them_metadata_included() {
        let coalescer = Coalescer::new(7);
        let mut writer = writer(&coalescer, 1);
        for nr in 0..1000_usize {
            let metadata = if nr % 3 == 0 { vec![0; 1 + nr % 500] } else { Vec::new() };
            coalescer.try_join(0.0, &[0; 9], &metadata).expect("room");
        }
        while !writer.next(3).is_empty() {}
        assert_eq!(left(&coalescer), (0, 0));
    }

    #[test]
    fn whoever_waits_for_a_writer_that_is_gone_is_answered_and_the_next_starts_another() {
        let coalescer = Coalescer::new(1);
        let mut first = join(&coalescer, 0.0, 1).expect("room");
        let second = join(&coalescer, 0.0, 1).expect("room");
        let (mut writer, other) = (first.writer.take().expect("the first"), second.writer.expect("a full row waits"));
        assert_eq!(writer.next(1).len(), 1);
        drop(writer);
        assert!(outcome(&first).is_outcome_unknown(), "it was handed out");
        assert!(second.place.outcome.get().is_none(), "the other writes it yet");
        drop(other);
        let second = Joined { place: second.place, writer: None };
        assert!(!outcome(&second).is_outcome_unknown(), "it was not");
        assert_eq!(left(&coalescer), (0, 0));
        assert!(join(&coalescer, 0.0, 1).is_some_and(|joined| joined.writer.is_some()));
    }
}
