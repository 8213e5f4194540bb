//! The counts of a queue, and a look at its next messages.

use std::time::{Duration, SystemTime};

use crate::{
    error::Result,
    postgres::{array::Received, time::Time, wire::only},
    queue::{
        by_id::State,
        handle::Queue,
        metadata::{Carried, Metadata},
        payload::Payload,
    },
};

/// The counts of a queue. One pass over the queue's rows each time; payloads are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Messages that may be dequeued now; those whose lease ran out included.
    pub due: u64,
    /// Messages that are not due yet and were never leased.
    pub delayed: u64,
    /// Messages under a lease.
    pub leased: u64,
    /// Messages that failed and wait for their next attempt.
    pub to_retry: u64,
    /// Dead letters.
    pub dead: u64,
    /// Messages in the archive.
    pub archived: u64,
    /// Rows of the queue's table.
    pub rows: u64,
    /// Messages in those rows.
    pub messages: u64,
    /// How long the oldest due message has been due.
    pub oldest_due: Option<Duration>,
}

impl Stats {
    /// Messages that are not due now: delayed, leased or to be retried.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.delayed + self.leased + self.to_retry
    }
}

/// A message seen without being dequeued.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peeked<T> {
    /// The message's id.
    pub id: i64,
    /// Where it is in its life: due, delayed, retrying or leased.
    pub state: State,
    /// When it was enqueued.
    pub enqueued_at: SystemTime,
    /// When it may be dequeued (next); for a lease, when it ends.
    pub due_at: SystemTime,
    /// Deliveries so far.
    pub attempt: i32,
    /// The error of the last attempt, if it failed and no other has begun.
    pub error: Option<String>,
    /// The payload.
    pub payload: T,
    /// The metadata that was enqueued with it.
    pub metadata: Metadata,
}

impl<T> Queue<T> {
    /// The counts of the queue now.
    pub async fn stats(&self) -> Result<Stats> {
        let rows = self.shared.query_again(&self.shared.sql.stats, &[]).await?;
        let row = only(&rows)?;
        let count = |at: usize| row.read::<i64>(at).map(i64::unsigned_abs);
        Ok(Stats {
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

/// Rows that are read at a time.
const PAGE: i64 = 64;

impl<T: Payload> Queue<T> {
    /// The first `n` messages in the order of their due times, leased and delayed ones included, without touching them.
    ///
    /// # Errors
    /// A payload that is no `T` fails its whole page, and the error names its id; with [`Readable`](crate::Readable) none does.
    pub async fn peek(&self, n: usize) -> Result<Vec<Peeked<T>>> {
        let shared = &self.shared;
        let mut peeked: Vec<Peeked<T>> = Vec::new();
        let mut after = (Time::EARLIEST, 0_i64);
        while peeked.len() < n {
            let page = PAGE.min(i64::try_from(n - peeked.len()).unwrap_or(PAGE));
            let rows = shared.query_again(&shared.sql.peek, &[&after.0, &after.1, &page]).await?;
            for row in &rows {
                after = (row.read(2)?, row.read(0)?);
                let payload: Received<'_> = row.read(6)?;
                let (enqueued_at, due_at, attempt) = (row.read(1)?, row.read(2)?, row.read(3)?);
                let (error, state) = (row.read::<Option<String>>(4)?, State::of(&row.read::<String>(8)?)?);
                let mut carried = Carried::of(row.read(7)?);
                for (id, payload) in shared.column.decode_all(shared.name(), row.read(0)?, &payload)? {
                    let metadata = carried.next();
                    let error = error.clone();
                    peeked.push(Peeked { id, state, enqueued_at, due_at, attempt, error, payload, metadata });
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
