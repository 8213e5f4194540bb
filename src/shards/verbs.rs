//! Verbs for existing messages of a queue on several servers. Each verb runs on the message's
//! shard.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

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
        queue::{Member, Queue},
    },
};

/// The counts of a queue on several servers: one for each shard, and their sum.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stats {
    /// The sum of the counts of the shards that answered.
    pub sum: ShardStats,
    /// The counts of each shard, in the order of the shards' names; an error if the shard did not
    /// answer. A shard that this process has never reached is not included.
    pub parts: Vec<Sharded<Result<ShardStats>>>,
}

impl<T: Payload> Queue<T> {
    /// Runs `act` on every part of the queue, at the same time. Returns the result of each part, in
    /// the order of the shards' names.
    ///
    /// ```
    /// # use trunkline::{Result, shards};
    /// # async fn example(mails: shards::Queue<String>) -> Result<()> {
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

    /// Acknowledges messages, each on its own shard: their work is done, and they are deleted.
    /// Accepts messages or their leases, from any shards.
    ///
    /// # Errors
    /// The error names the shards that failed ([`Error::shards`]), each with the errors of
    /// [`Queue::ack`](crate::Queue::ack). Messages on the other shards are acknowledged.
    pub async fn ack<L: Into<Sharded<Lease>>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.ack(leases).await }).await
    }

    /// Acknowledges messages and keeps them in the archive of their shard.
    ///
    /// # Errors
    /// The errors of [`Queue::ack`].
    pub async fn archive<L: Into<Sharded<Lease>>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.archive(leases).await }).await
    }

    /// Returns messages to the queue after a failure, like [`Queue::retry`](crate::Queue::retry).
    /// They stay on their shard.
    ///
    /// # Errors
    /// The errors of [`Queue::ack`].
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

    /// Makes messages dead letters at once, like [`Queue::bury`](crate::Queue::bury).
    ///
    /// # Errors
    /// The errors of [`Queue::ack`].
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

    /// Extends leases to the time `by` from now, like [`Queue::extend`](crate::Queue::extend).
    ///
    /// # Errors
    /// The errors of [`Queue::ack`].
    pub async fn extend<L: Into<Sharded<Lease>>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        by: Duration,
    ) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.extend(leases, by).await }).await
    }

    /// Returns messages to the queue unprocessed, like [`Queue::release`](crate::Queue::release).
    ///
    /// # Errors
    /// The errors of [`Queue::ack`].
    pub async fn release<L: Into<Sharded<Lease>>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(leases, |queue, leases| async move { queue.release(leases).await }).await
    }

    /// Settles the leases on all of their shards at the same time. A shard that is down delays this
    /// call, but not the settlement on other shards.
    async fn settle<L: Into<Sharded<Lease>>, F: Future<Output = Result<()>>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        end: impl Fn(ShardQueue<T>, Vec<Lease>) -> F,
    ) -> Result<()> {
        self.by_shard(leases.into_iter().map(Into::into), end).await.map(drop)
    }

    /// Runs `act` on each shard for which there are values, with these values.
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

    /// Returns the current counts of the queue: the sum, and the counts of each shard.
    pub async fn stats(&self) -> Stats {
        let members = self.members();
        let counts = members.iter().map(|member| async {
            Sharded { shard: member.shard.id, of: member.shard.read(member.queue.stats()).await }
        });
        let parts = join_all(counts).await;
        let answered = parts.iter().filter_map(|part| part.of.as_ref().ok());
        let sum = answered.fold(ShardStats::default(), |sum, part| sum.plus(part));
        Stats { sum, parts }
    }

    /// Finds one message by its id, like [`Queue::find`](crate::Queue::find).
    pub async fn find(&self, id: MessageId) -> Result<Option<Sharded<Found<T>>>> {
        let find = async || {
            let member = self.member(id.shard)?;
            member.shard.read(member.queue.find(id.of)).await
        };
        let found = named(id.shard, find().await)?;
        Ok(found.map(|of| Sharded { shard: id.shard, of }))
    }

    /// Deletes messages by their ids, like [`Queue::cancel`](crate::Queue::cancel). Returns the ids
    /// of the deleted messages.
    ///
    /// # Errors
    /// The error names the shards that failed. Messages on the other shards are deleted.
    pub async fn cancel(&self, ids: &[MessageId]) -> Result<Vec<MessageId>> {
        let cancel = |queue: ShardQueue<T>, ids: Vec<i64>| async move { queue.cancel(&ids).await };
        Ok(flat(self.by_shard(ids.iter().copied(), cancel).await?))
    }

    /// Changes when waiting messages are due, by each server's clock, like
    /// [`Queue::reschedule`](crate::Queue::reschedule). Returns the ids of the rescheduled
    /// messages.
    ///
    /// # Errors
    /// The errors of [`Queue::cancel`].
    pub async fn reschedule(&self, ids: &[MessageId], due: impl Into<Due>) -> Result<Vec<MessageId>> {
        let due = due.into();
        let reschedule = |queue: ShardQueue<T>, ids: Vec<i64>| async move { queue.reschedule(&ids, due).await };
        Ok(flat(self.by_shard(ids.iter().copied(), reschedule).await?))
    }

    /// Returns a page of up to `n` dead letters, ordered by shard and id, after the given id
    /// (`None` for the first page).
    ///
    /// # Errors
    /// The errors of [`Queue::dead_letters`](crate::Queue::dead_letters). A page that needs a shard
    /// that is down fails.
    pub async fn dead_letters(&self, after: Option<MessageId>, n: usize) -> Result<Vec<Sharded<DeadLetter<T>>>> {
        let mut letters = Vec::new();
        for (member, from) in self.parts_after(after) {
            if letters.len() < n {
                let shard = member.shard.id;
                let reading = member.queue.dead_letters(from, n - letters.len());
                let page = named(shard, member.shard.read(reading).await)?;
                letters.extend(page.into_iter().map(|of| Sharded { shard, of }));
            }
        }
        Ok(letters)
    }

    /// Returns a page of up to `n` archived messages, in the same order as [`Queue::dead_letters`].
    ///
    /// # Errors
    /// The errors of [`Queue::dead_letters`].
    pub async fn archived(&self, after: Option<MessageId>, n: usize) -> Result<Vec<Sharded<Archived<T>>>> {
        let mut messages = Vec::new();
        for (member, from) in self.parts_after(after) {
            if messages.len() < n {
                let shard = member.shard.id;
                let reading = member.queue.archived(from, n - messages.len());
                let page = named(shard, member.shard.read(reading).await)?;
                messages.extend(page.into_iter().map(|of| Sharded { shard, of }));
            }
        }
        Ok(messages)
    }

    /// Returns the parts that a page may still need, each with the id after which the page begins
    /// on that part.
    fn parts_after(&self, after: Option<MessageId>) -> Vec<(Arc<Member<T>>, i64)> {
        let members = self.members();
        let parts = members.iter().filter(|member| after.is_none_or(|after| after.shard <= member.shard.id));
        let from = |id| after.filter(|after| after.shard == id).map_or(0, |after| after.of);
        parts.map(|member| (member.clone(), from(member.shard.id))).collect()
    }

    /// Makes dead letters due again on their shards, like [`Queue::replay`](crate::Queue::replay).
    /// Returns the number of replayed messages.
    ///
    /// # Errors
    /// The errors of [`Queue::cancel`].
    pub async fn replay(&self, ids: &[MessageId]) -> Result<usize> {
        let replay = |queue: ShardQueue<T>, ids: Vec<i64>| async move { queue.replay(&ids).await };
        Ok(self.by_shard(ids.iter().copied(), replay).await?.iter().map(|part| part.of).sum())
    }

    /// Deletes dead letters permanently, like [`Queue::discard`](crate::Queue::discard). Returns
    /// the number of deleted messages.
    ///
    /// # Errors
    /// The errors of [`Queue::cancel`].
    pub async fn discard(&self, ids: &[MessageId]) -> Result<usize> {
        let discard = |queue: ShardQueue<T>, ids: Vec<i64>| async move { queue.discard(&ids).await };
        Ok(self.by_shard(ids.iter().copied(), discard).await?.iter().map(|part| part.of).sum())
    }
}

/// Returns the results of all shards, or the errors of the shards that failed.
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

/// Adds the shard's name to an error that does not have it.
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
