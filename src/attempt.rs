//! One delivery of a message, as its handler sees it.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use crate::{
    error::Result, in_transaction::InTransaction, message::Lease, payload::Payload, queue::Queue,
    transaction::Transaction,
};

/// One delivery of one message: what a handler of [`Worker::with_attempt`](crate::Worker::with_attempt) gets beside the
/// message itself. Cheap to clone.
pub struct Attempt<T> {
    queue: Queue<T>,
    lease: Lease,
    told: Arc<Told>,
}

/// What the worker and the handler tell each other while the handler runs.
#[derive(Debug)]
pub(crate) struct Told {
    lost: CancellationToken,
    /// Whether the handler acknowledged the message by itself, or is about to.
    settled: AtomicBool,
    /// Until when the handler itself extended the lease.
    extended: Mutex<Option<Instant>>,
}

impl Told {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { lost: CancellationToken::new(), settled: AtomicBool::new(false), extended: Mutex::default() })
    }

    pub fn lose(&self) {
        self.lost.cancel();
    }

    #[cfg(test)]
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    pub fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
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
    pub(crate) fn new(queue: Queue<T>, lease: Lease, told: Arc<Told>) -> Self {
        Self { queue, lease, told }
    }

    /// Cancelled when the lease is lost all the same, or the worker gives up on the handler at its shutdown. Whatever
    /// the handler answers then is discarded, because someone else has the message, or will have it.
    #[must_use]
    pub fn lost(&self) -> CancellationToken {
        self.told.lost.clone()
    }

    /// What names this delivery.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.lease
    }

    /// The queue that the message came from.
    #[must_use]
    pub fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// Makes the lease end that long from now. The worker renews leases by itself while a handler runs; this is for
    /// handlers that will keep its threads from doing so. More than zero, at most 365 days.
    ///
    /// # Errors
    /// As [`Queue::extend`].
    pub async fn extend(&self, by: Duration) -> Result<()> {
        let until = Instant::now() + by;
        self.queue.extend([self.lease], by).await?;
        *self.told.extended.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        Ok(())
    }

    /// A transaction in which the message is acknowledged: if it commits, with whatever else is done in it, the worker leaves
    /// the message alone, which makes the effects exactly once. Nothing is open before it is asked for, so ask when the work is done
    /// and its effects are to be written.
    ///
    /// If it is not committed, answer with a failure, and the message is tried again; after `Ok` it would come back when its
    /// lease ends.
    ///
    /// # Errors
    /// As [`Queue::ack_in`]. [`Error::is_lease_lost`](crate::Error::is_lease_lost): there is no transaction then, because
    /// someone else has the message.
    pub async fn transaction(&self) -> Result<Transaction> {
        let transaction = self.queue.db().begin().await?;
        self.ack_in(&transaction).await?;
        Ok(transaction)
    }

    /// As [`Attempt::transaction`], inside a transaction of the caller's own: its effects and the acknowledgement commit together,
    /// and the worker leaves the message alone from then on, if the handler answers `Ok`.
    ///
    /// # Errors
    /// As [`Queue::ack_in`]. After [`Error::is_lease_lost`](crate::Error::is_lease_lost) roll back.
    pub async fn ack_in(&self, transaction: &impl InTransaction) -> Result<()> {
        // Said first: a renewal would wait for the transaction, and all that is settled with it.
        self.told.settled.store(true, Ordering::Release);
        let outcome = self.queue.ack_in(transaction, [self.lease]).await;
        self.told.settled.store(outcome.is_ok(), Ordering::Release);
        outcome
    }
}
