//! The verbs for messages that are in a queue on several servers already: each is about the stripe
//! that it is on.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use futures_util::future::join_all;

use crate::{
    error::{Error, Result},
    queue::{
        handle::Queue,
        message::{Lease, payload::Payload},
        verbs::{archive::Archived, by_id::Found, dead::DeadLetter, stats::Stats},
    },
    stripes::{
        id::{StripeId, Striped, StripedId},
        queue::StripedQueue,
    },
};

/// The counts of a queue on several servers: of each, and their sum.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StripedStats {
    /// Of the stripes that answered, together.
    pub sum: Stats,
    /// Of each stripe, in the order of their names; an error where it did not answer. One that was
    /// not reached since this process began is not among them.
    pub parts: Vec<Striped<Result<Stats>>>,
}

impl<T: Payload> StripedQueue<T> {
    /// Does the same on every part of the queue, at the same time. Returns what came out of each,
    /// in the order of the stripes' names.
    ///
    /// ```
    /// # use trunkline::{Result, StripedQueue};
    /// # async fn example(mails: StripedQueue<String>) -> Result<()> {
    /// for purged in mails.on_each(|part| async move { part.purge().await }).await {
    ///     println!("{}: {} messages", purged.stripe, purged.of?);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn on_each<R, F: Future<Output = R>>(&self, act: impl Fn(Queue<T>) -> F) -> Vec<Striped<R>> {
        let members = self.members();
        let acts = members.iter().map(|member| {
            let acting = act(member.queue.clone());
            async move { Striped { stripe: member.stripe.id, of: acting.await } }
        });
        join_all(acts).await
    }

    /// Acknowledges messages, each on the stripe that it came from: they are done and gone. Takes
    /// messages or their leases, of any stripes.
    ///
    /// # Errors
    /// Of the stripes that are named in it ([`Error::stripes`]), each as [`Queue::ack`] says; what
    /// is on the others is acknowledged.
    pub async fn ack<L: Into<Striped<Lease>>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.ack(leases).await }).await
    }

    /// Acknowledges messages and keeps them in the archive of their stripe.
    ///
    /// # Errors
    /// As [`StripedQueue::ack`].
    pub async fn archive<L: Into<Striped<Lease>>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.archive(leases).await }).await
    }

    /// Gives messages back after a failure, as [`Queue::retry`]: they stay on their stripe.
    ///
    /// # Errors
    /// As [`StripedQueue::ack`].
    pub async fn retry<L: Into<Striped<Lease>>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        after: Duration,
        error: impl Into<String>,
    ) -> Result<()> {
        let error = error.into();
        let retry = |queue: Queue<T>, leases: Vec<Lease>| {
            let error = error.clone();
            async move { queue.retry(leases, after, error).await }
        };
        self.settle(leases, retry).await
    }

    /// Makes messages dead letters at once, as [`Queue::bury`].
    ///
    /// # Errors
    /// As [`StripedQueue::ack`].
    pub async fn bury<L: Into<Striped<Lease>>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        reason: impl Into<String>,
    ) -> Result<()> {
        let reason = reason.into();
        let bury = |queue: Queue<T>, leases: Vec<Lease>| {
            let reason = reason.clone();
            async move { queue.bury(leases, reason).await }
        };
        self.settle(leases, bury).await
    }

    /// Makes leases end that long from now, as [`Queue::extend`].
    ///
    /// # Errors
    /// As [`StripedQueue::ack`].
    pub async fn extend<L: Into<Striped<Lease>>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        by: Duration,
    ) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.extend(leases, by).await }).await
    }

    /// Gives messages back unharmed, as [`Queue::release`].
    ///
    /// # Errors
    /// As [`StripedQueue::ack`].
    pub async fn release<L: Into<Striped<Lease>>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.release(leases).await }).await
    }

    /// At the same time on every stripe that one of them is on: a stripe that is away holds up the
    /// answer, and not the others.
    async fn settle<L: Into<Striped<Lease>>, F: Future<Output = Result<()>>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        end: impl Fn(Queue<T>, Vec<Lease>) -> F,
    ) -> Result<()> {
        self.by_stripe(leases.into_iter().map(Into::into), end).await.map(drop)
    }

    /// Does something on each stripe that is named, with what is there.
    async fn by_stripe<V, R, F: Future<Output = Result<R>>>(
        &self,
        all: impl IntoIterator<Item = Striped<V>>,
        act: impl Fn(Queue<T>, Vec<V>) -> F,
    ) -> Result<Vec<Striped<R>>> {
        let mut parts: BTreeMap<StripeId, Vec<V>> = BTreeMap::new();
        for Striped { stripe, of } in all {
            parts.entry(stripe).or_default().push(of);
        }
        let acts = parts.into_iter().map(|(stripe, part)| {
            let acting = self.on(stripe).map(|queue| act(queue, part));
            async move { Striped { stripe, of: async { acting?.await }.await } }
        });
        whole(join_all(acts).await)
    }

    /// The counts of the queue now: the sum, and those of each stripe.
    pub async fn stats(&self) -> StripedStats {
        let parts = self.on_each(|queue| async move { queue.stats().await }).await;
        let answered = parts.iter().filter_map(|part| part.of.as_ref().ok());
        let sum = answered.fold(Stats::default(), |sum, part| sum.plus(part));
        StripedStats { sum, parts }
    }

    /// Finds one message by its id, as [`Queue::find`].
    pub async fn find(&self, id: StripedId) -> Result<Option<Striped<Found<T>>>> {
        let found = named(id.stripe, async { self.on(id.stripe)?.find(id.of).await }.await)?;
        Ok(found.map(|of| Striped { stripe: id.stripe, of }))
    }

    /// Deletes messages by their ids, as [`Queue::cancel`]. Returns the ids of those that are gone.
    ///
    /// # Errors
    /// Of the stripes that are named in it; what is on the others is gone.
    pub async fn cancel(&self, ids: &[StripedId]) -> Result<Vec<StripedId>> {
        let cancel = |queue: Queue<T>, ids: Vec<i64>| async move { queue.cancel(&ids).await };
        Ok(flat(self.by_stripe(ids.iter().copied(), cancel).await?))
    }

    /// Makes messages that wait due after that time, as [`Queue::reschedule`]. Returns the ids of
    /// those.
    ///
    /// # Errors
    /// As [`StripedQueue::cancel`].
    pub async fn reschedule(&self, ids: &[StripedId], after: Duration) -> Result<Vec<StripedId>> {
        let reschedule = |queue: Queue<T>, ids: Vec<i64>| async move { queue.reschedule(&ids, after).await };
        Ok(flat(self.by_stripe(ids.iter().copied(), reschedule).await?))
    }

    /// As [`StripedQueue::reschedule`], at a time by each server's clock.
    ///
    /// # Errors
    /// As [`StripedQueue::cancel`].
    pub async fn reschedule_at(&self, ids: &[StripedId], at: SystemTime) -> Result<Vec<StripedId>> {
        let reschedule = |queue: Queue<T>, ids: Vec<i64>| async move { queue.reschedule_at(&ids, at).await };
        Ok(flat(self.by_stripe(ids.iter().copied(), reschedule).await?))
    }

    /// A page of up to `n` dead letters, by stripe and id, after one that was seen already (none
    /// for the first page).
    ///
    /// # Errors
    /// As those of [`Queue::dead_letters`]. A stripe that is away fails the pages that it is part
    /// of.
    pub async fn dead_letters(&self, after: Option<StripedId>, n: usize) -> Result<Vec<Striped<DeadLetter<T>>>> {
        let mut letters = Vec::new();
        for Striped { stripe, of: (queue, from) } in self.parts_after(after) {
            if letters.len() < n {
                let page = named(stripe, queue.dead_letters(from, n - letters.len()).await)?;
                letters.extend(page.into_iter().map(|of| Striped { stripe, of }));
            }
        }
        Ok(letters)
    }

    /// A page of up to `n` archived messages, in the same way.
    ///
    /// # Errors
    /// As those of [`StripedQueue::dead_letters`].
    pub async fn archived(&self, after: Option<StripedId>, n: usize) -> Result<Vec<Striped<Archived<T>>>> {
        let mut messages = Vec::new();
        for Striped { stripe, of: (queue, from) } in self.parts_after(after) {
            if messages.len() < n {
                let page = named(stripe, queue.archived(from, n - messages.len()).await)?;
                messages.extend(page.into_iter().map(|of| Striped { stripe, of }));
            }
        }
        Ok(messages)
    }

    /// The parts that a page may still have something of, each with the id after which that begins.
    fn parts_after(&self, after: Option<StripedId>) -> impl Iterator<Item = Striped<(Queue<T>, i64)>> {
        let parts = self.parts().into_iter().filter(move |part| after.is_none_or(|after| after.stripe <= part.stripe));
        parts.map(move |part| {
            let from = after.filter(|after| after.stripe == part.stripe).map_or(0, |after| after.of);
            part.map(|queue| (queue, from))
        })
    }

    /// Makes dead letters due again on their stripes, as [`Queue::replay`]. Returns how many.
    ///
    /// # Errors
    /// As [`StripedQueue::cancel`].
    pub async fn replay(&self, ids: &[StripedId]) -> Result<usize> {
        let replay = |queue: Queue<T>, ids: Vec<i64>| async move { queue.replay(&ids).await };
        Ok(self.by_stripe(ids.iter().copied(), replay).await?.iter().map(|part| part.of).sum())
    }

    /// Deletes dead letters for good, as [`Queue::discard`]. Returns how many.
    ///
    /// # Errors
    /// As [`StripedQueue::cancel`].
    pub async fn discard(&self, ids: &[StripedId]) -> Result<usize> {
        let discard = |queue: Queue<T>, ids: Vec<i64>| async move { queue.discard(&ids).await };
        Ok(self.by_stripe(ids.iter().copied(), discard).await?.iter().map(|part| part.of).sum())
    }
}

/// What every stripe said, or what those said that erred.
pub(super) fn whole<R>(parts: Vec<Striped<Result<R>>>) -> Result<Vec<Striped<R>>> {
    let (mut all, mut failed) = (Vec::with_capacity(parts.len()), Vec::new());
    for Striped { stripe, of } in parts {
        match of {
            Ok(of) => all.push(Striped { stripe, of }),
            Err(error) if error.stripes().is_empty() => failed.push((stripe.to_string(), error)),
            Err(error) => failed.extend_from_slice(error.stripes()),
        }
    }
    if failed.is_empty() { Ok(all) } else { Err(Error::of_stripes(failed)) }
}

/// With the stripe's name in what it said, unless that is there.
pub(super) fn named<R>(stripe: StripeId, outcome: Result<R>) -> Result<R> {
    outcome.map_err(|error| match error.stripes() {
        [] => Error::of_stripes(vec![(stripe.to_string(), error)]),
        _ => error,
    })
}

fn flat(parts: Vec<Striped<Vec<i64>>>) -> Vec<StripedId> {
    let ids = |Striped { stripe, of }: Striped<Vec<i64>>| of.into_iter().map(move |of| Striped { stripe, of });
    parts.into_iter().flat_map(ids).collect()
}
