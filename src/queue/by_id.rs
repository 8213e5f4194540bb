//! One message by its id: where it is, gone, or due at another time.

use std::time::{Duration, Instant, SystemTime};

use tokio_postgres::types::ToSql;

use crate::{
    error::{Error, Kind, Result},
    postgres::{array::Received, sql::Sql},
    queue::{draft::Due, handle::Queue, message::Lease, metadata::Metadata, payload::Payload},
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
    /// Somebody has it under a lease.
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
    /// When it may be dequeued (next); for a lease, when it ends. `None` for what is dead or archived.
    pub due_at: Option<SystemTime>,
    /// When it died or was archived.
    pub ended_at: Option<SystemTime>,
    /// When it was enqueued.
    pub enqueued_at: SystemTime,
    /// What the last attempt said, if it failed and no other has begun.
    pub error: Option<String>,
    /// The payload.
    pub payload: T,
    /// What was enqueued beside it.
    pub metadata: Metadata,
}

impl<T: Payload> Queue<T> {
    /// Finds one message by its id, without touching it; `None` where there is none, or none any more. Costs the same whatever
    /// the queue holds.
    ///
    /// # Errors
    /// A payload that is no `T`; with [`Readable`](crate::Readable) it is none.
    pub async fn find(&self, id: i64) -> Result<Option<Found<T>>> {
        let shared = &self.shared;
        let rows = shared.query_again(&shared.sql.find, &[&id]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let payload: Received<'_> = row.read(6)?;
        let Some((id, payload)) = shared.column.decode_all(shared.name(), id, &payload)?.pop() else {
            return Err(Error::new(Kind::Answer("a message was found without its payload".into())));
        };
        Ok(Some(Found {
            id,
            state: State::of(&row.read::<String>(0)?)?,
            attempt: row.read(1)?,
            due_at: row.read(2)?,
            ended_at: row.read(3)?,
            enqueued_at: row.read(4)?,
            error: row.read(5)?,
            payload,
            metadata: row.read::<Option<Metadata>>(7)?.unwrap_or_default(),
        }))
    }
}

impl<T> Queue<T> {
    /// Deletes messages for good. Returns the ids that are gone, in order; others are passed over. What is dead or archived is not
    /// touched: see [`Queue::discard`] and [`Queue::prune`].
    ///
    /// A message that waits is never delivered any more; the rest of its batch stays as it was. **The lease of a leased one ends
    /// now**: its handler may have done its work, and goes on until it notices, but whatever acknowledges, retries or renews
    /// it then finds the lease lost ([`Error::is_lease_lost`]). A [`Worker`](crate::Worker) notices within a second or so, and
    /// cancels the token of [`Attempt::lost`](crate::Attempt::lost).
    ///
    /// One that a transaction has taken (exactly once, or an acknowledgement in it) is waited for, for up to ten seconds: gone with its
    /// commit, it is not among the ids; nor is one that is not let go of by then.
    ///
    /// # Errors
    /// The database's; some of the messages may be gone then.
    pub async fn cancel(&self, ids: &[i64]) -> Result<Vec<i64>> {
        self.change(&self.shared.sql.cancel, ids, &[]).await
    }

    /// Makes messages that wait due after that time, sooner or later than they were; at once for [`Duration::ZERO`]. Returns the
    /// ids of those, in order. Leased, dead and archived messages are passed over. At most 36,500 days.
    ///
    /// What is due already and is to be due at once keeps its place. A message that failed keeps its error and its attempts.
    ///
    /// # Errors
    /// As [`Queue::cancel`].
    pub async fn reschedule(&self, ids: &[i64], after: Duration) -> Result<Vec<i64>> {
        self.change(&self.shared.sql.reschedule, ids, &[&Due::After(after).number()?]).await
    }

    /// As [`Queue::reschedule`], at a time by the server's clock; one that has passed is now.
    ///
    /// # Errors
    /// As [`Queue::cancel`].
    pub async fn reschedule_at(&self, ids: &[i64], at: SystemTime) -> Result<Vec<i64>> {
        Due::After(at.duration_since(SystemTime::now()).unwrap_or_default()).number()?;
        self.change(&self.shared.sql.reschedule_at, ids, &[&at.max(SystemTime::UNIX_EPOCH)]).await
    }

    /// The ids of those leases that are there no more, but for those that are merely over by the clock.
    pub(crate) async fn gone(&self, leases: &[Lease]) -> Result<Vec<i64>> {
        let (ids, attempts): (Vec<i64>, Vec<i32>) = leases.iter().map(|lease| (lease.id, lease.attempt)).unzip();
        let rows = self.shared.query_again(&self.shared.sql.gone, &[&ids, &attempts]).await?;
        rows.iter().map(|row| row.read(0)).collect()
    }

    /// Tries again what others have locked, in a transaction of its own each time: one that waits for them with locks in its hands
    /// could be what they wait for.
    async fn change(&self, sql: &Sql, ids: &[i64], more: &[&(dyn ToSql + Sync)]) -> Result<Vec<i64>> {
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        let (mut changed, mut busy) = (Vec::new(), ids.to_vec());
        loop {
            let (mut still_busy, before) = (Vec::new(), changed.len());
            let params: Vec<&(dyn ToSql + Sync)> = [&busy as _].into_iter().chain(more.iter().copied()).collect();
            for row in self.shared.query(sql, &params).await? {
                if row.read(1)? { &mut changed } else { &mut still_busy }.push(row.read(0)?);
            }
            // With nothing more it is a cancel, which makes nothing due. A try that met only locks has moved nothing.
            if !more.is_empty() && changed.len() > before {
                self.shared.db.wake(&self.shared.channel);
            }
            if still_busy.is_empty() || began.elapsed() > PATIENCE {
                changed.sort_unstable();
                return Ok(changed);
            }
            busy = still_busy;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}

/// How long a message that somebody has locked is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most locks are held for a neighbour's sake, until a commit that is on its way.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LAST_PAUSE: Duration = Duration::from_millis(100);
