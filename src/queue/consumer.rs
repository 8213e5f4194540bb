//! Consumers, which wait for messages in one of three ways and dequeue with one of three
//! guarantees.

pub(crate) mod hearing;
pub(crate) mod offer;
mod step;
mod stream;
mod work;
mod direct;

use std::time::Duration;

use tracing::warn;

use self::hearing::{heard, sleep};
pub(crate) use self::work::{Worked, at_least_one};
pub use self::{stream::Messages, work::Work};

use crate::{
    error::Result,
    postgres::{db::Subscription, in_transaction::InTransaction},
    queue::{
        batch::dequeues::DequeueMode,
        handle::Queue,
        message::{
            Lease, Message,
            dequeue::Dequeue,
            failure::{Failure, LONGEST},
            payload::Payload,
        },
        verbs::direct::Mailbox,
        wait::{Pace, Wait, hooks::Hooks, linger::Linger},
    },
};

/// A consumer that waits for messages of one queue. Create one consumer for each task that
/// consumes.
///
/// A dequeue waits until at least one message is due, or until [`Dequeue::within`] ends the wait.
/// Dropping a call while it waits loses no messages. While the database is unreachable, a call
/// keeps trying for up to half a minute.
#[derive(Debug)]
pub struct Consumer<T> {
    queue: Queue<T>,
    pace: Pace,
    subscription: Option<Subscription>,
    /// The number of notifications before the last dequeue, if no due message was left after it.
    drained: Option<u64>,
    retry_after: Duration,
    /// The number of messages to try one at a time, because the work on several messages failed.
    alone: usize,
    /// True if other consumers may probe and take at the same time: before the first message, after
    /// a wait, and after a try that found nothing. This consumer then shares its next probe and
    /// waits for its turn to take.
    is_in_crowd: bool,
    /// The mailbox for direct messages, once [`Consumer::receive_direct`] has been called.
    place: Option<Mailbox>,
    hooks: Hooks,
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            place.abandon();
        }
    }
}

impl<T: Payload> Queue<T> {
    /// Returns a consumer that waits in the given way; `Wait::default()` is adaptive.
    #[must_use]
    pub fn consumer(&self, wait: Wait) -> Consumer<T> {
        Consumer {
            queue: self.clone(),
            pace: Pace::new(wait),
            subscription: None,
            drained: None,
            retry_after: Duration::from_secs(1),
            alone: 0,
            is_in_crowd: true,
            place: None,
            hooks: Hooks::default(),
        }
    }
}

impl<T: Payload> Consumer<T> {
    /// Returns the consumer's queue.
    #[must_use]
    pub fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// Sets the delay before a message is tried again after its work failed in
    /// [`Consumer::take_with`]: at most 365 days, 1 s by default.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = delay.min(LONGEST);
        self
    }

    /// Calls `hook` whenever nothing is due and the consumer is about to wait for a notification.
    /// Messages enqueued after that call wake the consumer. If several hooks are set, all of them
    /// are called. A consumer that polls never calls this hook.
    ///
    /// Messages that cannot be dequeued at that moment do not count as due: messages that another
    /// session has locked, and a message with an expired lease after others that were just leased.
    /// The consumer then waits for a few milliseconds.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tokio::sync::Notify;
    /// # use trunkline::{Queue, Wait};
    /// # async fn example(mails: Queue<String>) -> trunkline::Result<()> {
    /// let asleep = Arc::new(Notify::new());
    /// let sleeps = asleep.clone();
    /// let mut consumer = mails.consumer(Wait::Notify).before_wait(move || sleeps.notify_one());
    /// let waiter = tokio::spawn(async move { consumer.take(1).await });
    /// asleep.notified().await; // instead of a sleep that may be too short
    /// mails.enqueue("hello".to_owned()).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn before_wait(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.add_before_wait(hook);
        self
    }

    /// Calls `hook` for each message after each attempt of [`Consumer::take_with`]: after its
    /// commit, or after its rollback, once the attempt is counted. A failure contains the work's
    /// error ([`Failure::downcast_ref`]). If several hooks are set, all of them are called.
    #[must_use]
    pub fn after_attempt(mut self, hook: impl Fn(Lease, Result<(), &Failure>) + Send + Sync + 'static) -> Self {
        self.hooks.add_after_attempt(hook);
        self
    }

    /// Replaces the hooks.
    pub(crate) fn watched(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Waits, without a limit or for at most [`Dequeue::within`], then takes up to `n` messages
    /// like [`Queue::take`]. With `n` = 0 it returns at once.
    ///
    /// If the connection breaks during a take, its messages may be lost. While time is left, the
    /// consumer then takes again instead of returning an error. By contrast, [`Queue::take`]
    /// reports an unknown outcome.
    ///
    /// For rare messages that must arrive fast, see [`Consumer::receive_direct`].
    pub async fn take(&mut self, request: impl Into<Dequeue>) -> Result<Vec<Message<T>>> {
        Ok(self.until_some(request.into().without_lease()?, DequeueMode::Take).await?.messages)
    }

    /// Waits, without a limit or for at most [`Dequeue::within`], then leases up to `n` messages
    /// like [`Queue::lease`]. With `n` = 0 it returns at once.
    pub async fn lease(&mut self, request: impl Into<Dequeue>) -> Result<Vec<Message<T>>> {
        let request = request.into();
        Ok(self.until_some(request, DequeueMode::Lease(request.lease())).await?.messages)
    }

    /// Acknowledges `done`, waits, and leases up to `n` messages, as [`Queue::ack_and_lease`] does.
    /// If messages are due, the whole call takes one round trip and one commit. If none are due,
    /// the acknowledgement waits for the next message, but for at most 2 ms. Returns the messages,
    /// and the ids of messages whose lease was lost before the acknowledgement. With `n` = 0 it
    /// returns after the acknowledgement. If the wait fails after the acknowledgement, the call
    /// returns no message instead of the error, and the next call meets the error itself.
    ///
    /// # Errors
    /// [`Error::is_outcome_unknown`](crate::Error::is_outcome_unknown): the messages may or may not
    /// be acknowledged.
    pub async fn ack_and_lease<L: Into<Lease>>(
        &mut self,
        done: impl IntoIterator<Item = L>,
        request: impl Into<Dequeue>,
    ) -> Result<(Vec<Message<T>>, Vec<i64>)> {
        let request = request.into();
        let n = request.n();
        let done: Vec<Lease> = done.into_iter().map(Into::into).collect();
        let is_acknowledged = !done.is_empty(); // if the acknowledgement below fails, the call returns its error
        let rings = self.heard();
        let linger = self.linger(rings).filter(|_| n > 0);
        let paused = linger.as_ref().map(Linger::rings);
        let fits = self.queue.shared.fitting(n);
        let (dequeued, lost) = self.queue.ack_and_lease_soon(done, request, true, None, linger).await?;
        self.dequeued(rings, paused.as_ref(), dequeued.is_short_of(fits));
        let messages = self.queue.readable(dequeued);
        if n > 0 && messages.is_empty() {
            return match self.until_some(request, DequeueMode::Lease(request.lease())).await {
                Ok(found) => Ok((found.messages, lost)),
                Err(error) if is_acknowledged => {
                    warn!(queue = self.queue.shared.name(), %error, "messages were acknowledged, but none could be leased");
                    Ok((Vec::new(), lost))
                }
                Err(error) => Err(error),
            };
        }
        if n > 0 {
            self.found();
        }
        Ok((messages, lost))
    }

    /// Waits without a limit, then takes up to `n` messages inside the caller's transaction, as
    /// [`Queue::take_in`] does.
    ///
    /// The call uses the transaction only when a message is due. The transaction stays open while
    /// the call waits. It should therefore hold no locks and, above `read committed`, no snapshot.
    /// With `n` = 0 the call returns at once.
    ///
    /// A request with [`Dequeue::within`] is an error. To limit the wait, await
    /// [`Consumer::ready`] with a timeout, then call [`Queue::take_in`]. A call of this method may
    /// be dropped while it waits. If it is dropped after its take was sent, the transaction can
    /// only be rolled back.
    pub async fn take_in(
        &mut self,
        transaction: &impl InTransaction,
        request: impl Into<Dequeue>,
    ) -> Result<Vec<Message<T>>> {
        let request = request.into().without_limit()?.without_lease()?;
        if request.n() == 0 {
            return Ok(Vec::new());
        }
        let mut held = 0;
        loop {
            self.ready().await?;
            let rings = heard(&mut self.subscription);
            let messages = self.queue.take_in(transaction, request).await?;
            if !messages.is_empty() {
                return Ok(messages);
            }
            held += 1;
            sleep(&mut self.subscription, Pace::held(held), rings).await; // another session has locked the message
        }
    }

    /// Waits until a message is due, and leaves it in the queue. Another consumer may have locked
    /// the message, or may take it first.
    pub async fn ready(&mut self) -> Result<()> {
        self.until_due().await?;
        self.is_in_crowd = false;
        Ok(())
    }
}
