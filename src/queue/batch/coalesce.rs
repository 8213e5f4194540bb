//! Enqueues that arrive while an insert runs become one row of the next insert.

mod batch;

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex, Notify},
    time::timeout,
};

pub(crate) use self::batch::{Batch, Insertion, Receipt};
use super::batcher::{Batcher, Permit, Running, Waiting};
use crate::{
    error::Error,
    queue::message::{keys, unique::Unique},
};

/// The maximum number of bytes in a row, unless its only message is larger. A larger row would make
/// the server allocate new pages: its allocator returns blocks above 128 KiB to the system when a
/// statement ends, and needs cleared blocks for the next one.
pub(crate) const BATCH_BYTES: usize = 64 << 10;
/// The size in bytes above which an insert accepts no further row.
pub(crate) const INSERT_BYTES: usize = 1 << 20;
/// The maximum memory of waiting messages. Above this limit, callers wait for room.
const WAITING_BYTES: usize = 16 << 20;
/// The overhead in bytes that is counted for each message in addition to its size.
const OVERHEAD: usize = 32;
/// The number of waiting messages that starts a second insert. A full row also starts one. While
/// the server stores one row, the client encodes the other.
const WORTH_ANOTHER: usize = 128;
/// The time that a server needs to store a message. A second insert starts only if at least as many
/// messages wait as the server stores while an insert runs. On a slow disk, a small insert would
/// only queue behind the first insert's flush, and the next calls would queue behind both.
const STORED_IN: Duration = Duration::from_micros(16);
/// The maximum number of messages, waiting or being inserted, for which a second insert starts at
/// once. Two commits that share a flush cost less than waiting for the first commit.
const FEW: usize = 4;

/// The number of rows that are searched for the one that a message can join, unless there are more
/// lanes.
const SEARCHED: usize = 256;

/// The time after which a caller tries to join without its turn.
const TURN: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
pub(crate) struct New<'a> {
    pub due: f64,
    pub lane: u16,
    pub key: Option<&'a str>,
    pub element: &'a [u8],
    /// The encoded metadata; empty if the message has none.
    pub metadata: &'a [u8],
    /// The message's unique key.
    pub claim: Option<&'a Unique>,
    /// The values of columns that users added.
    pub columns: Option<&'a str>,
}

impl New<'_> {
    /// Returns the number of bytes that are counted for the message while it waits.
    fn bytes(&self) -> usize {
        let keys = self.key.map_or(0, str::len) + self.claim.map_or(0, |claim| claim.key.len());
        self.element.len() + self.metadata.len() + keys + self.columns.map_or(0, str::len) + OVERHEAD
    }
}

/// The messages of one queue that wait to be written.
pub(crate) struct Coalescer {
    batcher: Arc<Batcher<OpenRows>>,
    /// Notified when messages leave the coalescer.
    room: Arc<Notify>,
    /// The number of callers that wait for room.
    waiting: AtomicUsize,
    /// Lets the callers that wait for room try one after another, in order of arrival.
    turn: Mutex<()>,
}

/// Counts a caller that waits for room. Dropping this value ends the count.
struct WaitingCaller<'a>(&'a AtomicUsize);

impl<'a> WaitingCaller<'a> {
    fn of(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for WaitingCaller<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) type InsertPermit = Permit<OpenRows>;

/// A caller's receipt, and a permit if the caller must start an insert.
pub(crate) struct Joined {
    pub receipt: Receipt,
    pub permit: Option<InsertPermit>,
}

impl Coalescer {
    /// Creates a coalescer for a queue with `lanes` priorities or partitions. Either all of its
    /// messages have a unique key, or none of them has. An insert takes at most `rows` rows of at
    /// most `max_batch` messages each.
    pub fn new(max_batch: usize, lanes: usize, rows: usize) -> Self {
        let room = Arc::new(Notify::new());
        let waiting = OpenRows {
            max_batch,
            lanes,
            at_once: rows,
            batches: VecDeque::new(),
            messages: 0,
            bytes: 0,
            room: room.clone(),
        };
        Self { batcher: Batcher::new(waiting), room, waiting: AtomicUsize::new(0), turn: Mutex::new(()) }
    }

    /// Adds one message to the row that is being collected. Waits while the waiting messages take
    /// too much memory. Callers that wait are served in order, so that small messages do not take
    /// the room that a large one waits for. A caller keeps to the order for at most [`TURN`].
    pub async fn join(&self, new: New<'_>) -> Joined {
        if self.waiting.load(Ordering::Relaxed) == 0
            && let Some(joined) = self.try_join(new)
        {
            return joined;
        }
        let _counted = WaitingCaller::of(&self.waiting);
        // Limits the wait. The turn may belong to a future that its task does not poll, for example
        // because the task awaits this call first.
        let _turn = timeout(TURN, self.turn.lock()).await;
        loop {
            let room = self.room.notified();
            if let Some(joined) = self.try_join(new) {
                return joined;
            }
            room.await;
        }
    }

    fn try_join(&self, new: New<'_>) -> Option<Joined> {
        let (receipt, permit) = self.batcher.try_join(|rows| rows.has_room(&new).then(|| rows.add(new)))?;
        Some(Joined { receipt, permit })
    }
}

pub(crate) struct OpenRows {
    max_batch: usize,
    lanes: usize,
    /// The maximum number of rows in one insert.
    at_once: usize,
    batches: VecDeque<Batch>,
    /// The number of messages in all batches. Counting them again for each insert would take
    /// quadratic time if each message has its own row.
    messages: usize,
    bytes: usize,
    room: Arc<Notify>,
}

impl OpenRows {
    fn has_room(&self, new: &New<'_>) -> bool {
        self.bytes == 0 || self.bytes + new.bytes() <= WAITING_BYTES
    }

    fn add(&mut self, new: New<'_>) -> Receipt {
        let New { due, lane, key, element, metadata, claim, columns } = new;
        self.bytes += new.bytes();
        self.messages += 1;
        // Only the last row of a priority or partition grows, so that its messages stay in order.
        // Messages with other column values go into separate rows. If the values of all messages
        // differ, a search of all rows would take longer with each message. A row that is not found
        // grows no more, and the new row comes after it.
        let searched = self.batches.len().saturating_sub(SEARCHED.max(self.lanes));
        let is_of = |batch: &Batch| batch.lane == lane && batch.columns.as_deref() == columns;
        let last = self.batches.range(searched..).rposition(is_of);
        let at = last.map(|at| searched + at).filter(|at| {
            let batch = &self.batches[*at];
            batch.due.to_bits() == due.to_bits()
                && batch.count < self.max_batch
                && batch.bytes() + element.len() + metadata.len() <= BATCH_BYTES
        });
        let at = at.unwrap_or_else(|| {
            self.batches.push_back(Batch::new(due, lane, columns.map(Into::into)));
            self.batches.len() - 1
        });
        let batch = &mut self.batches[at];
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
        batch.counted += new.bytes();
        batch.receipt()
    }
}

impl Waiting for OpenRows {
    type Call = Batch;
    type Work = Vec<Batch>;
    const STATEMENTS: usize = 2;

    fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Returns true if another insert is worth starting: if more rows wait than there are lanes,
    /// usually because a row is full; if enough messages wait; or if few messages wait and the
    /// running insert has few.
    fn deserve_another(&self, running: &Running) -> bool {
        let least = WORTH_ANOTHER.max((running.took.as_nanos() / STORED_IN.as_nanos()) as usize);
        let are_few = running.messages > 0 && self.messages + running.messages <= FEW;
        self.batches.len() > self.lanes || self.messages >= least || are_few
    }

    /// Takes the oldest rows. A row with column values is taken alone. Messages that do not justify
    /// a second insert wait for the task of the running insert.
    fn next(&mut self, running: &Running) -> Option<(Vec<Batch>, usize)> {
        if self.is_empty() || running.statements > 1 && !self.deserve_another(running) {
            return None;
        }
        let (mut bytes, mut taken) = (0, Vec::new());
        while taken.len() < self.at_once && (taken.is_empty() || bytes < INSERT_BYTES) {
            let is_alone = self.batches.front().is_some_and(|batch| batch.columns.is_some());
            if is_alone && !taken.is_empty() {
                break;
            }
            let Some(batch) = self.batches.pop_front() else { break };
            bytes += batch.counted;
            taken.push(batch);
            if is_alone {
                break;
            }
        }
        let messages: usize = taken.iter().map(|batch| batch.count).sum();
        self.bytes -= bytes;
        self.messages -= messages;
        self.room.notify_waiters();
        Some((taken, messages))
    }

    fn abandoned(&mut self) -> Vec<Batch> {
        (self.messages, self.bytes) = (0, 0);
        self.room.notify_waiters();
        self.batches.drain(..).collect()
    }

    fn fail(batch: Batch) {
        batch.answer(Insertion::Failed(Error::ended("an enqueue", false)));
    }
}

#[cfg(test)]
mod tests;
