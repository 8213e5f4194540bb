//! One delivery of a message, as its handler sees it.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
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
    worker::renewal_barrier::Renewals,
};

/// One delivery of one message. A handler of [`Worker::with_attempt`](crate::Worker::with_attempt)
/// receives it in addition to the message. Cheap to clone.
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
    /// The end of the lease, if the handler has extended it.
    extended: Mutex<Option<Extended>>,
    /// The number of extensions that the handler is sending. A renewal at that time could shorten
    /// the lease.
    extending: AtomicUsize,
    renewals: Arc<Renewals>,
}

#[derive(Debug, Clone, Default)]
enum Ended {
    #[default]
    No,
    /// The message was acknowledged in a transaction that does not report its outcome to the
    /// worker.
    InTheirs,
    /// The same, and the handler has exceeded its time limit, so the transaction may be open.
    InTheirsLate,
    /// The message was acknowledged in a transaction that reports whether it was committed.
    InOurs(Arc<OnceLock<bool>>),
    Releasing,
    Released,
    ReleaseFailed,
}

/// A mark that a lease is about to end, set before the statement that ends it is sent. Dropping
/// this value removes the mark.
struct UnsentStatement<'a> {
    told: &'a Signals,
    before: Option<Ended>,
}

impl UnsentStatement<'_> {
    /// Keeps the mark, because the statement is sent next. Returns the mark before it.
    fn sent(mut self) -> Ended {
        self.before.take().unwrap_or_default()
    }
}

impl Drop for UnsentStatement<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            self.told.end(before);
        }
    }
}

/// The end of a lease that the handler has extended, or perhaps shortened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extended {
    until: Instant,
    /// False if the server's answer is unknown.
    is_certain: bool,
}

impl Extended {
    /// Returns the earliest possible end of a lease that would otherwise have ended at `before`.
    pub fn of(self, before: Instant) -> Instant {
        if self.is_certain { self.until } else { self.until.min(before) }
    }
}

/// An extension that is being sent. Dropping this value records what is known about the extension.
struct Extension<'a> {
    told: &'a Signals,
    extended: Option<Extended>,
}

impl<'a> Extension<'a> {
    fn of(told: &'a Signals) -> Self {
        told.extending.fetch_add(1, Ordering::AcqRel);
        Self { told, extended: None }
    }
}

impl Drop for Extension<'_> {
    fn drop(&mut self) {
        if self.extended.is_some() {
            *self.told.extended.lock().unwrap_or_else(PoisonError::into_inner) = self.extended;
        }
        self.told.extending.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The way in which a handler ended the lease of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnEnd {
    /// The handler has not ended the lease, so the worker ends it.
    None,
    /// The message is acknowledged in the handler's transaction, which is assumed to be committed.
    Assumed,
    Committed,
    /// The message is acknowledged in a transaction that is still open.
    Open,
    /// The acknowledgement was not committed, so the message is still leased.
    Undone,
    Released,
    /// The handler gave the message back, and the release failed, so the message is still leased.
    ReleaseFailed,
}

impl Signals {
    pub(in crate::worker) fn new(renewals: Arc<Renewals>) -> Arc<Self> {
        let (lost, ended, extended) = (CancellationToken::new(), Mutex::default(), Mutex::default());
        Arc::new(Self { lost, ended, extended, extending: AtomicUsize::new(0), renewals })
    }

    pub fn lose(&self) {
        self.lost.cancel();
    }

    #[cfg(test)]
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Sets how the lease ends. Returns the previous value.
    fn end(&self, how: Ended) -> Ended {
        std::mem::replace(&mut self.ended.lock().unwrap_or_else(PoisonError::into_inner), how)
    }

    fn time_out(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*ended, Ended::InTheirs) {
            *ended = Ended::InTheirsLate;
        }
    }

    /// Announces that a transaction will end the lease, so that no further renewal begins. A
    /// renewal would wait for the transaction and delay all settlements. Then waits for a renewal
    /// that has already begun.
    async fn about_to_end(&self, how: Ended) -> UnsentStatement<'_> {
        let unsent = UnsentStatement { told: self, before: Some(self.end(how)) };
        self.renewals.ended().await;
        unsent
    }

    pub fn own_end(&self) -> OwnEnd {
        match &*self.ended.lock().unwrap_or_else(PoisonError::into_inner) {
            Ended::No => OwnEnd::None,
            Ended::InTheirs => OwnEnd::Assumed,
            Ended::InTheirsLate => OwnEnd::Open,
            Ended::Released => OwnEnd::Released,
            // Until the server answers, the message counts as leased. A second release is harmless.
            Ended::Releasing | Ended::ReleaseFailed => OwnEnd::ReleaseFailed,
            Ended::InOurs(committed) => match committed.get() {
                None => OwnEnd::Open,
                Some(true) => OwnEnd::Committed,
                Some(false) => OwnEnd::Undone,
            },
        }
    }

    /// Returns true if the worker must not settle the message, because a settlement would wait for
    /// the handler's transaction.
    pub fn is_settled(&self) -> bool {
        matches!(*self.ended.lock().unwrap_or_else(PoisonError::into_inner), Ended::Releasing)
            || !matches!(self.own_end(), OwnEnd::None | OwnEnd::Undone | OwnEnd::ReleaseFailed)
    }

    /// Returns true if an extension is being sent, or if [`Signals::take_extended`] would return
    /// one.
    pub fn is_extending(&self) -> bool {
        self.extending.load(Ordering::Acquire) > 0
            || self.extended.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Removes and returns what is known about the handler's last extension.
    pub fn take_extended(&self) -> Option<Extended> {
        self.extended.lock().unwrap_or_else(PoisonError::into_inner).take()
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

    /// Returns a token that is cancelled when the lease is lost, for example by [`Queue::cancel`].
    /// It is also cancelled when the worker gives up on the handler during a shutdown. The
    /// handler's result is then discarded, because the message is delivered again or is already
    /// with another worker.
    ///
    /// The worker checks its leases twice a second, so the token is cancelled within a second,
    /// including the statement's round trip. If the database does not answer, the token is
    /// cancelled one second after the end of the lease by the worker's own clock.
    #[must_use]
    pub fn lost(&self) -> CancellationToken {
        self.told.lost.clone()
    }

    /// Returns the id and the attempt of this delivery.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.lease
    }

    /// Returns the queue that the message came from.
    #[must_use]
    pub fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// Extends the lease to the time `by` from now: more than zero, at most 365 days. The worker
    /// renews leases by itself while a handler runs. A handler needs this method only if it blocks
    /// the runtime's threads, which prevents renewals.
    ///
    /// # Errors
    /// The errors of [`Queue::extend`].
    pub async fn extend(&self, by: Duration) -> Result<()> {
        let mut extension = Extension::of(&self.told);
        self.told.renewals.ended().await;
        let until = Instant::now().checked_add(by);
        extension.extended = until.map(|until| Extended { until, is_certain: false });
        let outcome = self.queue.extend([self.lease], by).await;
        match &outcome {
            Ok(()) => extension.extended = until.map(|until| Extended { until, is_certain: true }),
            Err(error) if error.is_outcome_unknown() => {}
            // the extension had no effect, so the lease ends when it would have ended
            Err(_) => extension.extended = None,
        }
        outcome
    }

    /// Gives the message back unfinished. It is due again at once, and the attempt is not counted.
    /// Use this method in a handler that stops early because its program stops. The worker ignores
    /// the result that the handler then returns. If the release fails and the handler returns `Ok`,
    /// the worker treats that as a failure, because the message is not done.
    ///
    /// # Errors
    /// The errors of [`Queue::release`].
    pub async fn release(&self) -> Result<()> {
        let before = self.told.end(Ended::Releasing);
        // Keeps an earlier end, because the handler may have ended the lease before this call.
        let before = Some(if matches!(before, Ended::No) { Ended::ReleaseFailed } else { before });
        let unanswered = UnsentStatement { told: &self.told, before };
        self.queue.release([self.lease]).await?;
        unanswered.sent();
        self.told.end(Ended::Released);
        Ok(())
    }

    /// Begins a transaction in which the message is acknowledged. The handler's writes and the
    /// acknowledgement commit together, so the effect happens exactly once. Call this method after
    /// the slow part of the work, because the transaction stays open until the handler ends it.
    ///
    /// - If the transaction commits, the message is done, even if the handler then returns an
    ///   error.
    /// - If the transaction does not commit (it is dropped or rolled back, or the commit fails),
    ///   nothing has happened. If the handler still returns `Ok`, the worker treats that as a
    ///   failure, and the retry policy decides.
    /// - If the transaction is still open when the handler returns, the worker does not settle the
    ///   message. The message is done if the transaction commits; otherwise it is delivered again
    ///   when its lease ends.
    ///
    /// ```
    /// # use trunkline::{Attempt, Failure, Message, postgres::Statement};
    /// static BOOK: Statement<(i64,), u64> =
    ///     Statement::new("insert into booking (room) values ($1)");
    ///
    /// async fn book(message: Message<i64>, attempt: Attempt<i64>) -> Result<(), Failure> {
    ///     let transaction = attempt.transaction().await?;
    ///     transaction.send(&BOOK, (message.payload,)).await?;
    ///     Ok(transaction.commit().await?)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_lease_lost`](crate::Error::is_lease_lost) if the lease has ended, or the message
    /// was cancelled or purged; then no transaction is open. Otherwise the errors of
    /// [`Db::begin`](crate::Db::begin) and [`Queue::ack_in`].
    pub async fn transaction(&self) -> Result<Transaction> {
        let transaction = self.queue.db().begin().await?;
        let before = self.told.about_to_end(Ended::InOurs(transaction.committed())).await.sent();
        let outcome = self.queue.ack_in(&transaction, [self.lease]).await;
        if outcome.is_err() {
            self.told.end(before);
        }
        outcome.map(|()| transaction)
    }

    /// Announces that the handler acknowledges the message on a connection outside this library:
    /// with the SQL function `ack` in another driver's transaction. Call this method before that
    /// statement. If the handler then returns `Ok`, the worker does not settle the message, as
    /// after [`Attempt::ack_in`].
    #[doc(hidden)]
    pub async fn ends_elsewhere(&self) {
        self.told.about_to_end(Ended::InTheirs).await.sent();
    }

    /// Announces that the handler has exceeded a time limit of its own program, which then fails
    /// it. The effect is that of the worker's timeout, see [`Attempt::ack_in`].
    #[doc(hidden)]
    pub fn time_out(&self) {
        self.told.time_out();
    }

    /// Acknowledges the message inside a transaction of the handler. If the handler then returns
    /// `Ok`, the worker does not settle the message, because it cannot learn how that transaction
    /// ends. The same is true if the handler exceeds its timeout. If the transaction is not
    /// committed, the message is delivered again when its lease ends. By contrast,
    /// [`Attempt::transaction`] reports the outcome to the worker.
    ///
    /// # Errors
    /// The errors of [`Queue::ack_in`]. After
    /// [`Error::is_lease_lost`](crate::Error::is_lease_lost), roll back.
    pub async fn ack_in(&self, transaction: &impl InTransaction) -> Result<()> {
        let unsent = self.told.about_to_end(Ended::InTheirs).await;
        let leases = [self.lease];
        let ranges = self.queue.carve(&leases).await?;
        let before = unsent.sent();
        let outcome = self.queue.ack_carved_in(transaction, &leases, &ranges).await;
        if outcome.is_err() {
            self.told.end(before);
        }
        outcome
    }
}
