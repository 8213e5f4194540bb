//! At-least-once delivery: messages are leased. A lease ends with `ack`, `archive`, `retry`, `bury`
//! or `release`, or when its time has passed.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio_postgres::types::ToSql;
use tracing::warn;

use crate::{
    error::Result,
    postgres::{in_transaction::Fetched, transaction::Transaction},
    queue::{
        batch::dequeues::{Batches, DequeueMode, PAGE},
        handle::Queue,
        message::{Lease, Message, dequeue::Dequeue, payload::Payload},
        verbs::{ack::checked, dequeue::Dequeued},
        wait::linger::Linger,
    },
};

/// The delay before an unreadable message is due again, for a consumer that can read it.
pub(crate) const UNREADABLE_AGAIN: Duration = Duration::from_secs(1);

/// The readable messages of a dequeue.
pub(crate) struct Delivered<T> {
    pub messages: Vec<Message<T>>,
    /// True if no other message is due.
    pub is_short: bool,
    /// The time before the statement was sent, if there was one. A lease of the messages ends no
    /// earlier than its time after it.
    pub asked: Option<tokio::time::Instant>,
}

impl<T> Delivered<T> {
    pub fn nothing() -> Self {
        Self { messages: Vec::new(), is_short: true, asked: None }
    }
}

impl<T: Payload> Queue<T> {
    /// Dequeues up to `n` messages. Returns no messages if no readable message is due, or if it has
    /// buried messages until `until`.
    pub(crate) async fn dequeue(
        &self,
        n: usize,
        how: DequeueMode,
        until: Option<tokio::time::Instant>,
    ) -> Result<Delivered<T>> {
        loop {
            let dequeued = self.shared.dequeue(n, how).await?;
            let is_over = || until.is_some_and(|until| tokio::time::Instant::now() >= until);
            let may_find_others = dequeued.unread > 0 || dequeued.has_stopped && !is_over();
            let (is_short, asked) = (dequeued.is_short_of(n), dequeued.asked);
            let messages = self.readable(dequeued);
            if !messages.is_empty() || !may_find_others {
                return Ok(Delivered { messages, is_short, asked });
            }
        }
    }

    /// Decodes this consumer's messages from a statement that served several consumers.
    pub(crate) fn open(&self, batches: Batches) -> Result<Delivered<T>> {
        let (count, asked) = (batches.size, Some(batches.asked));
        let messages = self.readable(self.shared.open(vec![batches], count)?);
        Ok(Delivered { messages, is_short: false, asked })
    }

    /// Leases up to `n` messages, oldest first, for the queue's lease time or for the time in the
    /// [`Dequeue`]. Returns no messages if none are due.
    ///
    /// The attempt is counted when the lease begins, so that crashes count too. Until the lease
    /// ends, no other consumer receives the message. If the message is neither acknowledged nor
    /// retried by then, it is delivered again. It may have crashed its consumer, so it is then
    /// returned alone, even if others are due. After the last attempt the message becomes a dead
    /// letter. If the call is dropped before it returns, the messages are released, and no attempt
    /// is counted.
    ///
    /// If a message cannot be read as `T`, its attempt fails with that error. The other messages
    /// are returned.
    ///
    /// # Errors
    /// The lease time ([`Dequeue::lease_for`]) is out of bounds, or the request has a maximum wait
    /// ([`Dequeue::within`]): only a [`Consumer`](crate::Consumer) waits.
    pub async fn lease(&self, request: impl Into<Dequeue>) -> Result<Vec<Message<T>>> {
        let request = request.into().without_wait()?;
        Ok(self.dequeue(request.n(), DequeueMode::Lease(request.lease()), None).await?.messages)
    }

    /// Returns the readable messages, and fails the attempts of unreadable ones.
    pub(crate) fn readable<U>(&self, dequeued: Dequeued<U>) -> Vec<Message<U>> {
        for unreadable in dequeued.unreadable {
            let queue = self.clone();
            let leases: Vec<Lease> = unreadable.leases().collect();
            // Ignores an error. If the retry fails, the lease expires, which counts the attempt as
            // well.
            tokio::spawn(async move { queue.retry(leases, UNREADABLE_AGAIN, unreadable.reason).await });
        }
        dequeued.messages
    }

    /// Leases up to `n` messages in the caller's transaction, without waiting for the reply. The
    /// messages are leased if and when the transaction commits. Until then, other sessions skip
    /// them.
    ///
    /// A message that cannot be read as `T` is skipped. It is delivered again when its lease ends,
    /// and this attempt counts. If thousands of messages have used up their attempts, the call
    /// makes some of them dead letters and may return no message: commit, and call it again.
    ///
    /// # Errors
    /// The errors of [`Transaction::send`]; the returned future has the statement's error.
    pub async fn send_lease(
        &self,
        transaction: &Transaction,
        request: impl Into<Dequeue>,
    ) -> Result<BoxFuture<'static, Result<Vec<Message<T>>>>> {
        let (shared, request) = (self.shared.clone(), request.into().without_wait()?);
        let (n, rows) = (request.n().min(PAGE) as i32, shared.rows_for(request.n()));
        let params: [&(dyn ToSql + Sync); 4] = [&n, &request.lease(), &shared.floor(), &rows];
        let sent = transaction.send_text::<Vec<Fetched>>(&shared.sql.lease.text, &params).await;
        let (leased, began) = (sent.map_err(|error| error.or_no_queue(shared.name()))?, Instant::now());
        Ok(Box::pin(async move {
            // An unreadable message is delivered again when its lease ends, because it cannot be
            // retried before the commit.
            let dequeued = shared.read_fetched(&leased.await?, DequeueMode::Lease(None))?;
            shared.metrics.leased(dequeued.messages.len(), began);
            Ok(dequeued.messages)
        }))
    }

    /// Acknowledges messages and leases up to `n` new messages, at most 32,768 and fewer if they
    /// are large, in one round trip and one commit. Returns the leased messages, and the ids of
    /// messages whose lease was lost before the acknowledgement.
    ///
    /// Use this method to work on many messages at a time. The call works like [`Queue::lease`] and
    /// [`Queue::ack`].
    pub async fn ack_and_lease<L: Into<Lease>>(
        &self,
        done: impl IntoIterator<Item = L>,
        request: impl Into<Dequeue>,
    ) -> Result<(Vec<Message<T>>, Vec<i64>)> {
        let request = request.into().without_wait()?;
        let done: Vec<Lease> = done.into_iter().map(Into::into).collect();
        let is_acknowledged = !done.is_empty();
        let (dequeued, lost) = self.ack_and_lease_soon(done, request, true, None, None).await?;
        let has_stopped = dequeued.has_stopped;
        let messages = self.readable(dequeued);
        if !messages.is_empty() || !has_stopped {
            return Ok((messages, lost));
        }
        match self.lease(request).await {
            Err(error) if is_acknowledged => {
                warn!(queue = self.shared.name(), %error, "messages were acknowledged, but none could be leased");
                Ok((Vec::new(), lost))
            }
            leased => Ok((leased?, lost)),
        }
    }

    /// Acknowledges and leases, after a pause if `linger` is set. If `holder` is set, leases from
    /// that worker's partitions. If `apart` is set, a message whose lease expired is returned
    /// alone. The caller fails the attempts of unreadable messages.
    pub(crate) async fn ack_and_lease_soon<L: Into<Lease>>(
        &self,
        done: impl IntoIterator<Item = L>,
        request: Dequeue,
        apart: bool,
        holder: Option<i64>,
        linger: Option<Linger>,
    ) -> Result<(Dequeued<T>, Vec<i64>)> {
        let (done, n, time) = (checked(self.shared.name(), done)?, request.n(), request.lease());
        let how = match holder {
            Some(holder) => DequeueMode::Lanes(holder, time),
            None if apart => DequeueMode::Lease(time),
            None => DequeueMode::LeaseTogether(time),
        };
        if done.is_empty() {
            return Ok((self.shared.dequeue(n, how).await?, Vec::new()));
        }
        self.shared.ack_and_lease(done, (n, how), linger).await
    }
}
