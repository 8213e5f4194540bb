//! Many calls become one row: calls that arrive while an insert is on its way to disk gather in the
//! next batch.
//!
//! No timer and no linger: a call that finds no insert on its way starts one at once.

mod batch;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use tokio::sync::{Notify, SetOnce};

pub(crate) use self::batch::{Batch, Insertion, Receipt};
use crate::{
    error::Error,
    queue::message::{
        keys,
        unique::{Claims, Unique},
    },
};

/// A batch ends at this many bytes, unless its only message is larger. More would cost the server
/// pages: its allocator gives what is larger than 128 KiB back to the system at each statement's
/// end, and has it cleared again for the next.
pub(crate) const BATCH_BYTES: usize = 64 << 10;
/// One insert has no more rows beyond so many bytes.
pub(crate) const INSERT_BYTES: usize = 1 << 20;
/// Messages that wait may take this much memory; beyond it, callers wait for room.
const PENDING_BYTES: usize = 16 << 20;
/// Bytes that a message counts for besides its own.
const OVERHEAD: usize = 32;
/// Inserts on their way at the same time.
const WRITERS: usize = 2;
/// The second one starts when so many messages wait, or a full row: while the server stores one
/// row, the other is made.
const WORTH_ANOTHER: usize = 128;
/// Nor does it start before as many wait as a server stores in the time of an insert, at so much
/// for each. Where the disk takes that time, an insert of few would only stand behind the flush of
/// the first, and those that come next behind both.
const STORED_IN: Duration = Duration::from_micros(16);
/// While no more than so many messages wait or are on their way, each goes at once: of so few, two
/// commits that share a flush cost less than the second one's wait for the first.
const FEW: usize = 4;

/// One encoded message.
#[derive(Clone, Copy)]
pub(crate) struct New<'a> {
    pub due: f64,
    pub lane: u16,
    pub key: Option<&'a str>,
    pub element: &'a [u8],
    /// Empty where it has none.
    pub metadata: &'a [u8],
    /// Its unique key.
    pub claim: Option<&'a Unique>,
}

impl New<'_> {
    fn key_bytes(&self) -> usize {
        self.key.map_or(0, str::len) + self.claim.map_or(0, |claim| claim.key.len())
    }
}

/// The messages of one queue that wait to be written.
pub(crate) struct Coalescer {
    max_batch: usize,
    lanes: usize,
    pending: Mutex<Gathering>,
    room: Notify,
}

#[derive(Default)]
struct Gathering {
    batches: VecDeque<Batch>,
    bytes: usize,
    writers: usize,
    /// Messages in the inserts on their way.
    underway: usize,
    /// How long the last insert took.
    took: Duration,
}

impl Gathering {
    /// Whether a second writer pays: a full row waits, or as many messages in those that each lane
    /// gathers; or the other has few on their way, and few wait.
    fn is_worth_another(&self, lanes: usize) -> bool {
        let least = WORTH_ANOTHER.max((self.took.as_nanos() / STORED_IN.as_nanos()) as usize);
        let waiting = self.batches.iter().map(|batch| batch.count).sum::<usize>();
        let are_few = self.underway > 0 && waiting + self.underway <= FEW;
        self.batches.len() > lanes || waiting >= least || are_few
    }

    /// The row that a lane gathers: only the last one may get longer, so that each lane stays in
    /// order.
    fn of_lane(&mut self, lane: u16) -> Option<&mut Batch> {
        self.batches.iter_mut().rev().find(|batch| batch.lane == lane)
    }
}

/// A caller's receipt, and a writer that the caller has to start if one is needed.
pub(crate) struct Joined {
    pub place: Receipt,
    pub writer: Option<Writer>,
}

impl Coalescer {
    /// Of a queue with so many priorities.
    pub fn new(max_batch: usize, lanes: usize) -> Arc<Self> {
        Arc::new(Self { max_batch, lanes, pending: Mutex::default(), room: Notify::new() })
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Gathering> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one message to the batch that gathers; waits while too much is pending. All messages of
    /// a coalescer have a unique key, or none has.
    pub async fn join(self: &Arc<Self>, new: New<'_>) -> Joined {
        loop {
            let room = self.room.notified();
            if let Some(joined) = self.try_join(new) {
                return joined;
            }
            room.await;
        }
    }

    fn try_join(self: &Arc<Self>, new: New<'_>) -> Option<Joined> {
        let New { due, lane, key, element, metadata, claim } = new;
        let mut pending = self.pending();
        let bytes = element.len() + metadata.len() + new.key_bytes() + OVERHEAD;
        if pending.bytes > 0 && pending.bytes + bytes > PENDING_BYTES {
            return None;
        }
        pending.bytes += bytes;
        let fits = pending.of_lane(lane).is_some_and(|batch| {
            batch.due.to_bits() == due.to_bits()
                && batch.count < self.max_batch
                && batch.bytes() + element.len() + metadata.len() <= BATCH_BYTES
        });
        if !fits {
            let outcome = Arc::new(SetOnce::new());
            let (elements, keys, claims) = (BytesMut::new(), BytesMut::new(), Claims::default());
            let batch = Batch { due, lane, count: 0, elements, metadata: None, keys, claims, outcome, counted: 0 };
            pending.batches.push_back(batch);
        }
        let batch = pending.of_lane(lane)?; // there: pushed above
        batch.elements.extend_from_slice(element);
        if !metadata.is_empty() {
            batch.metadata.get_or_insert_default().push(batch.count, metadata);
        }
        if let Some(key) = key {
            keys::write(key, &mut batch.keys);
        }
        if claim.is_some() {
            batch.claims.push(claim);
        }
        batch.count += 1;
        batch.counted += bytes;
        let place = Receipt { outcome: batch.outcome.clone(), at: batch.count - 1 };
        let starts = pending.writers == 0 || pending.writers < WRITERS && pending.is_worth_another(self.lanes);
        let writer = starts.then(|| {
            pending.writers += 1;
            let (underway, count) = (Vec::new(), 0);
            Writer { coalescer: self.clone(), underway, count, began: Instant::now(), is_done: false }
        });
        Some(Joined { place, writer })
    }
}

/// The turn to insert gathered batches. However it ends, by a panic or with its runtime, no caller
/// waits for it any longer: the next caller starts another.
pub(crate) struct Writer {
    coalescer: Arc<Coalescer>,
    /// Of the batches that were handed out last.
    underway: Vec<Arc<SetOnce<Insertion>>>,
    /// Messages in them.
    count: usize,
    /// When they were.
    began: Instant,
    is_done: bool,
}

impl Writer {
    /// The batches of the next insert: the oldest, up to `rows`. None ends the turn, also where
    /// another writer goes on and little waits.
    pub fn next(&mut self, rows: usize) -> Vec<Batch> {
        let mut pending = self.coalescer.pending();
        if !self.underway.is_empty() {
            pending.took = self.began.elapsed();
        }
        self.began = Instant::now();
        pending.underway -= std::mem::take(&mut self.count);
        // What is not worth another writer is left to the one that goes on.
        let rows = if pending.writers > 1 && !pending.is_worth_another(self.coalescer.lanes) { 0 } else { rows };
        let mut bytes = 0;
        let mut taken = Vec::new();
        while taken.len() < rows && (taken.is_empty() || bytes < INSERT_BYTES) {
            let Some(batch) = pending.batches.pop_front() else { break };
            bytes += batch.counted;
            self.count += batch.count;
            taken.push(batch);
        }
        pending.bytes -= bytes;
        pending.underway += self.count;
        if taken.is_empty() && !std::mem::replace(&mut self.is_done, true) {
            pending.writers -= 1;
        }
        drop(pending);
        self.underway.clear();
        self.underway.extend(taken.iter().map(|batch| batch.outcome.clone()));
        self.coalescer.room.notify_waiters();
        taken
    }

    /// Whether any wait for the next insert.
    pub fn others_wait(&self) -> bool {
        !self.coalescer.pending().batches.is_empty()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut pending = self.coalescer.pending();
        pending.writers -= 1;
        pending.underway -= self.count;
        // No other writer is left for the waiting batches; their callers must not wait for the next
        // one.
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
mod tests;
