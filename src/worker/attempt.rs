//! One delivery of a message, as its handler sees it.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use crate::{
    error::Result,
    postgres::{in_transaction::InTransaction, transaction::Transaction},
    queue::{
        handle::Queue,
        message::{Lease, payload::Payload},
    },
    worker::renewals::Renewals,
};

/// One delivery of one message: what a handler of
/// [`Worker::with_attempt`](crate::Worker::with_attempt) gets beside the message itself. Cheap to
/// clone.
pub struct Attempt<T> {
    queue: Queue<T>,
    lease: Lease,
    told: Arc<Signals>,
}

/// State that the worker and a running handler share.
#[derive(Debug)]
pub(crate) struct Signals {
    lost: CancellationToken,
    ended: Mutex<Ended>,
    /// Until when the handler itself extended the lease.
    extended: Mutex<Option<Instant>>,
    renewals: Arc<Renewals>,
}

/// How the handler ended its message's lease by itself.
#[derive(Debug, Clone, Default)]
enum Ended {
    #[default]
    No,
    /// By an acknowledgement in a transaction of its own, whose end is not reported to the worker.
    InTheirs,
    /// By one in a transaction that tells whether it was committed.
    InOurs(Arc<OnceLock<bool>>),
    Released,
}

/// An end that was said, and of which nothing is sent yet: taken back where the call is dropped.
struct Unsent<'a> {
    told: &'a Signals,
    before: Option<Ended>,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            self.told.end(before);
        }
    }
}

/// How a handler ended its message's lease by itself, as the worker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnEnd {
    /// Nothing: the worker ends its lease.
    None,
    /// Acknowledged; if the handler does not lie, it is done.
    Assumed,
    Committed,
    /// Acknowledged, and neither committed nor rolled back yet.
    Open,
    /// Acknowledged, and then not committed: it is leased as before.
    Undone,
    Released,
}

impl Signals {
    pub(in crate::worker) fn new(renewals: Arc<Renewals>) -> Arc<Self> {
        let (lost, ended, extended) = (CancellationToken::new(), Mutex::default(), Mutex::default());
        Arc::new(Self { lost, ended, extended, renewals })
    }

    pub fn lose(&self) {
        self.lost.cancel();
    }

    #[cfg(test)]
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Returns what it was before.
    fn end(&self, how: Ended) -> Ended {
        std::mem::replace(&mut self.ended.lock().unwrap_or_else(PoisonError::into_inner), how)
    }

    /// Says it before a transaction ends the lease, so that no renewal comes that would wait for
    /// it, and all that is settled with that; one that is on its way comes before. Returns what was
    /// said before.
    async fn about_to_end(&self, how: Ended) -> Ended {
        let mut unsent = Unsent { told: self, before: Some(self.end(how)) };
        self.renewals.ended().await;
        unsent.before.take().unwrap_or_default()
    }

    pub fn own_end(&self) -> OwnEnd {
        match &*self.ended.lock().unwrap_or_else(PoisonError::into_inner) {
            Ended::No => OwnEnd::None,
            Ended::InTheirs => OwnEnd::Assumed,
            Ended::Released => OwnEnd::Released,
            Ended::InOurs(committed) => match committed.get() {
                None => OwnEnd::Open,
                Some(true) => OwnEnd::Committed,
                Some(false) => OwnEnd::Undone,
            },
        }
    }

    /// Whether the worker leaves the message alone: a settlement would wait for the handler's
    /// transaction.
    pub fn is_settled(&self) -> bool {
        !matches!(self.own_end(), OwnEnd::None | OwnEnd::Undone)
    }

    pub fn extended(&self) -> Option<Instant> {
        *self.extended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Attempt<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), lease: self.lease, told: self.told.clone() }
    }
}

impl<T> fmt::Debug for Attempt<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Attempt").field("queue", &self.queue).field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl<T: Payload> Attempt<T> {
    pub(crate) fn new(queue: Queue<T>, lease: Lease, told: Arc<Signals>) -> Self {
        Self { queue, lease, told }
    }

    /// Cancelled when the lease is lost all the same, as by [`Queue::cancel`], or the worker gives
    /// up on the handler at its shutdown. Whatever the handler answers then is discarded, because
    /// someone else has the message, or will have it.
    ///
    /// The worker looks after its leases twice a second: so the token is cancelled within a second,
    /// the statement's round trip included. While the database does not answer, the worker learns
    /// nothing from it; then the token is cancelled when the lease is over by the worker's own
    /// clock, which it is a second after its end.
    #[must_use]
    pub fn lost(&self) -> CancellationToken {
        self.told.lost.clone()
    }

    /// The id and the attempt of this delivery.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.lease
    }

    /// The queue that the message came from.
    #[must_use]
    pub fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// Makes the lease end that long from now. The worker renews leases by itself while a handler
    /// runs; this is for handlers that will keep its threads from doing so. More than zero, at most
    /// 365 days.
    ///
    /// # Errors
    /// As [`Queue::extend`].
    pub async fn extend(&self, by: Duration) -> Result<()> {
        let began = Instant::now();
        self.queue.extend([self.lease], by).await?; // which knows the bounds
        let until = began + by;
        *self.told.extended.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        Ok(())
    }

    /// Gives the message back unfinished: due again at once, and the attempt is not charged. For a
    /// handler that stops half way because its program does; whatever it answers then does not
    /// count.
    ///
    /// # Errors
    /// As [`Queue::release`].
    pub async fn release(&self) -> Result<()> {
        let before = self.told.end(Ended::Released);
        let outcome = self.queue.release([self.lease]).await;
        if outcome.is_err() {
            self.told.end(before);
        }
        outcome
    }

    /// Begins a transaction in which the message is acknowledged. What the handler writes in it and
    /// the acknowledgement commit together, so the effect is exactly once; and no transaction is
    /// open before the handler asks for one, which it best does when its slow work is done.
    ///
    /// - Committed, the message is done, whatever the handler answers then.
    /// - Not committed (dropped, rolled back, or the commit failed), nothing has happened: if the
    ///   handler answers `Ok` all the same, that is a failure, and the retry policy decides.
    /// - Still open somewhere when the handler answers: the worker leaves the message alone. It is
    ///   done if that is committed, and comes back when its lease ends if not.
    ///
    /// ```
    /// # use trunkline::{Attempt, Failure, Message, postgres::Statement};
    /// static BOOK: Statement<(i64,), u64> = Statement::new("insert into booking (room) values ($1)");
    ///
    /// async fn book(message: Message<i64>, attempt: Attempt<i64>) -> Result<(), Failure> {
    ///     let transaction = attempt.transaction().await?;
    ///     transaction.send(&BOOK, (message.payload,)).await?;
    ///     Ok(transaction.commit().await?)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_lease_lost`](crate::Error::is_lease_lost): someone else has the message; there
    /// is no transaction then. Otherwise as [`Db::begin`](crate::Db::begin) and [`Queue::ack_in`].
    pub async fn transaction(&self) -> Result<Transaction> {
        let transaction = self.queue.db().begin().await?;
        let before = self.told.about_to_end(Ended::InOurs(transaction.committed())).await;
        let outcome = self.queue.ack_in(&transaction, [self.lease]).await;
        if outcome.is_err() {
            self.told.end(before);
        }
        outcome.map(|()| transaction)
    }

    /// Says that the handler acknowledges the message by itself, on a connection that this library
    /// does not know: with the SQL function `ack` in a transaction of another driver. Call it
    /// before that statement; from then on the worker leaves the message alone, if the handler
    /// answers `Ok`, as with [`Attempt::ack_in`].
    pub async fn ends_elsewhere(&self) {
        self.told.about_to_end(Ended::InTheirs).await;
    }

    /// Acknowledges the message inside a transaction of the handler's own. The worker leaves the
    /// message alone from then on, if the handler answers `Ok`, because it cannot know how that
    /// transaction ends: if it is not committed, the message comes back when its lease ends.
    /// [`Attempt::transaction`] knows.
    ///
    /// # Errors
    /// As [`Queue::ack_in`]. After [`Error::is_lease_lost`](crate::Error::is_lease_lost) roll back.
    pub async fn ack_in(&self, transaction: &impl InTransaction) -> Result<()> {
        let before = self.told.about_to_end(Ended::InTheirs).await;
        let outcome = self.queue.ack_in(transaction, [self.lease]).await;
        if outcome.is_err() {
            self.told.end(before);
        }
        outcome
    }
}
