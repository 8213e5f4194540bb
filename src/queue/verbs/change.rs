//! Messages that are named by their ids: gone, or due at another time; by statements of their own,
//! or in the caller's transaction.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use tokio_postgres::types::{ToSql, Type};
use tracing::{Instrument, Span};

use crate::{
    error::Result,
    postgres::in_transaction::InTransaction,
    queue::{
        handle::{Queue, Shared, finish},
        message::draft::Due,
        observe::span,
    },
};

/// The change to be made to messages.
#[derive(Clone, Copy)]
enum Change {
    Cancelled,
    /// The new due time, as [`Due::number`] writes it.
    Due(f64),
}

impl Change {
    fn span(self, queue: &str, n: usize) -> Span {
        match self {
            Self::Cancelled => span::cancel(queue, n),
            Self::Due(_) => span::reschedule(queue, n),
        }
    }

    /// Whether leased messages are changed, too.
    fn ends_leases(self) -> bool {
        matches!(self, Self::Cancelled)
    }
}

impl<T> Queue<T> {
    /// Deletes messages for good. Returns the ids that are gone, in order; others are passed over.
    /// What is dead or archived is not touched: see [`Queue::discard`] and [`Queue::prune`].
    ///
    /// A message that waits is never delivered any more; the rest of its batch stays as it was.
    /// **The lease of a leased one ends now**: its handler may have done its work, and goes on
    /// until it notices, but whatever acknowledges, retries or renews it then finds the lease lost
    /// ([`Error::is_lease_lost`](crate::Error::is_lease_lost)). A [`Worker`](crate::Worker) looks
    /// after its leases twice a second, and so cancels the token of
    /// [`Attempt::lost`](crate::Attempt::lost) within a second. While its statements are not
    /// answered it cannot look: then the token is cancelled when they are, or when the lease has
    /// ended by the worker's own clock.
    ///
    /// One that a transaction has taken (exactly once, or an acknowledgement in it) is waited for,
    /// for up to ten seconds: gone with its commit, it is not among the ids; nor is one that is not
    /// let go of by then. If the call is dropped, it waits for none of them any more, and what was
    /// under way happens all the same.
    ///
    /// # Errors
    /// The database's; some of the messages may be gone then.
    pub async fn cancel(&self, ids: &[i64]) -> Result<Vec<i64>> {
        self.change(Change::Cancelled, ids).await
    }

    /// Makes messages that wait due after a delay or at a time, sooner or later than they were; at
    /// once for [`Duration::ZERO`] and for a time that has passed. Returns the ids of those, in
    /// order. Leased, dead and archived messages are passed over. At most 36,500 days from now.
    ///
    /// What is due already and is to be due at once keeps its place. A message that failed keeps
    /// its error and its attempts.
    ///
    /// # Errors
    /// As [`Queue::cancel`].
    pub async fn reschedule(&self, ids: &[i64], due: impl Into<Due>) -> Result<Vec<i64>> {
        self.change(Change::Due(within_bounds(due.into())?), ids).await
    }

    /// As [`Queue::cancel`], in the caller's transaction: the messages are gone if and when it
    /// commits. Until then, a worker that ends or renews a lease of them waits.
    ///
    /// What another session has locked for longer than a tenth of a second is passed over: a
    /// transaction that waits for others with locks in its hands could be what they wait for.
    /// Larger batches are split beforehand, outside the transaction.
    pub async fn cancel_in(&self, transaction: &impl InTransaction, ids: &[i64]) -> Result<Vec<i64>> {
        self.change_in(transaction, None, ids).await
    }

    /// As [`Queue::reschedule`], in the caller's transaction: the messages are due at their new
    /// time if and when it commits, and then consumers are woken. What another session has locked
    /// is passed over, as with [`Queue::cancel_in`].
    pub async fn reschedule_in(
        &self,
        transaction: &impl InTransaction,
        ids: &[i64],
        due: impl Into<Due>,
    ) -> Result<Vec<i64>> {
        self.change_in(transaction, Some(within_bounds(due.into())?), ids).await
    }

    /// Tries again what others have locked, in a transaction of its own each time: one that waits
    /// for them with locks in its hands could be what they wait for.
    async fn change(&self, change: Change, ids: &[i64]) -> Result<Vec<i64>> {
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        let (mut changed, mut busy) = (Vec::new(), ids.to_vec());
        loop {
            let (done, still_busy) = self.shared.change(change, busy).await?;
            changed.extend(done);
            if still_busy.is_empty() || began.elapsed() > PATIENCE {
                changed.sort_unstable();
                return Ok(changed);
            }
            busy = still_busy;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn change_in(&self, transaction: &impl InTransaction, due: Option<f64>, ids: &[i64]) -> Result<Vec<i64>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (shared, name, change) = (&self.shared, self.shared.name(), due.map_or(Change::Cancelled, Change::Due));
        // Neighbours in the same row must not wait for the caller's commit: cut them off, in a
        // transaction of our own.
        shared.query_again(&shared.sql.pick, &[&ids, &change.ends_leases()]).await?;
        let sql = match due {
            None => shared.db.statement("cancel_in", include_str!("../../../sql/statements/cancel_in.sql")),
            Some(_) => shared.db.statement("reschedule_in", include_str!("../../../sql/statements/reschedule_in.sql")),
        };
        let mut params: Vec<(&(dyn ToSql + Sync), Type)> = vec![(&name, Type::TEXT), (&ids, Type::INT8_ARRAY)];
        if let Some(due) = &due {
            params.push((due, Type::FLOAT8));
        }
        let (began, span) = (Instant::now(), change.span(name, ids.len()));
        let rows = transaction.fetch(&sql.text, &params).instrument(span.clone()).await;
        let rows = rows.map_err(|error| error.or_no_queue(name))?;
        let mut changed = rows.iter().map(|row| row.read(0)).collect::<Result<Vec<i64>>>()?;
        changed.sort_unstable();
        shared.changed(change, &span, changed.len(), began);
        Ok(changed)
    }
}

impl Shared {
    /// One try, in a transaction of its own; returns what was changed, and what is locked. What is
    /// due at another time wakes who waits, whether or not the caller stays.
    async fn change(self: &Arc<Self>, change: Change, ids: Vec<i64>) -> Result<(Vec<i64>, Vec<i64>)> {
        let (shared, span) = (self.clone(), change.span(self.name(), ids.len()));
        let noted = span.clone();
        let work = async move {
            let began = Instant::now();
            let rows = match &change {
                Change::Cancelled => shared.query(&shared.sql.cancel, &[&ids]).await?,
                Change::Due(due) => shared.query(&shared.sql.reschedule, &[&ids, due]).await?,
            };
            let (mut done, mut busy) = (Vec::new(), Vec::new());
            for row in rows {
                if row.read(1)? { &mut done } else { &mut busy }.push(row.read(0)?);
            }
            shared.changed(change, &noted, done.len(), began);
            // A cancel makes nothing due, and a try that met only locks has moved nothing.
            if !change.ends_leases() && !done.is_empty() {
                shared.db.wake(&shared.channel);
            }
            Ok((done, busy))
        };
        finish("a change of messages by their ids", work.instrument(span)).await
    }

    fn changed(&self, change: Change, span: &Span, messages: usize, began: Instant) {
        span.record("got", messages);
        match change {
            Change::Cancelled => self.metrics.cancelled(messages, began),
            Change::Due(_) => self.metrics.rescheduled(messages, began),
        }
    }
}

/// Returns the due time as the statements take it, if it is at most 36,500 days from now.
fn within_bounds(due: Due) -> Result<f64> {
    if let Due::At(time) = due {
        Due::After(time.duration_since(SystemTime::now()).unwrap_or_default()).number()?;
    }
    due.number()
}

/// How long a call waits for a message that another session has locked.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most locks are held for a neighbour's sake, until a commit that is on its way.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LAST_PAUSE: Duration = Duration::from_millis(100);
