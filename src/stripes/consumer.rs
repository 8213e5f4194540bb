//! A consumer of all stripes: asks those that may have something, all at the same time, and waits
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
        batch::dequeues::Dequeue,
        consumer::{Consumer, Work, Worked},
        message::{Message, payload::Payload},
        wait::{Pace, Wait},
    },
    stripes::{
        id::{StripeId, Striped},
        queue::{Members, StripedQueue},
        stripe::Stripe,
        verbs::named,
    },
};

/// How long a call waits for stripes that do not answer; what they dequeue later is given back.
pub(super) const SILENCE: Duration = Duration::from_secs(1);
/// How long a call waits in all where no stripe answers, as for a single server.
const PATIENCE: Duration = Duration::from_secs(30);
/// A wait without a limit is one of many.
const FAR: Duration = Duration::from_secs(86_400);

/// Waits for messages of a queue on several servers, in one of the ways of [`Wait`] on each. Make
/// one for each task that consumes.
///
/// Every method waits until at least one message is due on some stripe. All of them may be dropped
/// while they wait, at no cost. What is due on several is taken from all of them, in equal parts as
/// far as it goes; a stripe with much does not keep one with little waiting, and one that is away
/// delays no call: it is asked again every second.
pub struct StripedConsumer<T> {
    pub(super) queue: StripedQueue<T>,
    pub(super) wait: Wait,
    retry_after: Duration,
    pub(super) seats: Vec<Seat<T>>,
    pub(super) members: watch::Receiver<Members<T>>,
    /// The seat that is first next time.
    pub(super) next: usize,
    /// A message that was handed over to a call that was dropped.
    pub(super) handed: Option<Striped<Message<T>>>,
}

/// The consumer of one stripe.
pub(super) struct Seat<T> {
    pub stripe: Arc<Stripe>,
    pub consumer: Consumer<T>,
}

impl<T> fmt::Debug for StripedConsumer<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, wait, .. } = self;
        out.debug_struct("StripedConsumer").field("queue", queue).field("wait", wait).finish_non_exhaustive()
    }
}

impl<T: Payload> StripedQueue<T> {
    /// A consumer that waits in the given way on every stripe; `Wait::default()` is adaptive.
    #[must_use]
    pub fn consumer(&self, wait: Wait) -> StripedConsumer<T> {
        let (members, retry_after) = (self.shared.members.subscribe(), Duration::from_secs(1));
        StripedConsumer { queue: self.clone(), wait, retry_after, seats: Vec::new(), members, next: 0, handed: None }
    }
}

impl<T: Payload> StripedConsumer<T> {
    /// The queue that it consumes.
    #[must_use]
    pub fn queue(&self) -> &StripedQueue<T> {
        &self.queue
    }

    /// As [`Consumer::retry_after`].
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: delay, ..self }
    }

    /// Waits, then takes up to `n` messages, at most once: [`Queue::take`](crate::Queue::take).
    /// With `n` = 0 returns at once.
    pub async fn take(&mut self, n: usize) -> Result<Vec<Striped<Message<T>>>> {
        self.until_some(n, None, Dequeue::Take).await
    }

    /// As [`StripedConsumer::take`], but waits for at most `longest`; none if nothing was due by
    /// then.
    pub async fn take_within(&mut self, n: usize, longest: Duration) -> Result<Vec<Striped<Message<T>>>> {
        self.until_some(n, Instant::now().checked_add(longest), Dequeue::Take).await
    }

    /// Waits, then leases up to `n` messages, at least once: [`Queue::lease`](crate::Queue::lease).
    /// With `n` = 0 returns at once.
    pub async fn lease(&mut self, n: usize) -> Result<Vec<Striped<Message<T>>>> {
        self.until_some(n, None, Dequeue::Lease(None)).await
    }

    /// As [`StripedConsumer::lease`], but waits for at most `longest`; none if nothing was due
    /// then.
    pub async fn lease_within(&mut self, n: usize, longest: Duration) -> Result<Vec<Striped<Message<T>>>> {
        self.until_some(n, Instant::now().checked_add(longest), Dequeue::Lease(None)).await
    }

    /// Waits until a message is due on some stripe, leaves it where it is, and says where that is:
    /// for a transaction on that server, in which [`StripedQueue::on`] takes it exactly once. It
    /// may be in another consumer's hands.
    pub async fn ready(&mut self) -> Result<StripeId> {
        loop {
            if let Some(at) = self.until_due(None).await? {
                self.next = at + 1;
                return Ok(self.seats[at].stripe.id);
            }
        }
    }

    /// Waits, takes up to `n` messages of one stripe in a new transaction on its server, runs
    /// `work` in it, and commits both together: [`Consumer::take_with`]. What `work` writes in the
    /// transaction is exactly once, because it is in the same database as the message; `work` is
    /// told which that is.
    ///
    /// # Errors
    /// As those of [`Consumer::take_with`], with the stripe's name.
    pub async fn take_with<R, E: Display>(
        &mut self,
        n: usize,
        mut work: impl for<'a> FnMut(StripeId, &'a Transaction, Vec<Message<T>>) -> Work<'a, R, E>,
    ) -> Result<R> {
        let mut held = 0;
        loop {
            let Some(at) = self.until_due(None).await? else { continue };
            self.next = at + 1;
            let Seat { stripe, consumer } = &mut self.seats[at];
            let id = stripe.id;
            let worked = consumer.work_once(n, &mut |transaction, messages| work(id, transaction, messages)).await;
            match worked {
                Ok(Worked::Done(result)) => return Ok(result),
                Ok(Worked::Failed) => held = 0,
                Ok(Worked::Nothing) => {
                    held += 1;
                    sleep(Pace::held(held)).await; // it is in someone else's hands
                }
                // Nothing has happened, and another stripe may have something.
                Err(error) if error.is_closed() && !error.is_outcome_unknown() => stripe.lost(&error),
                Err(error) => return named(id, Err(error)),
            }
        }
    }

    async fn until_some(&mut self, n: usize, until: Option<Instant>, how: Dequeue) -> Result<Vec<Striped<Message<T>>>> {
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

    /// A seat for each stripe that takes part by now, and no other.
    pub(super) fn sit(&mut self) {
        self.queue.shared.tend();
        let members = self.members.borrow_and_update().clone();
        self.seats.retain(|seat| members.iter().any(|member| Arc::ptr_eq(&member.stripe, &seat.stripe)));
        for member in members.iter() {
            if !self.seats.iter().any(|seat| Arc::ptr_eq(&seat.stripe, &member.stripe)) {
                let consumer = member.queue.consumer(self.wait).retry_after(self.retry_after);
                self.seats.push(Seat { stripe: member.stripe.clone(), consumer });
            }
        }
    }

    /// The seats of stripes that are there, the one whose turn it is first.
    pub(super) fn awake(&self) -> Vec<usize> {
        let count = self.seats.len();
        let from = self.next % count;
        (from..count).chain(0..from).filter(|at| !self.seats[*at].stripe.is_away()).collect()
    }

    /// What is due now, on all stripes that are there. Where some have less than their part, the
    /// others are asked for the rest.
    async fn ask_all(&mut self, n: usize, how: Dequeue) -> Result<Vec<Striped<Message<T>>>> {
        let mut order = self.awake();
        self.next = order.first().map_or(0, |first| first + 1);
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        while found.len() < n && !order.is_empty() {
            let asked: Vec<(usize, usize)> = order.iter().copied().zip(shares(n - found.len(), order.len())).collect();
            let not_asked = order.split_off(asked.len());
            // Those with more to give; and, where n is less than there are stripes, those whose
            // turn it was not.
            order = self.ask(&asked, how, &mut found, &mut failed).await;
            order.extend(not_asked);
        }
        if found.is_empty() && !failed.is_empty() {
            return Err(Error::of_stripes(failed));
        }
        for (stripe, error) in failed {
            warn!(queue = self.queue.shared.name, stripe, %error, "a stripe was asked in vain; the others have answered");
        }
        Ok(found)
    }

    /// Asks stripes for a number of messages each, at the same time. Returns those that had all.
    async fn ask(
        &mut self,
        asked: &[(usize, usize)],
        how: Dequeue,
        found: &mut Vec<Striped<Message<T>>>,
        failed: &mut Vec<(String, Error)>,
    ) -> Vec<usize> {
        let mut silent: Vec<Arc<Stripe>> = asked.iter().map(|(at, _)| self.seats[*at].stripe.clone()).collect();
        let share = |at: usize| Some(asked.iter().find(|(asked, _)| *asked == at)?.1);
        let seats = self.seats.iter_mut().enumerate().filter_map(|(at, seat)| Some((at, share(at)?, seat)));
        let mut answers: FuturesUnordered<_> = seats
            .map(|(at, n, Seat { stripe, consumer })| async move { (at, n, &*stripe, consumer.due_now(n, how).await) })
            .collect();
        let (mut full, deadline) = (Vec::new(), Instant::now() + SILENCE);
        while let Ok(Some((at, n, stripe, outcome))) = timeout_at(deadline, answers.next()).await {
            silent.retain(|silent| silent.id != stripe.id);
            match outcome {
                Ok(messages) => {
                    if messages.len() == n {
                        full.push(at);
                    }
                    found.extend(messages.into_iter().map(|of| Striped { stripe: stripe.id, of }));
                }
                Err(error) if error.is_closed() => stripe.lost(&error),
                Err(error) => failed.push((stripe.id.to_string(), error)),
            }
        }
        for stripe in silent {
            let told = io::Error::new(io::ErrorKind::TimedOut, format!("no answer to a dequeue in {SILENCE:?}"));
            stripe.lost(&Error::new(Kind::Unreachable(told)));
        }
        full
    }

    /// Waits until a look finds something due on a stripe; `None` where that did not happen in
    /// time.
    pub(super) async fn until_due(&mut self, until: Option<Instant>) -> Result<Option<usize>> {
        let mut nowhere = None;
        loop {
            self.sit();
            let awake = self.awake();
            let set = self.queue.shared.stripes.0.clone();
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
                Err(error) if error.is_closed() => self.seats[at].stripe.lost(&error),
                Err(error) => return named(self.seats[at].stripe.id, Err(error)),
            }
        }
    }

    /// Of all stripes, why they are away.
    fn nowhere(&self) -> Error {
        let part = |seat: &Seat<T>| Some((seat.stripe.id.to_string(), seat.stripe.why_away()?));
        Error::of_stripes(self.seats.iter().filter_map(part).collect())
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
