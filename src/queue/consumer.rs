//! A consumer: the three guarantees behind the three ways to wait.

pub(crate) mod hearing;
mod step;
mod stream;
mod work;
pub(crate) mod offer;

use std::time::Duration;

use self::hearing::{heard, heard_and_hears, hears, sleep};
pub(crate) use self::work::Worked;
pub use self::{stream::Messages, work::Work};

use crate::{
    error::Result,
    postgres::{db::Subscription, in_transaction::InTransaction},
    queue::{
        batch::dequeues::DequeueMode,
        handle::Queue,
        message::{Lease, Message, dequeue::Dequeue, failure::Failure, payload::Payload},
        verbs::hand_over::Inbox,
        wait::{Pace, Wait, hooks::Hooks, linger::Linger},
    },
};

/// Waits for messages of one queue. Make one for each task that consumes.
///
/// Every method waits until at least one message is due. All of them may be dropped while they
/// wait, at no cost. While the database is away they wait for it, up to half a minute.
#[derive(Debug)]
pub struct Consumer<T> {
    queue: Queue<T>,
    pace: Pace,
    subscription: Option<Subscription>,
    /// Notifications heard before the last dequeue, if that left nothing due.
    drained: Option<u64>,
    retry_after: Duration,
    /// After work on several messages failed: how many to try one at a time.
    alone: usize,
    /// Where messages are handed over, once [`Consumer::handed_over`] was called.
    place: Option<Inbox>,
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
    /// A consumer that waits in the given way; `Wait::default()` is adaptive.
    #[must_use]
    pub fn consumer(&self, wait: Wait) -> Consumer<T> {
        Consumer {
            queue: self.clone(),
            pace: Pace::new(wait),
            subscription: None,
            drained: None,
            retry_after: Duration::from_secs(1),
            alone: 0,
            place: None,
            hooks: Hooks::default(),
        }
    }
}

impl<T: Payload> Consumer<T> {
    /// The queue that it consumes.
    #[must_use]
    pub fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// How long a message whose work failed in [`Consumer::take_with`] waits for its next attempt,
    /// at most 365 days; 1 s if not set.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = delay.min(Duration::from_secs(365 * 86_400));
        self
    }

    /// Calls the function whenever nothing is due and the consumer is about to wait for a
    /// notification: what is enqueued from then on wakes it. Each further function is called too. A
    /// consumer that polls never calls it.
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
    /// asleep.notified().await; // instead of sleeping for as long as it may take
    /// mails.enqueue("hello".to_owned()).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn before_wait(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.add_before_wait(hook);
        self
    }

    /// Calls the function after each attempt of [`Consumer::take_with`], for each message: when the
    /// work was committed, or rolled back and charged. Each further function is called too.
    #[must_use]
    pub fn after_attempt(mut self, hook: impl Fn(Lease, Result<(), &Failure>) + Send + Sync + 'static) -> Self {
        self.hooks.add_after_attempt(hook);
        self
    }

    /// Tells these.
    pub(crate) fn watched(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Waits, without an end or for at most [`Dequeue::within`], then takes up to `n` messages:
    /// [`Queue::take`]. With `n` = 0 returns at once.
    ///
    /// Where the connection breaks under a take, what it took may be lost, and the consumer takes
    /// again without an error; [`Queue::take`] says that the outcome is unknown.
    ///
    /// Where messages are few and each should be fast, see [`Consumer::handed_over`].
    pub async fn take(&mut self, request: impl Into<Dequeue>) -> Result<Vec<Message<T>>> {
        self.until_some(request.into().without_lease()?, DequeueMode::Take).await
    }

    /// Waits for one message, at most once, and while it waits takes what [`Queue::hand_over`]
    /// hands it inside a notification. Use this where messages are few and should be fast: before
    /// and after each wait this consumer enters and leaves a list of those that wait.
    pub async fn handed_over(&mut self) -> Result<Message<T>> {
        let Self { queue, pace, subscription, place, hooks, .. } = self;
        let place = place.get_or_insert_with(|| Inbox::new(&queue.shared));
        subscription.get_or_insert_with(|| queue.shared.db.subscribe(&queue.shared.channel));
        loop {
            let (rings, was_hearing) = heard_and_hears(subscription);
            // Also a message that an earlier call, dropped while it waited, left behind.
            if let Some(message) = place.leave().await? {
                return Ok(message);
            }
            if let Some(message) = queue.take(1).await?.pop() {
                return Ok(message);
            }
            // Not before both channels are heard: the second to be heard would make it leave the
            // list again at once.
            if was_hearing {
                place.enter().await?;
            }
            let due_in = queue.shared.look().await?;
            let longest = pace.looked(due_in, hears(subscription.as_ref()));
            hooks.before_wait();
            tokio::select! {
                message = place.letter() => if let Some(message) = message? { return Ok(message) },
                () = sleep(subscription, longest, rings) => {}
            }
        }
    }

    /// Waits no more for what is handed over, without a call that would.
    pub(crate) async fn withdraw(&mut self) -> Result<()> {
        match &mut self.place {
            Some(place) => place.withdraw().await,
            None => Ok(()),
        }
    }

    /// Waits, without an end or for at most [`Dequeue::within`], then leases up to `n` messages:
    /// [`Queue::lease`]. With `n` = 0 returns at once.
    pub async fn lease(&mut self, request: impl Into<Dequeue>) -> Result<Vec<Message<T>>> {
        let request = request.into();
        self.until_some(request, DequeueMode::Lease(request.lease())).await
    }

    /// Acknowledges what is done, waits, and leases up to `n` messages: [`Queue::ack_and_lease`].
    /// Where messages are due, all of it is one round trip and one commit; where none is, the
    /// acknowledgement waits for the next one, for 2 ms at most. Returns the messages, and the ids
    /// of those whose lease was lost before they were acknowledged. With `n` = 0 returns once they
    /// are acknowledged.
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
        let rings = self.heard();
        let linger = self.linger(rings).filter(|_| n > 0);
        let paused = linger.as_ref().map(Linger::rings);
        let (messages, lost) = self.queue.ack_and_lease_soon(done, request, true, None, linger).await?;
        self.dequeued(rings, paused.as_ref(), messages.len() < n);
        if n > 0 && messages.is_empty() {
            return Ok((self.lease(request).await?, lost));
        }
        if n > 0 {
            self.found();
        }
        Ok((messages, lost))
    }

    /// Waits, then takes up to `n` messages inside the caller's transaction: [`Queue::take_in`].
    ///
    /// The transaction is not touched before a message is due. It is open meanwhile, so give it
    /// nothing to hold: neither locks nor, above `read committed`, a snapshot. With `n` = 0 returns
    /// at once.
    pub async fn take_in(
        &mut self,
        transaction: &impl InTransaction,
        request: impl Into<Dequeue>,
    ) -> Result<Vec<Message<T>>> {
        let request = request.into().without_wait()?.without_lease()?;
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
            sleep(&mut self.subscription, Pace::held(held), rings).await; // it is in someone else's hands
        }
    }

    /// Waits until a message is due, and leaves it where it is. It may be in another consumer's
    /// hands, or taken by one that is faster.
    pub async fn ready(&mut self) -> Result<()> {
        self.until_due().await
    }
}
