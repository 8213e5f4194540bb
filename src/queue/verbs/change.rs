//! Cancels and reschedules messages by their ids, in separate transactions or in the caller's.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_postgres::types::{ToSql, Type};
use tracing::{Instrument, Span};

use crate::{
    error::{Error, Result},
    postgres::in_transaction::InTransaction,
    queue::{
        handle::{Queue, Shared, finish},
        message::draft::Due,
        observe::span,
    },
};

#[derive(Clone, Copy)]
enum Change {
    Cancelled,
    /// The new due time, in the form that [`Due::number`] returns.
    Due(f64),
}

impl Change {
    fn span(self, queue: &str, n: usize) -> Span {
        match self {
            Self::Cancelled => span::cancel(queue, n),
            Self::Due(_) => span::reschedule(queue, n),
        }
    }

    /// Returns true if the change also applies to leased messages.
    fn ends_leases(self) -> bool {
        matches!(self, Self::Cancelled)
    }
}

impl<T> Queue<T> {
    /// Deletes messages permanently. Returns the ids of the deleted messages, in order, and ignores
    /// other ids. Dead letters and archived messages are not deleted: see [`Queue::discard`] and
    /// [`Queue::prune`].
    ///
    /// A waiting message is no longer delivered; the rest of its batch is unchanged. **The lease of
    /// a leased message ends now**. Its handler may already have done its work, and continues until
    /// it notices. A call that then acknowledges, retries or renews the message finds the lease
    /// lost ([`Error::is_lease_lost`](crate::Error::is_lease_lost)). A [`Worker`](crate::Worker)
    /// checks its leases twice a second, so it cancels the token of
    /// [`Attempt::lost`](crate::Attempt::lost) within a second. While the database does not answer,
    /// the worker cannot check. It then cancels the token after the next answer, or when the lease
    /// has ended by its own clock.
    ///
    /// The call waits up to ten seconds for a message that a transaction has locked (to take it, or
    /// to acknowledge it). The call does not return the message's id if that transaction deletes
    /// the message, or still has it locked after ten seconds. If the call is dropped, it stops
    /// waiting, but a running statement still takes effect.
    ///
    /// # Errors
    /// A database error; some of the messages may already be deleted.
    pub async fn cancel(&self, ids: &[i64]) -> Result<Vec<i64>> {
        self.change(Change::Cancelled, ids).await
    }

    /// Sets when waiting messages are due: after a delay or at a time, earlier or later. They
    /// are due at once for [`Duration::ZERO`] and for a time that has passed. Returns the ids of
    /// the rescheduled messages, in order. Ignores leased, dead and archived messages. The time is
    /// at most 36,500 days from now.
    ///
    /// A message that is already due keeps its position if it is rescheduled to be due at once. A
    /// message that failed keeps its error and its attempts.
    ///
    /// # Errors
    /// The errors of [`Queue::cancel`].
    pub async fn reschedule(&self, ids: &[i64], due: impl Into<Due>) -> Result<Vec<i64>> {
        self.change(Change::Due(due.into().number()?), ids).await
    }

    /// Cancels like [`Queue::cancel`], in the caller's transaction: the messages are deleted if and
    /// when it commits. Until then, a worker that ends or renews a lease of one of these messages
    /// waits.
    ///
    /// The call ignores messages that another session keeps locked for longer than a tenth of a
    /// second, because waiting while holding locks could cause a deadlock. Larger batches are split
    /// beforehand, outside the transaction.
    pub async fn cancel_in(&self, transaction: &impl InTransaction, ids: &[i64]) -> Result<Vec<i64>> {
        self.change_in(transaction, None, ids).await
    }

    /// Reschedules like [`Queue::reschedule`], in the caller's transaction: if and when it commits,
    /// the messages are due at their new time, and consumers wake. Ignores messages that another
    /// session has locked, as in [`Queue::cancel_in`].
    pub async fn reschedule_in(
        &self,
        transaction: &impl InTransaction,
        ids: &[i64],
        due: impl Into<Due>,
    ) -> Result<Vec<i64>> {
        self.change_in(transaction, Some(due.into().number()?), ids).await
    }

    /// Changes messages. Tries again for messages that other sessions have locked, each time in a
    /// new transaction, because waiting while holding locks could cause a deadlock.
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
        // The other messages of a row must not wait for the caller's commit, so a separate
        // transaction splits the rows first.
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
    /// Tries once to change messages, in its own transaction. Returns the changed ids and the
    /// locked ids. Rescheduled messages wake waiting consumers even if the caller stops waiting.
    async fn change(self: &Arc<Self>, change: Change, ids: Vec<i64>) -> Result<(Vec<i64>, Vec<i64>)> {
        let (shared, span) = (self.clone(), change.span(self.name(), ids.len()));
        let noted = span.clone();
        let work = async move {
            let began = Instant::now();
            let rows = match &change {
                Change::Cancelled => shared.query(&shared.sql.cancel, &[&ids]).await,
                Change::Due(due) => shared.query(&shared.sql.reschedule, &[&ids, due]).await,
            };
            let may_wake = !change.ends_leases() || shared.has_room_for_others();
            if may_wake && rows.as_ref().is_err_and(Error::is_outcome_unknown) {
                shared.db.wake(&shared.channel);
            }
            let rows = rows?;
            let (mut done, mut busy) = (Vec::new(), Vec::new());
            for row in rows {
                if row.read(1)? { &mut done } else { &mut busy }.push(row.read(0)?);
            }
            shared.changed(change, &noted, done.len(), began);
            // A cancellation makes no message due, but it can end a lease. A try that found only
            // locked messages has changed nothing.
            if may_wake && !done.is_empty() {
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

/// The maximum wait for a message that another session has locked.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first pause between tries. It is short, because a session usually holds such a lock only
/// until a commit that is already running.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LAST_PAUSE: Duration = Duration::from_millis(100);
