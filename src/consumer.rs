//! A consumer: the three guarantees behind the three ways to wait.

use std::{
    fmt::Display,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use tracing::{debug, warn};

use crate::{
    db::Subscription,
    error::Result,
    hand_over::Place,
    in_transaction::InTransaction,
    message::{Lease, Message},
    payload::Payload,
    queue::Queue,
    settle::{Ending, as_text},
    transaction::Transaction,
    wait::{Pace, SAFETY_POLL, Step, Wait},
};

/// Waits for messages of one queue. Make one for each task that consumes.
///
/// Every method waits until at least one message is due. All of them may be dropped while they wait, at no cost.
/// While the database is away they wait for it, up to half a minute.
#[derive(Debug)]
pub struct Consumer<T> {
    queue: Queue<T>,
    pace: Pace,
    ear: Option<Subscription>,
    safety: Instant,
    retry_after: Duration,
    /// After work on several messages failed: how many to try one at a time.
    alone: usize,
    /// Where messages are handed over, once [`Consumer::handed_over`] was called.
    place: Option<Place>,
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            place.abandon();
        }
    }
}

/// What [`Consumer::exactly_once`] runs: the work, in a transaction in which the messages are already taken.
pub type Work<'a, R, E> = BoxFuture<'a, Result<R, E>>;

impl<T: Payload> Queue<T> {
    /// A consumer that waits in the given way; `Wait::default()` is adaptive.
    #[must_use]
    pub fn consumer(&self, wait: Wait) -> Consumer<T> {
        Consumer {
            queue: self.clone(),
            pace: Pace::new(wait),
            ear: None,
            safety: Instant::now() + SAFETY_POLL,
            retry_after: Duration::from_secs(1),
            alone: 0,
            place: None,
        }
    }
}

impl<T: Payload> Consumer<T> {
    /// The queue that it consumes.
    #[must_use]
    pub fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// How long a message whose work failed in [`Consumer::exactly_once`] waits for its next attempt; 1 s if not set.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = delay;
        self
    }

    /// Waits, then takes up to `n` messages: [`Queue::at_most_once`]. With `n` = 0 returns at once.
    pub async fn at_most_once(&mut self, n: usize) -> Result<Vec<Message<T>>> {
        let queue = self.queue.clone();
        self.until_some(n, || queue.at_most_once(n)).await
    }

    /// Waits for one message, at most once, and while it waits takes what [`Queue::hand_over`] hands it inside a
    /// notification. Use this where messages are few and should be fast: before and after each wait this consumer
    /// enters and leaves a list of those that wait.
    pub async fn handed_over(&mut self) -> Result<Message<T>> {
        let Self { queue, pace, ear, place, .. } = self;
        let place = place.get_or_insert_with(|| Place::new(&queue.shared));
        loop {
            let rings = heard(ear);
            // Also what an earlier call, dropped while it waited, left behind.
            if let Some(message) = place.leave().await? {
                return Ok(message);
            }
            if let Some(message) = queue.at_most_once(1).await?.pop() {
                return Ok(message);
            }
            if ear.is_none() {
                *ear = Some(queue.shared.db.subscribe(&queue.shared.channel));
                continue;
            }
            place.enter().await?;
            let due_in = queue.shared.look().await?;
            let longest = pace.looked(due_in, hears(ear.as_ref()));
            tokio::select! {
                message = place.letter() => if let Some(message) = message? { return Ok(message) },
                () = sleep(ear, longest, rings) => {}
            }
        }
    }

    /// Waits, then leases up to `n` messages: [`Queue::at_least_once`]. With `n` = 0 returns at once.
    pub async fn at_least_once(&mut self, n: usize) -> Result<Vec<Message<T>>> {
        let queue = self.queue.clone();
        self.until_some(n, || queue.at_least_once(n)).await
    }

    /// Acknowledges what is done, waits, and leases up to `n` messages: [`Queue::ack_and_lease`]. Where messages are due, all of it
    /// is one round trip and one commit. Returns the messages, and the ids of those whose lease was lost before they were
    /// acknowledged. With `n` = 0 returns once they are acknowledged.
    ///
    /// # Errors
    /// [`Error::is_outcome_unknown`](crate::Error::is_outcome_unknown): the messages may or may not be acknowledged.
    pub async fn ack_and_lease<L: Into<Lease>>(
        &mut self,
        done: impl IntoIterator<Item = L>,
        n: usize,
    ) -> Result<(Vec<Message<T>>, Vec<i64>)> {
        let (messages, lost) = self.queue.ack_and_lease(done, n, None).await?;
        if n > 0 && messages.is_empty() {
            return Ok((self.at_least_once(n).await?, lost));
        }
        if n > 0 {
            self.found();
        }
        Ok((messages, lost))
    }

    /// Waits, then takes up to `n` messages inside the caller's transaction: [`Queue::exactly_once`].
    ///
    /// The transaction is not touched before a message is due. It is open meanwhile, so give it nothing to hold:
    /// neither locks nor, above `read committed`, a snapshot. With `n` = 0 returns at once.
    pub async fn exactly_once_in(&mut self, transaction: &impl InTransaction, n: usize) -> Result<Vec<Message<T>>> {
        if n == 0 {
            return Ok(Vec::new());
        }
        let mut held = 0;
        loop {
            self.ready().await?;
            let rings = heard(&mut self.ear);
            let messages = self.queue.exactly_once(transaction, n).await?;
            if !messages.is_empty() {
                return Ok(messages);
            }
            held += 1;
            sleep(&mut self.ear, Pace::held(held), rings).await; // it is in someone else's hands
        }
    }

    /// Waits, takes up to `n` messages in a new transaction, runs `work` in it, and commits both together.
    ///
    /// If the work fails, the transaction is rolled back. A failure of several messages is tried again one message at a
    /// time, so that only those that fail are charged an attempt: they are due again after
    /// [`Consumer::retry_after`], or dead letters after their last attempt. Then the next messages are waited for; the
    /// method returns with the first work that succeeded and committed. The transaction runs at `read committed`.
    ///
    /// # Errors
    /// The database's, not the work's. [`is_outcome_unknown`](crate::Error::is_outcome_unknown): the connection broke during the commit.
    pub async fn exactly_once<R, E: Display>(
        &mut self,
        n: usize,
        mut work: impl for<'a> FnMut(&'a Transaction, Vec<Message<T>>) -> Work<'a, R, E>,
    ) -> Result<R> {
        let mut held = 0;
        loop {
            self.ready().await?;
            let rings = heard(&mut self.ear);
            let n_now = if self.alone > 0 { 1 } else { n.max(1) };
            let outcome = self.attempt(n_now, &mut work).await?;
            match outcome {
                Attempt::Nothing => {
                    held += 1;
                    sleep(&mut self.ear, Pace::held(held), rings).await; // it is in someone else's hands
                    continue;
                }
                Attempt::Failed(leases, reason) if leases.len() > 1 => {
                    debug!(queue = self.queue.shared.name(), %reason, "work failed; one message at a time now");
                    self.alone = leases.len();
                }
                Attempt::Failed(leases, reason) => {
                    warn!(queue = self.queue.shared.name(), id = leases[0].id, %reason, "work failed");
                    self.alone = self.alone.saturating_sub(1);
                    self.charge(&leases, reason).await?;
                }
                Attempt::Done(result) => {
                    self.alone = self.alone.saturating_sub(1);
                    return Ok(result);
                }
            }
            held = 0;
        }
    }

    async fn attempt<R, E: Display>(
        &self,
        n: usize,
        work: &mut impl for<'a> FnMut(&'a Transaction, Vec<Message<T>>) -> Work<'a, R, E>,
    ) -> Result<Attempt<R>> {
        let transaction = self.queue.shared.db.begin().await?;
        let messages = self.queue.exactly_once(&transaction, n).await?;
        if messages.is_empty() {
            transaction.rollback().await?;
            return Ok(Attempt::Nothing);
        }
        let leases: Vec<Lease> = messages.iter().map(Message::lease).collect();
        let reason = match work(&transaction, messages).await {
            Ok(result) => match transaction.commit().await {
                Ok(()) => return Ok(Attempt::Done(result)),
                Err(error) if error.is_outcome_unknown() => return Err(error),
                // A statement whose error was passed over, a deferred constraint, a conflict.
                Err(error) => error.to_string(),
            },
            Err(reason) => {
                let reason = reason.to_string();
                transaction.rollback().await?;
                reason
            }
        };
        Ok(Attempt::Failed(leases, reason))
    }

    async fn charge(&self, leases: &[Lease], reason: String) -> Result<()> {
        let ending = Ending::Charge(self.retry_after.as_secs_f64(), as_text(reason));
        match self.queue.settle(ending, leases).await {
            Err(error) if error.is_lease_lost() => Ok(()), // someone else has it already, and settles it
            outcome => outcome,
        }
    }

    /// Waits until a message is due, and leaves it where it is. It may be in another consumer's hands, or taken by one
    /// that is faster.
    pub async fn ready(&mut self) -> Result<()> {
        let queue = self.queue.clone();
        self.until_some(1, || async {
            let due_in = queue.shared.look().await?;
            Ok(due_in.filter(|due_in| *due_in <= 0.0).into_iter().collect::<Vec<_>>())
        })
        .await
        .map(drop)
    }

    async fn until_some<R, F: Future<Output = Result<Vec<R>>>>(
        &mut self,
        n: usize,
        mut dequeue: impl FnMut() -> F,
    ) -> Result<Vec<R>> {
        loop {
            let rings = self.heard();
            match dequeue().await {
                Ok(found) if !found.is_empty() || n == 0 => {
                    self.found();
                    return Ok(found);
                }
                Ok(_) => self.idle(rings).await?,
                // Leasing or taking again is within the contract; the door waits for the database.
                Err(error) if error.is_outcome_unknown() => {
                    warn!(queue = self.queue.shared.name(), %error, "the connection broke; dequeueing again");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What was heard until now. Ask before a dequeue, for [`Consumer::idle`] after it.
    pub(crate) fn heard(&mut self) -> Option<u64> {
        heard(&mut self.ear)
    }

    /// A dequeue found something.
    pub(crate) fn found(&mut self) {
        if self.pace.found(Instant::now()) {
            self.ear = None;
        }
    }

    /// One step of waiting after an empty dequeue that began when `rings` had been heard. Takes nothing, so it may be
    /// dropped at any time.
    pub(crate) async fn idle(&mut self, rings: Option<u64>) -> Result<()> {
        match self.pace.nothing(self.ear.is_some()) {
            // Whoever listens is woken from the pause, too.
            Step::Pause(pause) => sleep(&mut self.ear, pause, rings).await,
            Step::Listen => self.ear = Some(self.queue.shared.db.subscribe(&self.queue.shared.channel)),
            Step::Look => {
                let now = Instant::now();
                if now >= self.safety {
                    self.safety = now + SAFETY_POLL;
                    self.queue.shared.sweep().await?;
                }
                let due_in = self.queue.shared.look().await?;
                let longest = self.pace.looked(due_in, hears(self.ear.as_ref()));
                sleep(&mut self.ear, longest, rings).await;
            }
        }
        Ok(())
    }
}

/// What was heard until now.
fn heard(ear: &mut Option<Subscription>) -> Option<u64> {
    ear.as_mut().map(|ear| ear.heard.borrow_and_update().rings)
}

/// Whether notifications arrive at present.
fn hears(ear: Option<&Subscription>) -> bool {
    ear.is_some_and(|ear| ear.heard.borrow().hearing)
}

/// Until the time is up, or something is heard that was not among `rings`.
async fn sleep(ear: &mut Option<Subscription>, longest: Duration, rings: Option<u64>) {
    match ear {
        Some(ear) if Some(ear.heard.borrow().rings) == rings => {
            let _ = tokio::time::timeout(longest, ear.heard.changed()).await; // either will do
        }
        Some(_) => {}
        None => tokio::time::sleep(longest).await,
    }
}

enum Attempt<R> {
    Done(R),
    Nothing,
    Failed(Vec<Lease>, String),
}
