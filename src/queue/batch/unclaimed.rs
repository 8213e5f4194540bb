//! Dequeued messages without a caller, which go back to the queue.
//!
//! A task puts these messages back. If the task ends with its runtime, or its tries fail for a
//! while, they are stored here, and the next dequeue puts them back.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::{BufMut, Bytes, BytesMut};
use postgres_types::Type;
use tokio::sync::watch;

use crate::{
    postgres::{
        array::{Elements, Received},
        time::Time,
        wire::Row,
    },
    queue::message::{Lease, Ranges, payload::MAX_BATCH, reason::reason_of},
};

#[derive(Debug)]
pub(crate) enum Unclaimed {
    Taken(Row),
    Leased(Ranges),
    /// A taken message or row that its consumer cannot read.
    Unreadable(Unreadable),
    /// A message that was sent directly, so that the queue never stored it. It may be readable.
    Direct(Unreadable),
}

/// Messages that wait for the next dequeue, whose runtime starts a task that puts them back.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    left: Mutex<VecDeque<Unclaimed>>,
    /// The number of tasks and calls that are putting messages back.
    returning: watch::Sender<usize>,
}

impl Kept {
    pub fn keep(&self, more: impl IntoIterator<Item = Unclaimed>) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).extend(more);
    }

    pub fn take(&self) -> VecDeque<Unclaimed> {
        std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a task that puts messages back.
    pub fn begin(&self) {
        self.returning.send_modify(|count| *count += 1);
    }

    /// Ends what [`Kept::begin`] counted.
    pub fn end(&self) {
        self.returning.send_modify(|count| *count -= 1);
    }

    /// Waits until no task puts messages back.
    pub async fn returned(&self) {
        let _ = self.returning.subscribe().wait_for(|count| *count == 0).await; // the sender is in `self`
    }
}

/// A message or a malformed row that its consumer cannot read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub id: i64,
    pub size: i32,
    pub attempt: i32,
    pub released: i32,
    pub enqueued_at: Time,
    /// The payloads, as an array: that of the malformed row, or a new array with one payload.
    payload: Bytes,
    metadata: Option<Bytes>,
    /// The values of the row's columns that users added.
    pub own: Option<String>,
    pub reason: String,
    /// The keys of the messages, if they were leased from a partition.
    pub keys: Vec<Arc<str>>,
    /// The number of readable messages that the same dequeue returns before these messages.
    pub readable_before: usize,
    /// True if the last lease expired, so that the message was leased alone.
    pub ran_out: bool,
}

impl Unreadable {
    /// Copies a malformed row.
    pub fn of_row(
        (id, size, (attempt, released), enqueued_at): (i64, i32, (i32, i32), Time),
        payload: &Received<'_>,
        metadata: Option<&Received<'_>>,
        reason: String,
    ) -> Self {
        let copied = |array: &Received<'_>| Bytes::copy_from_slice(array.bytes());
        Self {
            id,
            size,
            attempt,
            released,
            enqueued_at,
            payload: copied(payload),
            metadata: metadata.map(copied),
            own: None,
            reason: reason_of(reason),
            keys: Vec::new(),
            readable_before: 0,
            ran_out: false,
        }
    }

    /// Copies one message of a row. Its payload may be null. The metadata is a `jsonb` as it was
    /// received, because another program may have written what `Metadata` cannot express.
    pub fn of_message(
        (id, (attempt, released), enqueued_at): (i64, (i32, i32), Time),
        (element, payload): (u32, Option<&[u8]>),
        metadata: Option<&[u8]>,
        reason: String,
    ) -> Self {
        Self {
            id,
            size: 1,
            attempt,
            released,
            enqueued_at,
            payload: array_of(element, payload),
            metadata: metadata.map(metadata_of),
            own: None,
            reason: reason_of(reason),
            keys: Vec::new(),
            readable_before: 0,
            ran_out: false,
        }
    }

    /// Returns the number of messages, at most as many as a row can have.
    pub fn count(&self) -> usize {
        (self.size.unsigned_abs() as usize).min(MAX_BATCH)
    }

    /// Returns the leases of the messages.
    pub fn leases(&self) -> impl Iterator<Item = Lease> + use<> {
        let (id, attempt) = (self.id, self.attempt);
        (0_i64..).take(self.count()).map(move |nr| Lease { id: id.wrapping_add(nr), attempt })
    }

    /// Returns the leases of the messages, each with its key, if it was leased from a partition.
    pub fn leases_and_keys(&self) -> impl Iterator<Item = (Lease, Option<Arc<str>>)> {
        self.leases().enumerate().map(move |(nr, lease)| (lease, self.keys.get(nr).cloned()))
    }

    pub fn payload(&self) -> Received<'_> {
        Received::of(&self.payload)
    }

    pub fn metadata(&self) -> Option<Received<'_>> {
        self.metadata.as_deref().map(Received::of)
    }
}

/// Writes the metadata of one message as an array in the wire format.
fn metadata_of(raw: &[u8]) -> Bytes {
    array_of(Type::JSONB.oid(), Some(raw))
}

/// Writes an array of one element in the wire format.
fn array_of(element: u32, value: Option<&[u8]>) -> Bytes {
    let (mut values, mut array) = (BytesMut::new(), BytesMut::new());
    match value {
        None => values.put_i32(-1),
        Some(value) => {
            values.put_i32(value.len() as i32); // it was an element of an array, or fitted in a notification
            values.put_slice(value);
        }
    }
    Elements { element, count: 1, nulls: value.is_none(), values: &values }.write(&mut array);
    array.freeze()
}
