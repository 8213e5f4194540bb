//! At least once: leased, handed over, and ended by `ack`, `archive`, `retry`, `extend` or time.

mod end;

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio_postgres::types::{ToSql, Type};
use tracing::Instrument;

use self::end::{checked, lost, seconds};

use crate::{
    error::Result,
    postgres::{
        in_transaction::{Fetched, InTransaction},
        transaction::Transaction,
    },
    queue::{
        dequeue::{Dequeue, Dequeued, PAGE},
        handle::Queue,
        message::{Lease, Message, Ranges, Settled},
        metric::End,
        payload::Payload,
        settle::{Ending, as_text, lost_or_ok},
        span,
    },
};

impl<T: Payload> Queue<T> {
    /// Leases up to `n` messages, oldest first, for the queue's lease time; none where none is due.
    ///
    /// Each is charged with an attempt now, so that a crash counts. Until the lease ends nobody else gets them. What
    /// is neither acknowledged nor retried by then comes back, one message a row; after the last attempt it is a dead
    /// letter. If the call is dropped before it returns, they are given back and the attempt is not charged.
    ///
    /// A message that cannot be read as `T` fails its attempt with that error; the others are returned.
    pub async fn lease(&self, n: usize) -> Result<Vec<Message<T>>> {
        self.lease_as(n, Dequeue::Lease(None)).await
    }

    /// As [`Queue::lease`], with a lease time of its own: more than zero, at most 365 days.
    pub async fn lease_for(&self, n: usize, lease: Duration) -> Result<Vec<Message<T>>> {
        self.lease_as(n, Dequeue::Lease(Some(seconds(lease)))).await
    }

    async fn lease_as(&self, n: usize, how: Dequeue) -> Result<Vec<Message<T>>> {
        loop {
            let dequeued = self.shared.dequeue(n, how).await?;
            let nothing_else = dequeued.messages.is_empty() && dequeued.met_unreadable;
            let messages = self.readable(dequeued);
            if !nothing_else {
                return Ok(messages);
            }
        }
    }

    /// Those that are `T`s; the others fail their attempt.
    fn readable(&self, dequeued: Dequeued<T>) -> Vec<Message<T>> {
        for unreadable in dequeued.unreadable {
            let (queue, pause) = (self.clone(), Duration::from_secs(1));
            let leases: Vec<Lease> = unreadable.leases().collect();
            // If it cannot be said now, the lease ends, and that is charged just as well.
            tokio::spawn(async move { queue.retry(leases, pause, unreadable.reason).await });
        }
        dequeued.messages
    }

    /// Gives messages back unharmed: due again at once, and the attempt is not charged. The leases end with it.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn release<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(Ending::Release, leases).await
    }

    /// Acknowledges messages: they are done and gone. Takes messages or their [`Lease`]s; concurrent calls share
    /// statements.
    ///
    /// # Errors
    /// [`Error::is_lease_lost`](crate::Error::is_lease_lost) for those of [`Error::lost_ids`](crate::Error::lost_ids); the others are acknowledged.
    pub async fn ack<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(Ending::Ack, leases).await
    }

    /// Acknowledges messages and keeps them in the queue's archive.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn archive<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(Ending::Archive, leases).await
    }

    /// Gives messages back after a failure: due again after a delay, or dead letters after their last attempt, with
    /// `error` as the reason.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn retry<L: Into<Lease>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        after: Duration,
        error: impl Into<String>,
    ) -> Result<()> {
        self.settle(Ending::Retry(after.as_secs_f64(), as_text(error)), leases).await
    }

    /// Makes messages dead letters at once, with `reason`, however many attempts are left.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn bury<L: Into<Lease>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        reason: impl Into<String>,
    ) -> Result<()> {
        self.settle(Ending::Bury(as_text(reason)), leases).await
    }

    /// Makes leases end that long from now; more than zero, at most 365 days.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn extend<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>, by: Duration) -> Result<()> {
        self.settle(Ending::Extend(by.as_secs_f64()), leases).await
    }

    /// Acknowledges messages inside the caller's transaction: the effects and the acknowledgement commit together,
    /// which makes the effects exactly once, without a transaction being open during the work.
    ///
    /// # Errors
    /// [`Error::is_lease_lost`](crate::Error::is_lease_lost): roll back, so that the effects are undone; someone else has the message.
    pub async fn ack_in<L: Into<Lease>>(
        &self,
        transaction: &impl InTransaction,
        leases: impl IntoIterator<Item = L>,
    ) -> Result<()> {
        let leases = checked(self.shared.name(), leases)?;
        if leases.is_empty() {
            return Ok(());
        }
        let (shared, ranges) = (&self.shared, Ranges::of(&leases, |_, _| true));
        // Neighbours in the same row must not wait for the caller's commit: cut them off, in a transaction of our own.
        shared.query_again(&shared.sql.carve, &[&ranges.ids, &ranges.sizes, &ranges.attempts]).await?;
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&ranges.ids, Type::INT8_ARRAY), (&ranges.sizes, Type::INT4_ARRAY), (&ranges.attempts, Type::INT4_ARRAY)];
        let (began, span) = (Instant::now(), span::settle(shared.name(), End::Done.name(), leases.len()));
        let settled = transaction.fetch(&shared.sql.ack.text, &params).instrument(span).await;
        let settled = settled.map_err(|error| error.or_no_queue(shared.name()))?;
        let settled = settled.iter().map(|row| Settled::checked(row.read(0)?, row.read(1)?, row.read(2)?));
        let settled = settled.collect::<Result<Vec<_>>>()?;
        let lost = lost(&leases, settled);
        shared.metrics.settled(End::Done, leases.len(), lost.len(), began);
        lost_or_ok(shared.name(), lost)
    }

    /// As [`Queue::ack_in`], without waiting: the acknowledgement leaves with the transaction's next statements. **Await what is
    /// returned before the commit**, or with it: only its answer says whether a lease was lost.
    ///
    /// Commit soon: until then, others wait who settle messages of the same rows.
    ///
    /// # Errors
    /// As [`Transaction::send`]; what is returned errs as [`Queue::ack_in`].
    pub async fn send_ack<L: Into<Lease>>(
        &self,
        transaction: &Transaction,
        leases: impl IntoIterator<Item = L>,
    ) -> Result<BoxFuture<'static, Result<()>>> {
        let leases = checked(self.shared.name(), leases)?;
        let ranges = Ranges::of(&leases, |_, _| true);
        let ranges: [&(dyn ToSql + Sync); 3] = [&ranges.ids, &ranges.sizes, &ranges.attempts];
        let sent = transaction.send_text::<Vec<(i64, i32, i32)>>(&self.shared.sql.ack.text, &ranges).await;
        let settled = sent.map_err(|error| error.or_no_queue(self.shared.name()))?;
        let (shared, began) = (self.shared.clone(), Instant::now());
        Ok(Box::pin(async move {
            let settled = settled.await?.into_iter().map(|(id, size, attempt)| Settled::checked(id, size, attempt));
            let settled = settled.collect::<Result<Vec<_>>>()?;
            let lost = lost(&leases, settled);
            shared.metrics.settled(End::Done, leases.len(), lost.len(), began);
            lost_or_ok(shared.name(), lost)
        }))
    }

    /// Leases up to `n` messages for the queue's lease time, in the caller's transaction and without waiting: they are leased
    /// if and when it commits. Others pass over them meanwhile.
    ///
    /// # Errors
    /// As [`Transaction::send`]; what is returned errs with the statement's error.
    ///
    /// A message that cannot be read as `T` is passed over: it comes back when its lease ends, and is charged for it.
    pub async fn send_lease(
        &self,
        transaction: &Transaction,
        n: usize,
    ) -> Result<BoxFuture<'static, Result<Vec<Message<T>>>>> {
        let shared = self.shared.clone();
        let (n, rows) = (n.min(PAGE) as i32, shared.rows_for(n));
        let params: [&(dyn ToSql + Sync); 4] = [&n, &None::<f64>, &shared.floor(), &rows];
        let sent = transaction.send_text::<Vec<Fetched>>(&shared.sql.lease.text, &params).await;
        let (leased, began) = (sent.map_err(|error| error.or_no_queue(shared.name()))?, Instant::now());
        Ok(Box::pin(async move {
            // What cannot be read comes back when its lease ends: before the commit, nothing else can be said of it.
            let dequeued = shared.read_fetched(&leased.await?, Dequeue::Lease(None))?;
            shared.metrics.leased(dequeued.messages.len(), began);
            Ok(dequeued.messages)
        }))
    }

    /// Acknowledges messages and leases up to `n` others, at most 32,768, in one round trip and one commit. Returns the leased messages,
    /// and the ids of those whose lease was lost before they were acknowledged.
    ///
    /// The leases last for the queue's lease time, or for `lease`: more than zero, at most 365 days. For callers that work on many
    /// messages at a time: one whose last lease ran out may have killed its worker, so it comes alone, in a call of its own. For the
    /// rest see [`Queue::lease`] and [`Queue::ack`].
    pub async fn ack_and_lease<L: Into<Lease>>(
        &self,
        done: impl IntoIterator<Item = L>,
        n: usize,
        lease: Option<Duration>,
    ) -> Result<(Vec<Message<T>>, Vec<i64>)> {
        let (done, time) = (checked(self.shared.name(), done)?, lease.map(seconds));
        if done.is_empty() {
            let dequeued = self.shared.dequeue(n, Dequeue::LeaseApart(time)).await?;
            return Ok((self.readable(dequeued), Vec::new()));
        }
        let (dequeued, settled) = self.shared.dequeue_and_ack(n, time, Ranges::of(&done, |_, _| true)).await?;
        Ok((self.readable(dequeued), lost(&done, settled)))
    }
}
