//! A consumer of all shards: asks those that may have something, all at the same time, and waits
//! for all of them where none has.

use std::{
    fmt::{self, Display},
    io,
    sync::Arc,
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{BoxFuture, select_all},
    stream::FuturesUnordered,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout_at},
};
use tracing::warn;

use crate::{
    error::{Error, Kind, Result},
    postgres::transaction::Transaction,
    queue::{
        batch::dequeues::DequeueMode,
        consumer::{Consumer as ShardConsumer, Work, Worked},
        message::{Message, dequeue::Dequeue, payload::Payload},
        wait::{Pace, Wait},
    },
    shards::{
        id::{Id, Sharded},
        queue::{Members, Queue},
        shard::Shard,
        verbs::named,
    },
};

/// How long a call waits for shards that do not answer; what they dequeue later is given back.
pub(super) const SILENCE: Duration = Duration::from_secs(1);
/// How long a call waits in all where no shard answers, as for a single server.
const PATIENCE: Duration = Duration::from_secs(30);
/// A wait without a limit is one of many.
const FAR: Duration = Duration::from_secs(86_400);

/// Waits for messages of a queue on several servers, in one of the ways of [`Wait`] on each. Make
/// one for each task that consumes.
///
/// Every method waits until at least one message is due on some shard. All of them may be dropped
/// while they wait, at no cost. What is due on several is taken from all of them, in equal parts as
/// far as it goes; a shard with much does not keep one with little waiting, and one that is away
/// delays no call: it is asked again every second.
pub struct Consumer<T> {
    pub(super) queue: Queue<T>,
    pub(super) wait: Wait,
    retry_after: Duration,
    pub(super) seats: Vec<Seat<T>>,
    pub(super) members: watch::Receiver<Members<T>>,
    /// The seat that is first next time.
    pub(super) next: usize,
    /// A message that was handed over to a call that was dropped.
    pub(super) handed: Option<Sharded<Message<T>>>,
}

/// The consumer of one shard.
pub(super) struct Seat<T> {
    pub shard: Arc<Shard>,
    pub consumer: ShardConsumer<T>,
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, wait, .. } = self;
        out.debug_struct("Consumer").field("queue", queue).field("wait", wait).finish_non_exhaustive()
    }
}

impl<T: Payload> Queue<T> {
    /// A consumer that waits in the given way on every shard; `Wait::default()` is adaptive.
    #[must_use]
    pub fn consumer(&self, wait: Wait) -> Consumer<T> {
        let (members, retry_after) = (self.shared.members.subscribe(), Duration::from_secs(1));
        Consumer { queue: self.clone(), wait, retry_after, seats: Vec::new(), members, next: 0, handed: None }
    }
}

impl<T: Payload> Consumer<T> {
    /// The queue that it consumes.
    #[must_use]
    pub fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// As [`Consumer::retry_after`].
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: delay, ..self }
    }

    /// Waits, then takes up to `n` messages, at most once: [`Queue::take`](crate::Queue::take).
    /// With `n` = 0 returns at once.
    pub async fn take(&mut self, request: impl Into<Dequeue>) -> Result<Vec<Sharded<Message<T>>>> {
        self.until_some(request.into().without_lease()?, DequeueMode::Take).await
    }

    /// Waits, then leases up to `n` messages, at least once: [`Queue::lease`](crate::Queue::lease).
    /// With `n` = 0 returns at once.
    pub async fn lease(&mut self, request: impl Into<Dequeue>) -> Result<Vec<Sharded<Message<T>>>> {
        let request = request.into();
        self.until_some(request, DequeueMode::Lease(request.lease())).await
    }

    /// Waits until a message is due on some shard, leaves it where it is, and says where that is:
    /// for a transaction on that server, in which [`Queue::on`] takes it exactly once. It
    /// may be in another consumer's hands.
    pub async fn ready(&mut self) -> Result<Id> {
        loop {
            if let Some(at) = self.until_due(None).await? {
                self.next = at + 1;
                return Ok(self.seats[at].shard.id);
            }
        }
    }

    /// Waits, takes up to `n` messages of one shard in a new transaction on its server, runs
    /// `work` in it, and commits both together: [`Consumer::take_with`]. What `work` writes in the
    /// transaction is exactly once, because it is in the same database as the message; `work` is
    /// told which that is.
    ///
    /// # Errors
    /// As those of [`Consumer::take_with`], with the shard's name.
    pub async fn take_with<R, E: Display>(
        &mut self,
        n: usize,
        mut work: impl for<'a> FnMut(Id, &'a Transaction, Vec<Message<T>>) -> Work<'a, R, E>,
    ) -> Result<R> {
        let mut held = 0;
        loop {
            let Some(at) = self.until_due(None).await? else { continue };
            self.next = at + 1;
            let Seat { shard, consumer } = &mut self.seats[at];
            let id = shard.id;
            let worked = consumer.work_once(n, &mut |transaction, messages| work(id, transaction, messages)).await;
            match worked {
                Ok(Worked::Done(result)) => return Ok(result),
                Ok(Worked::Failed) => held = 0,
                Ok(Worked::Nothing) => {
                    held += 1;
                    sleep(Pace::held(held)).await; // it is in someone else's hands
                }
                // Nothing has happened, and another shard may have something.
                Err(error) if error.is_closed() && !error.is_outcome_unknown() => shard.lost(&error),
                Err(error) => return named(id, Err(error)),
            }
        }
    }

    async fn until_some(&mut self, request: Dequeue, how: DequeueMode) -> Result<Vec<Sharded<Message<T>>>> {
        let (n, until) = (request.n(), request.until());
        let mut held = 0;
        loop {
            self.sit();
            let found = self.ask_all(n, how).await?;
            if !found.is_empty() || n == 0 || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(found);
            }
            match self.until_due(until).await? {
                Some(at) => self.next = at,
                None => return Ok(Vec::new()),
            }
            // What is due may be in someone else's hands, again and again.
            held += 1;
            if held > 1 {
                sleep(Pace::held(held - 1)).await;
            }
        }
    }

    /// A seat for each shard that takes part by now, and no other.
    pub(super) fn sit(&mut self) {
        self.queue.shared.tend();
        let members = self.members.borrow_and_update().clone();
        self.seats.retain(|seat| members.iter().any(|member| Arc::ptr_eq(&member.shard, &seat.shard)));
        for member in members.iter() {
            if !self.seats.iter().any(|seat| Arc::ptr_eq(&seat.shard, &member.shard)) {
                let consumer = member.queue.consumer(self.wait).retry_after(self.retry_after);
                self.seats.push(Seat { shard: member.shard.clone(), consumer });
            }
        }
    }

    /// The seats of shards that are there, the one whose turn it is first.
    pub(super) fn awake(&self) -> Vec<usize> {
        let count = self.seats.len();
        let from = self.next % count;
        (from..count).chain(0..from).filter(|at| !self.seats[*at].shard.is_down()).collect()
    }

    /// What is due now, on all shards that are there. Where some have less than their part, the
    /// others are asked for the rest.
    async fn ask_all(&mut self, n: usize, how: DequeueMode) -> Result<Vec<Sharded<Message<T>>>> {
        let mut order = self.awake();
        self.next = order.first().map_or(0, |first| first + 1);
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        while found.len() < n && !order.is_empty() {
            let asked: Vec<(usize, usize)> = order.iter().copied().zip(shares(n - found.len(), order.len())).collect();
            let not_asked = order.split_off(asked.len());
            // Those with more to give; and, where n is less than there are shards, those whose
            // turn it was not.
            order = self.ask(&asked, how, &mut found, &mut failed).await;
            order.extend(not_asked);
        }
        if found.is_empty() && !failed.is_empty() {
            return Err(Error::of_shards(failed));
        }
        for (shard, error) in failed {
            warn!(queue = self.queue.shared.name, shard, %error, "a shard was asked in vain; the others have answered");
        }
        Ok(found)
    }

    /// Asks shards for a number of messages each, at the same time. Returns those that had all.
    async fn ask(
        &mut self,
        asked: &[(usize, usize)],
        how: DequeueMode,
        found: &mut Vec<Sharded<Message<T>>>,
        failed: &mut Vec<(String, Error)>,
    ) -> Vec<usize> {
        let mut silent: Vec<Arc<Shard>> = asked.iter().map(|(at, _)| self.seats[*at].shard.clone()).collect();
        let share = |at: usize| Some(asked.iter().find(|(asked, _)| *asked == at)?.1);
        let seats = self.seats.iter_mut().enumerate().filter_map(|(at, seat)| Some((at, share(at)?, seat)));
        let mut answers: FuturesUnordered<_> = seats
            .map(|(at, n, Seat { shard, consumer })| async move { (at, n, &*shard, consumer.due_now(n, how).await) })
            .collect();
        let (mut full, deadline) = (Vec::new(), Instant::now() + SILENCE);
        while let Ok(Some((at, n, shard, outcome))) = timeout_at(deadline, answers.next()).await {
            silent.retain(|silent| silent.id != shard.id);
            match outcome {
                Ok(messages) => {
                    if messages.len() == n {
                        full.push(at);
                    }
                    found.extend(messages.into_iter().map(|of| Sharded { shard: shard.id, of }));
                }
                Err(error) if error.is_closed() => shard.lost(&error),
                Err(error) => failed.push((shard.id.to_string(), error)),
            }
        }
        for shard in silent {
            let told = io::Error::new(io::ErrorKind::TimedOut, format!("no answer to a dequeue in {SILENCE:?}"));
            shard.lost(&Error::new(Kind::Unreachable(told)));
        }
        full
    }

    /// Waits until a look finds something due on a shard; `None` where that did not happen in
    /// time.
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
                    ready.push(Box::pin(async move { (at, seat.consumer.ready().await) }));
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
                    if given_up.is_some() {
                        return Err(self.nowhere());
                    }
                    continue;
                }
            };
            match outcome {
                Ok(()) => return Ok(Some(at)),
                Err(error) if error.is_closed() => self.seats[at].shard.lost(&error),
                Err(error) => return named(self.seats[at].shard.id, Err(error)),
            }
        }
    }

    /// Of all shards, why they are away.
    fn nowhere(&self) -> Error {
        let part = |seat: &Seat<T>| Some((seat.shard.id.to_string(), seat.shard.why_away()?));
        Error::of_shards(self.seats.iter().filter_map(part).collect())
    }
}

/// `n` messages in equal parts, none of them empty.
fn shares(n: usize, parts: usize) -> impl Iterator<Item = usize> {
    (0..parts.min(n)).map(move |at| n / parts + usize::from(at < n % parts))
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn shares_are_equal_and_are_all_of_it() {
        for (n, parts, expected) in
            [(10, 3, &[4, 3, 3][..]), (3, 3, &[1, 1, 1]), (2, 5, &[1, 1]), (1, 1, &[1]), (0, 2, &[])]
        {
            assert_eq!(shares(n, parts).collect::<Vec<_>>(), expected);
        }
    }
}
