//! Exactly-once delivery: a take inside the caller's transaction. A commit deletes the messages; a
//! rollback leaves them in the queue.

use std::time::Instant;

use tokio_postgres::types::{ToSql, Type};
use tracing::Instrument;

use crate::{
    error::{Error, Result},
    postgres::in_transaction::InTransaction,
    queue::{
        batch::dequeues::DequeueMode,
        handle::{Queue, Shared},
        message::{Message, dequeue::Dequeue, payload::Payload},
        observe::span,
        verbs::dequeue::Dequeued,
    },
};

/// The maximum number of tries to split the first rows, which other sessions may keep changing, or
/// to bury them, which may take several tries. After that, a take returns fewer messages.
const CUTS: usize = 64;

impl<T: Payload> Queue<T> {
    /// Takes up to `n` messages inside the caller's transaction, oldest first. Returns no messages
    /// if none are due.
    ///
    /// If the transaction commits, the messages are deleted together with its other effects. If it
    /// rolls back or its connection breaks, they are due again at once, and no attempt is counted.
    /// While it is open, other consumers skip them. A batch larger than `n` is first split outside
    /// the transaction, so that the rest stays available to all consumers.
    ///
    /// A message that cannot be read as `T` stays in the queue. If the transaction commits, the
    /// message's attempt fails with that error. Therefore, commit even if the call returns no
    /// message. The readable messages are returned.
    ///
    /// If the call is dropped while it waits, or fails after it may have taken messages, no caller
    /// receives these messages. A [`Transaction`](crate::postgres::Transaction) can then no longer
    /// be committed. A transaction of another driver must be rolled back by its owner.
    pub async fn take_in(
        &self,
        transaction: &impl InTransaction,
        request: impl Into<Dequeue>,
    ) -> Result<Vec<Message<T>>> {
        let request = request.into().without_wait()?.without_lease()?;
        Ok(self.take_and_charge(transaction, request.n()).await?.messages)
    }

    /// Takes like [`Queue::take_in`]. Also returns the unreadable messages, for which the
    /// transaction counts an attempt.
    pub(crate) async fn take_and_charge(&self, transaction: &impl InTransaction, n: usize) -> Result<Dequeued<T>> {
        let mut taken = Dequeued::default();
        let undelivered = Undelivered(transaction);
        let (mut is_apart, pages) = (false, &mut taken);
        let outcome = self.take_pages(transaction, n, pages, &mut is_apart).await;
        // If the server reported the error, it has undone the take. Other errors may follow a
        // successful take, for example if a payload now has another type.
        let is_undone = |error: &Error| is_apart || error.sqlstate().is_some() || error.is_no_queue();
        if outcome.is_ok() || taken.messages.is_empty() && outcome.as_ref().is_err_and(is_undone) {
            std::mem::forget(undelivered);
        }
        outcome.map(|()| taken)
    }

    /// Takes one page after another. Sets `is_apart` while it runs a statement outside the
    /// transaction.
    async fn take_pages(
        &self,
        transaction: &impl InTransaction,
        n: usize,
        taken: &mut Dequeued<T>,
        is_apart: &mut bool,
    ) -> Result<()> {
        for _ in 0..CUTS {
            let wanted = n.saturating_sub(taken.messages.len());
            if wanted == 0 {
                break;
            }
            let (more, left_alone) = self.shared.take_whole::<T>(transaction, wanted).await?;
            let (unread, got) = (more.unread, more.messages.len());
            for unreadable in &more.unreadable {
                self.shared.put_back_charged_in(transaction, unreadable).await?;
            }
            taken.messages.extend(more.messages);
            taken.unreadable.extend(more.unreadable);
            taken.unread += unread;
            if left_alone && wanted > got {
                *is_apart = true;
                self.shared.cut(wanted - got).await?;
                *is_apart = false;
            } else if unread == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Messages that a transaction has taken, or may have taken, and that no caller has received.
/// Dropping this value makes the transaction fail, because a commit would delete the messages.
struct Undelivered<'a, X: InTransaction>(&'a X);

impl<X: InTransaction> Drop for Undelivered<'_, X> {
    fn drop(&mut self) {
        self.0.fail(Error::invalid(
            "a take in this transaction was dropped, or failed, before it returned its messages, and a commit would \
             delete them: roll back, and take again",
        ));
    }
}

impl Shared {
    /// Takes whole rows only. Also returns true if it skipped a due row that must be split first.
    async fn take_whole<T: Payload>(
        self: &std::sync::Arc<Self>,
        transaction: &impl InTransaction,
        n: usize,
    ) -> Result<(Dequeued<T>, bool)> {
        self.put_back_unclaimed();
        let n = n.min(i32::MAX as usize);
        let (wanted, floor, rows) = (n as i32, self.floor(), self.rows_for(n));
        let params: [(&(dyn ToSql + Sync), Type); 4] =
            [(&wanted, Type::INT4), (&floor, floor.ty()), (&rows, Type::INT4), (&false, Type::BOOL)];
        let (began, span) = (Instant::now(), span::take(self.name(), n));
        let taken = transaction.fetch(&self.sql.take.text, &params).instrument(span.clone()).await;
        let mut taken = taken.map_err(|error| error.or_no_queue(self.name()))?;
        let left_alone = match taken.last() {
            Some(row) => row.read::<Option<i64>>(0)?.is_none(),
            None => false,
        };
        if left_alone {
            taken.pop();
        }
        let dequeued = self.read_fetched(&taken, DequeueMode::Take)?;
        let got = dequeued.messages.len();
        span.record("got", got);
        self.metrics.taken(got, began);
        self.saw_batches(got + dequeued.unreadable.len(), taken.len());
        Ok((dequeued, left_alone))
    }

    /// Splits the first rows so that they hold at most `n` messages. Uses a separate transaction,
    /// which ends at once.
    async fn cut(self: &std::sync::Arc<Self>, n: usize) -> Result<()> {
        let wanted = n.min(i32::MAX as usize) as i32;
        self.query_again(&self.sql.cut, &[&wanted, &self.floor()]).await?;
        Ok(())
    }
}
