//! The verbs for messages that are in a queue on several servers already: each is about the shard
//! that it is on.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;

use crate::{
    error::{Error, Result},
    queue::{
        handle::Queue as ShardQueue,
        message::{Lease, draft::Due, payload::Payload},
        verbs::{archive::Archived, by_id::Found, dead::DeadLetter, stats::Stats as ShardStats},
    },
    shards::{
        id::{Id, MessageId, Sharded},
        queue::Queue,
    },
};

/// The counts of a queue on several servers: of each, and their sum.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stats {
    /// Of the shards that answered, together.
    pub sum: ShardStats,
    /// Of each shard, in the order of their names; an error where it did not answer. One that was
    /// not reached since this process began is not among them.
    pub parts: Vec<Sharded<Result<ShardStats>>>,
}

impl<T: Payload> Queue<T> {
    /// Does the same on every part of the queue, at the same time. Returns what came out of each,
    /// in the order of the shards' names.
    ///
    /// ```
    /// # use trunkline::{Result, Queue};
    /// # async fn example(mails: Queue<String>) -> Result<()> {
    /// for purged in mails.on_each(|part| async move { part.purge().await }).await {
    ///     println!("{}: {} messages", purged.shard, purged.of?);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn on_each<R, F: Future<Output = R>>(&self, act: impl Fn(ShardQueue<T>) -> F) -> Vec<Sharded<R>> {
        let members = self.members();
        let acts = members.iter().map(|member| {
            let acting = act(member.queue.clone());
            async move { Sharded { shard: member.shard.id, of: acting.await } }
        });
        join_all(acts).await
    }

    /// Acknowledges messages, each on the shard that it came from: they are done and gone. Takes
    /// messages or their leases, of any shards.
    ///
    /// # Errors
    /// Of the shards that are named in it ([`Error::shards`]), each as [`Queue::ack`] says; what
    /// is on the others is acknowledged.
    pub async fn ack<L: Into<Sharded<Lease>>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.ack(leases).await }).await
    }

    /// Acknowledges messages and keeps them in the archive of their shard.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn archive<L: Into<Sharded<Lease>>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.archive(leases).await }).await
    }

    /// Gives messages back after a failure, as [`Queue::retry`]: they stay on their shard.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn retry<L: Into<Sharded<Lease>>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        after: Duration,
        error: impl Into<String>,
    ) -> Result<()> {
        let error = error.into();
        let retry = |queue: ShardQueue<T>, leases: Vec<Lease>| {
            let error = error.clone();
            async move { queue.retry(leases, after, error).await }
        };
        self.settle(leases, retry).await
    }

    /// Makes messages dead letters at once, as [`Queue::bury`].
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn bury<L: Into<Sharded<Lease>>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        reason: impl Into<String>,
    ) -> Result<()> {
        let reason = reason.into();
        let bury = |queue: ShardQueue<T>, leases: Vec<Lease>| {
            let reason = reason.clone();
            async move { queue.bury(leases, reason).await }
        };
        self.settle(leases, bury).await
    }

    /// Makes leases end that long from now, as [`Queue::extend`].
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn extend<L: Into<Sharded<Lease>>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        by: Duration,
    ) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.extend(leases, by).await }).await
    }

    /// Gives messages back unharmed, as [`Queue::release`].
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn release<L: Into<Sharded<Lease>>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.release(leases).await }).await
    }

    /// At the same time on every shard that one of them is on: a shard that is away holds up the
    /// answer, and not the others.
    async fn settle<L: Into<Sharded<Lease>>, F: Future<Output = Result<()>>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        end: impl Fn(ShardQueue<T>, Vec<Lease>) -> F,
    ) -> Result<()> {
        self.by_shard(leases.into_iter().map(Into::into), end).await.map(drop)
    }

    /// Does something on each shard that is named, with what is there.
    async fn by_shard<V, R, F: Future<Output = Result<R>>>(
        &self,
        all: impl IntoIterator<Item = Sharded<V>>,
        act: impl Fn(ShardQueue<T>, Vec<V>) -> F,
    ) -> Result<Vec<Sharded<R>>> {
        let mut parts: BTreeMap<Id, Vec<V>> = BTreeMap::new();
        for Sharded { shard, of } in all {
            parts.entry(shard).or_default().push(of);
        }
        let acts = parts.into_iter().map(|(shard, part)| {
            let acting = self.on(shard).map(|queue| act(queue, part));
            async move { Sharded { shard, of: async { acting?.await }.await } }
        });
        whole(join_all(acts).await)
    }

    /// The counts of the queue now: the sum, and those of each shard.
    pub async fn stats(&self) -> Stats {
        let parts = self.on_each(|queue| async move { queue.stats().await }).await;
        let answered = parts.iter().filter_map(|part| part.of.as_ref().ok());
        let sum = answered.fold(ShardStats::default(), |sum, part| sum.plus(part));
        Stats { sum, parts }
    }

    /// Finds one message by its id, as [`Queue::find`].
    pub async fn find(&self, id: MessageId) -> Result<Option<Sharded<Found<T>>>> {
        let found = named(id.shard, async { self.on(id.shard)?.find(id.of).await }.await)?;
        Ok(found.map(|of| Sharded { shard: id.shard, of }))
    }

    /// Deletes messages by their ids, as [`Queue::cancel`]. Returns the ids of those that are gone.
    ///
    /// # Errors
    /// Of the shards that are named in it; what is on the others is gone.
    pub async fn cancel(&self, ids: &[MessageId]) -> Result<Vec<MessageId>> {
        let cancel = |queue: ShardQueue<T>, ids: Vec<i64>| async move { queue.cancel(&ids).await };
        Ok(flat(self.by_shard(ids.iter().copied(), cancel).await?))
    }

    /// Makes messages that wait due at another time by each server's clock, as [`Queue::reschedule`]. Returns the ids of
    /// those.
    ///
    /// # Errors
    /// As [`Queue::cancel`].
    pub async fn reschedule(&self, ids: &[MessageId], due: impl Into<Due>) -> Result<Vec<MessageId>> {
        let due = due.into();
        let reschedule = |queue: ShardQueue<T>, ids: Vec<i64>| async move { queue.reschedule(&ids, due).await };
        Ok(flat(self.by_shard(ids.iter().copied(), reschedule).await?))
    }

    /// A page of up to `n` dead letters, by shard and id, after one that was seen already (none
    /// for the first page).
    ///
    /// # Errors
    /// As those of [`Queue::dead_letters`]. A shard that is away fails the pages that it is part
    /// of.
    pub async fn dead_letters(&self, after: Option<MessageId>, n: usize) -> Result<Vec<Sharded<DeadLetter<T>>>> {
        let mut letters = Vec::new();
        for Sharded { shard, of: (queue, from) } in self.parts_after(after) {
            if letters.len() < n {
                let page = named(shard, queue.dead_letters(from, n - letters.len()).await)?;
                letters.extend(page.into_iter().map(|of| Sharded { shard, of }));
            }
        }
        Ok(letters)
    }

    /// A page of up to `n` archived messages, in the same way.
    ///
    /// # Errors
    /// As those of [`Queue::dead_letters`].
    pub async fn archived(&self, after: Option<MessageId>, n: usize) -> Result<Vec<Sharded<Archived<T>>>> {
        let mut messages = Vec::new();
        for Sharded { shard, of: (queue, from) } in self.parts_after(after) {
            if messages.len() < n {
                let page = named(shard, queue.archived(from, n - messages.len()).await)?;
                messages.extend(page.into_iter().map(|of| Sharded { shard, of }));
            }
        }
        Ok(messages)
    }

    /// The parts that a page may still have something of, each with the id after which that begins.
    fn parts_after(&self, after: Option<MessageId>) -> impl Iterator<Item = Sharded<(ShardQueue<T>, i64)>> {
        let parts = self.queues().into_iter().filter(move |part| after.is_none_or(|after| after.shard <= part.shard));
        parts.map(move |part| {
            let from = after.filter(|after| after.shard == part.shard).map_or(0, |after| after.of);
            part.map(|queue| (queue, from))
        })
    }

    /// Makes dead letters due again on their shards, as [`Queue::replay`]. Returns how many.
    ///
    /// # Errors
    /// As [`Queue::cancel`].
    pub async fn replay(&self, ids: &[MessageId]) -> Result<usize> {
        let replay = |queue: ShardQueue<T>, ids: Vec<i64>| async move { queue.replay(&ids).await };
        Ok(self.by_shard(ids.iter().copied(), replay).await?.iter().map(|part| part.of).sum())
    }

    /// Deletes dead letters for good, as [`Queue::discard`]. Returns how many.
    ///
    /// # Errors
    /// As [`Queue::cancel`].
    pub async fn discard(&self, ids: &[MessageId]) -> Result<usize> {
        let discard = |queue: ShardQueue<T>, ids: Vec<i64>| async move { queue.discard(&ids).await };
        Ok(self.by_shard(ids.iter().copied(), discard).await?.iter().map(|part| part.of).sum())
    }
}

/// What every shard said, or what those said that erred.
pub(super) fn whole<R>(parts: Vec<Sharded<Result<R>>>) -> Result<Vec<Sharded<R>>> {
    let (mut all, mut failed) = (Vec::with_capacity(parts.len()), Vec::new());
    for Sharded { shard, of } in parts {
        match of {
            Ok(of) => all.push(Sharded { shard, of }),
            Err(error) if error.shards().is_empty() => failed.push((shard.to_string(), error)),
            Err(error) => failed.extend_from_slice(error.shards()),
        }
    }
    if failed.is_empty() { Ok(all) } else { Err(Error::of_shards(failed)) }
}

/// With the shard's name in what it said, unless that is there.
pub(super) fn named<R>(shard: Id, outcome: Result<R>) -> Result<R> {
    outcome.map_err(|error| match error.shards() {
        [] => Error::of_shards(vec![(shard.to_string(), error)]),
        _ => error,
    })
}

fn flat(parts: Vec<Sharded<Vec<i64>>>) -> Vec<MessageId> {
    let ids = |Sharded { shard, of }: Sharded<Vec<i64>>| of.into_iter().map(move |of| Sharded { shard, of });
    parts.into_iter().flat_map(ids).collect()
}
