//! The description of a queue.

use std::time::{Duration, SystemTime};

use crate::{error::Result, postgres::wire::Row, queue::admin::limits::Limits};

/// The settings and the state of a queue, as stored in the database.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Description {
    /// The queue's name.
    pub name: String,
    /// The type of the payloads, as Postgres names it.
    pub payload: String,
    /// The number of deliveries before a message becomes a dead letter.
    pub max_attempts: u32,
    /// The duration of a lease, unless a consumer requests another duration.
    pub lease: Duration,
    /// The maximum number of messages in one row.
    pub max_batch: u32,
    /// The time at which the queue was created, by the server's clock.
    pub created_at: SystemTime,
    /// True if the queue is paused: see [`Db::pause_queue`](crate::Db::pause_queue).
    pub is_paused: bool,
    /// The time at which the queue was paused, by the server's clock; `None` if it is not paused.
    pub paused_at: Option<SystemTime>,
    /// The limits on dequeues: see [`Db::limit_queue`](crate::Db::limit_queue).
    pub limits: Limits,
    /// The number of priorities. 1 means that the queue has no priorities.
    pub priorities: u32,
    /// The time that each level of priority adds to a message's age.
    pub aging: Duration,
    /// True if messages may have unique keys.
    pub uniqueness: bool,
    /// The number of partitions if messages have keys, or 0 otherwise.
    pub partitions: u32,
    /// The number of the first partition.
    pub(crate) first_lane: u16,
    /// The maximum number of messages with the same key that are handled at the same time.
    pub per_key: u32,
}

impl Description {
    pub(crate) fn of(row: &Row) -> Result<Self> {
        Ok(Self {
            name: row.read(0)?,
            payload: row.read(1)?,
            max_attempts: row.read::<i32>(2)?.unsigned_abs(),
            lease: Duration::try_from_secs_f64(row.read(3)?).unwrap_or_default(),
            max_batch: row.read::<i32>(4)?.unsigned_abs(),
            created_at: row.read(5)?,
            is_paused: row.read(7)?,
            paused_at: row.read(19)?,
            limits: Limits::of(row, 8, 16)?,
            priorities: row.read::<i32>(11)?.unsigned_abs(),
            aging: Duration::try_from_secs_f64(row.read(12)?).unwrap_or_default(),
            uniqueness: row.read(13)?,
            partitions: row.read::<i32>(14)?.unsigned_abs(),
            first_lane: row.read::<i16>(18)?.unsigned_abs(),
            per_key: row.read::<i32>(15)?.unsigned_abs(),
        })
    }
}
