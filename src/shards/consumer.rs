//! A consumer of all shards. It dequeues at the same time from all shards that may have messages.
//! If there are no messages, it waits for all shards.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, select_all};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    error::{Error, Result},
    postgres::transaction::Transaction,
    queue::{
        batch::dequeues::DequeueMode,
        consumer::{Consumer as ShardConsumer, Work, Worked, at_least_one, offer::Offer},
        message::{Message, dequeue::Dequeue, failure::Failure, payload::Payload},
        wait::{Pace, Wait},
    },
    shards::{
        id::{Id, Sharded},
        queue::{Members, Queue},
        shard::Shard,
        verbs::named,
    },
};

/// The time after which a call that has messages does not wait for unresponsive shards. Messages
/// that they return later are given back.
pub(super) const SILENCE: Duration = Duration::from_secs(1);
/// The maximum time for which a call waits if every shard is down, as for a single server.
const PATIENCE: Duration = Duration::from_secs(30);
/// The length of one step of a wait without a limit.
const FAR: Duration = Duration::from_secs(86_400);

/// A consumer that waits for messages of a queue on several servers; [`Wait`] applies to each
/// server. Create one consumer for each task that consumes.
///
/// Every method waits until at least one message is due on some shard. A call can be dropped while
/// it waits, without losing messages. Due messages are taken from all shards, in equal parts if
/// possible, so a busy shard does not delay another shard's messages. A shard that is down does not
/// delay calls; it is tried again every second.
pub struct Consumer<T> {
    pub(super) queue: Queue<T>,
    pub(super) wait: Wait,
    retry_after: Duration,
    pub(super) seats: Vec<Seat<T>>,
    pub(super) members: watch::Receiver<Members<T>>,
    /// The index of the shard with which the next call begins.
    pub(super) next: usize,
    /// A message that an earlier call received before it was dropped.
    pub(super) handed: Option<Sharded<Offer<T>>>,
}

pub(super) struct Seat<T> {
    pub shard: Arc<Shard>,
    pub consumer: ShardConsumer<T>,
    /// The time for which a call without messages waits for the shard's dequeue. It doubles each
    /// time that the shard needs longer, because the shard may only be slow.
    pub patience: Duration,
    /// True if the shard returned a message whose lease expired when it was last asked. More such
    /// messages may follow.
    pub has_expired: bool,
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, wait, .. } = self;
        out.debug_struct("Consumer").field("queue", queue).field("wait", wait).finish_non_exhaustive()
    }
}

impl<T: Payload> Queue<T> {
    /// Creates a consumer that waits in the given way on every shard; `Wait::default()` is
    /// adaptive.
    #[must_use]
    pub fn consumer(&self, wait: Wait) -> Consumer<T> {
        let (members, retry_after) = (self.shared.members.subscribe(), Duration::from_secs(1));
        Consumer { queue: self.clone(), wait, retry_after, seats: Vec::new(), members, next: 0, handed: None }
    }
}

impl<T: Payload> Consumer<T> {
    /// Returns the queue.
    #[must_use]
    pub fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// Sets the delay after a failure, like [`retry_after`](crate::Consumer::retry_after) of a
    /// consumer on a single server.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: delay, ..self }
    }

    /// Waits, then takes up to `n` messages, at most once, like
    /// [`Queue::take`](crate::Queue::take). With `n` = 0 it returns at once.
    ///
    /// # Errors
    /// The errors of [`Queue::take`](crate::Queue::take). The call also fails if every shard is
    /// down for 30 seconds, or until the request's maximum wait ends.
    pub async fn take(&mut self, request: impl Into<Dequeue>) -> Result<Vec<Sharded<Message<T>>>> {
        self.until_some(request.into().without_lease()?, DequeueMode::Take).await
    }

    /// Waits, then leases up to `n` messages, at least once, like
    /// [`Queue::lease`](crate::Queue::lease). With `n` = 0 it returns at once.
    ///
    /// # Errors
    /// The errors of [`take`](Self::take).
    pub async fn lease(&mut self, request: impl Into<Dequeue>) -> Result<Vec<Sharded<Message<T>>>> {
        let request = request.into();
        self.until_some(request, DequeueMode::Lease(request.lease())).await
    }

    /// Waits until a message is due on some shard, and returns that shard without taking the
    /// message. A transaction on that server ([`Queue::on`]) can then take the message exactly
    /// once. Another consumer may receive it first.
    pub async fn ready(&mut self) -> Result<Id> {
        loop {
            if let Some(at) = self.until_due(None).await? {
                self.next = at + 1;
                return Ok(self.seats[at].shard.id);
            }
        }
    }

    /// Waits without a limit, takes up to `n` messages of one shard in a new transaction on its
    /// server, and runs `work` in it. Then commits the take and the work together, like
    /// [`take_with`](crate::Consumer::take_with) of a consumer on a single server. The writes of
    /// `work` happen exactly once, because they are in the same database as the messages. `work`
    /// receives the name of the shard.
    ///
    /// # Errors
    /// The errors of [`take_with`](crate::Consumer::take_with), with the name of the shard.
    pub async fn take_with<R, E: Into<Failure>>(
        &mut self,
        n: usize,
        mut work: impl for<'a> FnMut(Id, &'a Transaction, Vec<Message<T>>) -> Work<'a, R, E>,
    ) -> Result<R> {
        at_least_one(n)?;
        loop {
            let Some(at) = self.until_due(None).await? else { continue };
            self.next = at + 1;
            let Seat { shard, consumer, .. } = &mut self.seats[at];
            let (id, mut began) = (shard.id, false);
            let once = consumer
                .work_once(n, &mut |transaction, messages| {
                    began = true;
                    work(id, transaction, messages)
                })
                .await;
            match once {
                Ok(Worked::Done(result)) => return Ok(result),
                Ok(Worked::Failed) => {}
                Ok(Worked::Nothing(pause)) => sleep(pause).await,
                Err(error) => {
                    if error.is_closed() {
                        shard.lost(&error);
                    }
                    // Tries another shard only if no work has begun, because then the call has had
                    // no effect. Work that always loses its connection must not run again and
                    // again.
                    if began || !error.is_closed() || error.is_outcome_unknown() {
                        return named(id, Err(error));
                    }
                }
            }
        }
    }

    async fn until_some(&mut self, request: Dequeue, how: DequeueMode) -> Result<Vec<Sharded<Message<T>>>> {
        let (n, until) = (request.n(), request.until());
        let mut held = 0;
        loop {
            self.sit();
            let found = self.ask_all(n, how, until).await?;
            if !found.is_empty() || n == 0 {
                return Ok(found);
            }
            let is_over = until.is_some_and(|until| Instant::now() >= until);
            match if is_over { None } else { self.until_due(until).await? } {
                Some(at) => self.next = at,
                // If no shard can be reached, returns an error, because it is unknown whether a
                // message is due.
                None => return self.all_down().map_or(Ok(Vec::new()), Err),
            }
            // Pauses, because a message was due, but other consumers locked it before this call's
            // dequeue.
            held += 1;
            if held > 1 {
                sleep(Pace::held(held - 1)).await;
            }
        }
    }

    /// Adds a seat (a consumer) for each shard that has joined, and removes the seats of shards
    /// that have left.
    pub(super) fn sit(&mut self) {
        self.queue.shared.tend();
        let members = self.members.borrow_and_update().clone();
        self.seats.retain(|seat| members.iter().any(|member| Arc::ptr_eq(&member.shard, &seat.shard)));
        for member in members.iter() {
            if !self.seats.iter().any(|seat| Arc::ptr_eq(&seat.shard, &member.shard)) {
                let consumer = member.queue.consumer(self.wait).retry_after(self.retry_after);
                self.seats.push(Seat { shard: member.shard.clone(), consumer, patience: SILENCE, has_expired: false });
            }
        }
    }

    /// Returns the seats of all shards that can be reached, beginning with the next one in
    /// rotation.
    pub(super) fn awake(&self) -> Vec<usize> {
        let count = self.seats.len();
        let from = self.next % count;
        (from..count).chain(0..from).filter(|at| !self.seats[*at].shard.is_unreachable()).collect()
    }

    /// Waits until a message is due on a shard. Returns `None` if no message is due before `until`.
    pub(super) async fn until_due(&mut self, until: Option<Instant>) -> Result<Option<usize>> {
        let mut nowhere = None;
        loop {
            self.sit();
            let awake = self.awake();
            let set = self.queue.shared.shards.0.clone();
            let changed = set.changed.notified();
            let now = Instant::now();
            nowhere = if awake.is_empty() { nowhere.or(Some(now)) } else { None };
            let given_up = nowhere.map(|since: Instant| since + PATIENCE);
            let until_then = until.into_iter().chain(given_up).min().unwrap_or(now + FAR);
            let Self { seats, members, .. } = self;
            let mut ready: Vec<BoxFuture<'_, (usize, Result<()>)>> = Vec::with_capacity(awake.len());
            let mut behind: Vec<_> = seats.iter_mut().map(Some).collect();
            for at in awake {
                if let Some(seat) = behind[at].take() {
                    ready.push(Box::pin(async move { (at, seat.consumer.until_due().await) }));
                }
            }
            let first = async {
                match ready.is_empty() {
                    true => std::future::pending().await,
                    false => select_all(ready).await.0,
                }
            };
            let (at, outcome) = tokio::select! {
                first = first => first,
                () = changed => continue,
                _ = members.changed() => continue,
                () = sleep_until(until_then) => {
                    if until.is_some_and(|until| Instant::now() >= until) {
                        return Ok(None);
                    }
                    match self.all_down().filter(|_| given_up.is_some()) {
                        Some(error) => return Err(error),
                        None => continue,
                    }
                }
            };
            match outcome {
                Ok(()) => return Ok(Some(at)),
                Err(error) if error.is_closed() => self.seats[at].shard.lost(&error),
                Err(error) => return named(self.seats[at].shard.id, Err(error)),
            }
        }
    }

    /// Returns an error with each shard's reason if none of them can be reached.
    fn all_down(&self) -> Option<Error> {
        let reason = |seat: &Seat<T>| Some((seat.shard.id.to_string(), seat.shard.why_unreachable()?));
        self.seats.iter().map(reason).collect::<Option<_>>().map(Error::of_shards)
    }
}
