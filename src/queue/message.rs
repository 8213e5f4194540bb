//! A message as a consumer receives it, and its lease.

pub(crate) mod payload;
pub(crate) mod readable;
pub(crate) mod metadata;
pub(crate) mod unique;
pub(crate) mod draft;
pub(crate) mod columns;
pub(crate) mod dequeue;
pub(crate) mod trace;
pub(crate) mod keys;
pub(super) mod reason;
pub(crate) mod failure;

use std::{sync::Arc, time::SystemTime};

use crate::{
    error::{Error, Kind, Result},
    queue::message::{keys::Rate, metadata::Metadata, trace::TraceContext},
};

/// A message as a consumer receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message<T> {
    /// The message's id, unique in its queue. It stays the same after splits, retries and replays.
    pub id: i64,
    /// The number of deliveries so far, including this one: 1 for the first lease. It is 0 if the
    /// message was taken and never leased. A lease that was released counts here, but not towards
    /// the queue's maximum: see [`Message::attempts`].
    pub attempt: i32,
    /// The time at which the message was enqueued, by the server's clock.
    pub enqueued_at: SystemTime,
    /// The payload.
    pub payload: T,
    /// The metadata that was enqueued with the message; empty for most messages.
    pub metadata: Metadata,
    /// The message's key, if a worker leased it from a queue whose messages have keys.
    pub key: Option<Arc<str>>,
    /// The rate at which workers may start messages of this key.
    pub(crate) rate: Option<Arc<Rate>>,
    /// True if the last lease expired, which may mean that the message crashed its worker, so that
    /// it was leased alone.
    pub(crate) ran_out: bool,
    /// The number of deliveries that were given back without counting an attempt.
    pub(crate) released: i32,
}

impl<T> Message<T> {
    /// Returns the lease of this delivery, for `ack`, `retry` and `extend`. A lease is small and
    /// does not contain the payload.
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease { id: self.id, attempt: self.attempt }
    }

    /// Returns the same message with its payload converted by `make`.
    #[must_use]
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Message<U> {
        let Self { id, attempt, enqueued_at, payload, metadata, key, rate, ran_out, released } = self;
        Message { id, attempt, enqueued_at, payload: make(payload), metadata, key, rate, ran_out, released }
    }

    /// Returns the number of counted attempts, including this one. The queue's maximum and retry
    /// policies use this number. A worker that has leased more messages than it can start soon
    /// releases some of them, without counting an attempt. So a handler that receives a message for
    /// the first time sees 1 here, while [`Message::attempt`] may be higher.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempt.saturating_sub(self.released).unsigned_abs()
    }
}

/// The right to one message during one attempt. Calls that end a lease pass the message's id and
/// attempt, so a late call from an earlier attempt changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// The message's id.
    pub id: i64,
    /// The attempt of the lease.
    pub attempt: i32,
}

impl TraceContext {
    /// Returns the trace context of these messages if all of them have the same one.
    pub(crate) fn of_all<T>(messages: &[Message<T>]) -> Option<Self> {
        let (first, rest) = messages.split_first()?;
        let traceparent = first.metadata.traceparent()?;
        let same = rest.iter().all(|message| message.metadata.traceparent() == Some(traceparent));
        if same { Self::of(&first.metadata) } else { None }
    }
}

impl<T> From<&Message<T>> for Lease {
    fn from(message: &Message<T>) -> Self {
        message.lease()
    }
}

impl From<&Lease> for Lease {
    fn from(lease: &Lease) -> Self {
        *lease
    }
}

/// Ranges of adjacent leased messages, in the form that statements accept.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    pub ids: Vec<i64>,
    pub sizes: Vec<i32>,
    pub attempts: Vec<i32>,
}

impl Ranges {
    pub fn messages(&self) -> usize {
        self.sizes.iter().map(|size| *size as usize).sum()
    }

    /// Returns each range as a separate value.
    pub fn apart(&self) -> impl Iterator<Item = Self> {
        let range = |at: usize| Self {
            ids: vec![self.ids[at]],
            sizes: vec![self.sizes[at]],
            attempts: vec![self.attempts[at]],
        };
        (0..self.ids.len()).map(range)
    }

    /// Joins adjacent leases with the same attempt for which `also_alike` returns true. The leases
    /// must be sorted and distinct.
    pub fn of(leases: &[Lease], also_alike: impl Fn(usize, usize) -> bool) -> Self {
        let mut ranges = Self::default();
        for (at, lease) in leases.iter().enumerate() {
            let next_to_last = at > 0
                && leases[at - 1].id + 1 == lease.id
                && leases[at - 1].attempt == lease.attempt
                && also_alike(at - 1, at);
            match ranges.sizes.last_mut() {
                Some(size) if next_to_last => *size += 1,
                _ => {
                    ranges.ids.push(lease.id);
                    ranges.sizes.push(1);
                    ranges.attempts.push(lease.attempt);
                }
            }
        }
        ranges
    }
}

/// A range of messages that a statement settled: `size` messages from `id` on, under one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settled {
    pub id: i64,
    pub size: i32,
    pub attempt: i32,
    /// True if the messages became dead letters because their attempts were exhausted.
    pub dead: bool,
}

impl Settled {
    /// Creates a range after checking that its ids are valid.
    pub fn checked(id: i64, size: i32, attempt: i32) -> Result<Self> {
        if size < 1 || id.checked_add(i64::from(size)).is_none() {
            return Err(Error::new(Kind::Answer(format!("{size} messages from {id} on were settled").into())));
        }
        Ok(Self { id, size, attempt, dead: false })
    }

    pub fn messages(all: impl IntoIterator<Item = Self>) -> usize {
        all.into_iter().map(|settled| settled.size as usize).sum()
    }

    pub fn leases(self) -> impl Iterator<Item = Lease> {
        (self.id..self.id + i64::from(self.size)).map(move |id| Lease { id, attempt: self.attempt })
    }
}
