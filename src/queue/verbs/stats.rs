//! The counts of a queue, and its next messages.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    error::Result,
    postgres::{
        array::Received,
        time::Time,
        wire::{Row, only},
    },
    queue::{
        handle::Queue,
        message::{
            keys::key_of,
            metadata::{Carried, Metadata},
            payload::Payload,
        },
        verbs::by_id::State,
    },
};

/// The counts of a queue. Counting reads each row of the queue, and counts all dead letters and the
/// whole archive. It reads no payloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The number of messages that may be dequeued now, including messages whose lease expired.
    pub due: u64,
    /// The number of messages that are not due yet and were never leased.
    pub delayed: u64,
    /// The number of messages with a lease that has not ended.
    pub leased: u64,
    /// The number of messages that failed and wait for their next attempt.
    pub to_retry: u64,
    /// The number of dead letters.
    pub dead: u64,
    /// The number of messages in the archive.
    pub archived: u64,
    /// The number of rows in the queue's table.
    pub rows: u64,
    /// The number of messages in these rows.
    pub messages: u64,
    /// The time for which the oldest due message has been due.
    pub oldest_due: Option<Duration>,
}

impl Stats {
    /// Returns the number of messages that are not due now: delayed, leased or to be retried.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.delayed + self.leased + self.to_retry
    }

    /// Returns the sums of both counts, with the older of the two oldest due messages.
    #[must_use]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            due: self.due + other.due,
            delayed: self.delayed + other.delayed,
            leased: self.leased + other.leased,
            to_retry: self.to_retry + other.to_retry,
            dead: self.dead + other.dead,
            archived: self.archived + other.archived,
            rows: self.rows + other.rows,
            messages: self.messages + other.messages,
            oldest_due: self.oldest_due.max(other.oldest_due),
        }
    }
}

/// A message that was read without being dequeued.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peeked<T> {
    /// The message's id.
    pub id: i64,
    /// The message's state: due, delayed, retrying or leased.
    pub state: State,
    /// The time at which the message was enqueued.
    pub enqueued_at: SystemTime,
    /// The time at which the message may be dequeued, or at which its lease ends.
    pub due_at: SystemTime,
    /// The number of deliveries so far.
    pub attempt: i32,
    /// The error of the last attempt, if it failed and no later attempt has begun.
    pub error: Option<String>,
    /// The payload.
    pub payload: T,
    /// The metadata that was enqueued with the message.
    pub metadata: Metadata,
    /// The message's priority; 0 if the queue has no priorities.
    pub priority: u8,
    /// The message's key, if the queue's messages have keys.
    pub key: Option<Arc<str>>,
}

impl<T> Queue<T> {
    /// Returns the current counts of the queue.
    pub async fn stats(&self) -> Result<Stats> {
        Stats::of(&self.shared.query_again(&self.shared.sql.stats, &[]).await?)
    }
}

impl Stats {
    /// Reads the counts from the statement's only row.
    pub(crate) fn of(rows: &[Row]) -> Result<Self> {
        let row = only(rows)?;
        let count = |at: usize| row.read::<i64>(at).map(i64::unsigned_abs);
        Ok(Self {
            due: count(0)?,
            delayed: count(1)?,
            leased: count(2)?,
            to_retry: count(3)?,
            dead: count(4)?,
            archived: count(5)?,
            rows: count(6)?,
            messages: count(7)?,
            oldest_due: row.read::<Option<f64>>(8)?.and_then(|s| Duration::try_from_secs_f64(s).ok()),
        })
    }
}

/// The maximum number of rows that one statement reads.
const PAGE: i64 = 64;

impl<T: Payload> Queue<T> {
    /// Returns the first `n` messages in the order of their due times, including leased and delayed
    /// messages, without changing them.
    ///
    /// If a payload is not a `T`, the whole page fails, and the error names the message's id. With
    /// [`Readable`](crate::Readable) there is no such error.
    pub async fn peek(&self, n: usize) -> Result<Vec<Peeked<T>>> {
        let shared = &self.shared;
        let mut peeked: Vec<Peeked<T>> = Vec::new();
        let mut after = (Time::EARLIEST, 0_i64);
        while peeked.len() < n {
            let page = PAGE.min(i64::try_from(n - peeked.len()).unwrap_or(PAGE));
            let rows = shared.query_again(&shared.sql.peek, &[&shared.name(), &after.0, &after.1, &page]).await?;
            for row in &rows {
                after = (row.read(2)?, row.read(0)?);
                let payload: Received<'_> = row.read(6)?;
                let (enqueued_at, due_at, attempt) = (row.read(1)?, row.read(2)?, row.read(3)?);
                let (error, state) = (row.read::<Option<String>>(4)?, State::of(&row.read::<String>(8)?)?);
                let priority = row.read::<i32>(9)? as u8;
                let keys: Vec<&str> = if shared.is_keyed() { row.read(10)? } else { Vec::new() };
                let first: i64 = row.read(0)?;
                let mut carried = Carried::of(row.read(7)?);
                for (id, payload) in shared.column.decode_all(shared.name(), first, &payload)? {
                    let (metadata, key) = (carried.next(), key_of(&keys, id - first));
                    let error = error.clone();
                    peeked.push(Peeked {
                        id,
                        state,
                        enqueued_at,
                        due_at,
                        attempt,
                        error,
                        payload,
                        metadata,
                        priority,
                        key,
                    });
                }
            }
            if rows.len() < page as usize {
                break;
            }
        }
        peeked.truncate(n);
        Ok(peeked)
    }
}
