//! Finds one message by its id, and finds leases that no longer exist.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use tracing::Instrument;

use crate::{
    error::{Error, Kind, Result},
    postgres::array::Received,
    queue::{
        handle::Queue,
        message::{Lease, metadata::Metadata, payload::Payload},
        observe::span,
    },
};

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// The message may be dequeued now; its last lease may have expired.
    Due,
    /// The message is not due yet and was never leased.
    Delayed,
    /// The message failed or was released, and is not due yet.
    Retrying,
    /// A consumer has leased the message.
    Leased,
    /// The message is a dead letter: it has exhausted its attempts, or was buried.
    Dead,
    /// The message was acknowledged with [`Queue::archive`].
    Archived,
}

impl State {
    /// Returns the state's name in SQL and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Delayed => "delayed",
            Self::Retrying => "retrying",
            Self::Leased => "leased",
            Self::Dead => "dead",
            Self::Archived => "archived",
        }
    }

    pub(crate) fn of(name: &str) -> Result<Self> {
        let all = [Self::Due, Self::Delayed, Self::Retrying, Self::Leased, Self::Dead, Self::Archived];
        let state = all.into_iter().find(|state| state.name() == name);
        state.ok_or_else(|| Error::new(Kind::Answer(format!("a message is in the state {name:?}").into())))
    }
}

/// A message that was found by its id, in any state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found<T> {
    /// The message's id.
    pub id: i64,
    /// The message's state.
    pub state: State,
    /// The number of deliveries so far; for a dead or archived message, the number of counted
    /// attempts.
    pub attempt: i32,
    /// The time at which the message may be dequeued, or at which its lease ends. `None` for a dead
    /// or archived message.
    pub due_at: Option<SystemTime>,
    /// The time at which the message died or was archived.
    pub ended_at: Option<SystemTime>,
    /// The time at which the message was enqueued.
    pub enqueued_at: SystemTime,
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

impl<T: Payload> Queue<T> {
    /// Finds one message by its id, without changing it. Returns `None` if the message does not
    /// exist or no longer exists. The cost does not depend on the number of messages in the queue.
    ///
    /// # Errors
    /// The payload is not a `T`; with [`Readable`](crate::Readable) there is no such error.
    pub async fn find(&self, id: i64) -> Result<Option<Found<T>>> {
        let (shared, began) = (&self.shared, Instant::now());
        let span = span::find(shared.name(), id);
        let rows = shared.query_again(&shared.sql.find, &[&id]).instrument(span.clone()).await?;
        shared.metrics.looked_for(began);
        let Some(row) = rows.first() else { return Ok(None) };
        let state = State::of(&row.read::<String>(0)?)?;
        span.record("state", state.name());
        let payload: Received<'_> = row.read(6)?;
        let Some((id, payload)) = shared.column.decode_all(shared.name(), id, &payload)?.pop() else {
            return Err(Error::new(Kind::Answer("a message was found without its payload".into())));
        };
        Ok(Some(Found {
            id,
            state,
            attempt: row.read(1)?,
            due_at: row.read(2)?,
            ended_at: row.read(3)?,
            enqueued_at: row.read(4)?,
            error: row.read(5)?,
            payload,
            metadata: row.read::<Option<Metadata>>(7)?.unwrap_or_default(),
            priority: row.read::<i32>(8)? as u8,
            key: row.read::<Option<&str>>(9)?.map(Into::into),
        }))
    }
}

impl<T> Queue<T> {
    /// Returns the ids of leases that no longer exist. A lease that has only expired still exists.
    pub(crate) async fn gone(&self, leases: &[Lease]) -> Result<Vec<i64>> {
        let (ids, attempts): (Vec<i64>, Vec<i32>) = leases.iter().map(|lease| (lease.id, lease.attempt)).unzip();
        let rows = self.shared.query_again(&self.shared.sql.gone, &[&self.shared.name(), &ids, &attempts]).await?;
        rows.iter().map(|row| row.read(0)).collect()
    }
}
