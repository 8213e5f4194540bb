//! One message by its id: where it is, and whether a lease of it is there still.

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

/// Where a message is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// It may be dequeued now; also when its last lease ran out.
    Due,
    /// It is not due yet and was never leased.
    Delayed,
    /// It failed, or was given back, and is not due yet.
    Retrying,
    /// A consumer has it under a lease.
    Leased,
    /// Its attempts are used up: it is a dead letter.
    Dead,
    /// It was acknowledged by [`Queue::archive`].
    Archived,
}

impl State {
    /// Its name in SQL and on the command line.
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

/// A message that was looked for by its id, wherever it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found<T> {
    /// The message's id.
    pub id: i64,
    /// Where it is in its life.
    pub state: State,
    /// Deliveries so far; for what is dead or archived, those that were charged.
    pub attempt: i32,
    /// When it may be dequeued (next); for a lease, when it ends. `None` for what is dead or
    /// archived.
    pub due_at: Option<SystemTime>,
    /// When it died or was archived.
    pub ended_at: Option<SystemTime>,
    /// When it was enqueued.
    pub enqueued_at: SystemTime,
    /// The error of the last attempt, if it failed and no other has begun.
    pub error: Option<String>,
    /// The payload.
    pub payload: T,
    /// The metadata that was enqueued with it.
    pub metadata: Metadata,
    /// Its priority; 0 also where the queue has none.
    pub priority: u8,
    /// Its key, where the queue's messages have keys.
    pub key: Option<Arc<str>>,
}

impl<T: Payload> Queue<T> {
    /// Finds one message by its id, without touching it; `None` where there is none, or none any
    /// more. Costs the same whatever the queue holds.
    ///
    /// # Errors
    /// A payload that is no `T`; with [`Readable`](crate::Readable) it is none.
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
    /// The ids of those leases that are there no more, but for those that are merely over by the
    /// clock.
    pub(crate) async fn gone(&self, leases: &[Lease]) -> Result<Vec<i64>> {
        let (ids, attempts): (Vec<i64>, Vec<i32>) = leases.iter().map(|lease| (lease.id, lease.attempt)).unzip();
        let rows = self.shared.query_again(&self.shared.sql.gone, &[&ids, &attempts]).await?;
        rows.iter().map(|row| row.read(0)).collect()
    }
}
