//! Enqueues on one of several servers. If it is certain that the first server has stored nothing,
//! uses the next server.

use std::{
    ops::ControlFlow,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tracing::debug;

use crate::{
    error::{Error, Result},
    queue::message::{
        draft::{Draft, IntoDraft},
        payload::Payload,
        unique::Enqueued,
    },
    shards::{
        health::Fitness,
        id::{Id, Sharded},
        queue::{Member, Queue},
        routing::{Known, Routing, choose},
    },
};

/// The maximum time for which a call waits if every shard is down, as for a single server.
const PATIENCE: Duration = Duration::from_secs(30);

impl<T: Payload> Queue<T> {
    /// Enqueues a message on one of the shards, which [`Queue::routing`] chooses. Returns the
    /// message's id once it is committed on that shard. Concurrent calls share rows and commits on
    /// each shard.
    ///
    /// A shard that is down is skipped. If a server could not be reached, or cannot store the
    /// message because of, for example, a full disk, the message goes to another shard.
    /// No call waits for a server that is known to be down; a separate task tries that server every
    /// second. If all servers are down, the call waits for at most half a minute.
    ///
    /// A message with a unique key goes to the shard of the key ([`Routing::by_key`]), so that the
    /// key is unique across all shards. While that shard is down, the message goes to another
    /// shard, so two messages with the key can exist.
    ///
    /// # Errors
    /// The errors of [`Queue::enqueue`](crate::Queue::enqueue), with the name of the shard
    /// ([`Error::shards`]). [`Error::is_outcome_unknown`] if the connection broke before the reply.
    /// The message may or may not be on that shard, so it is not sent to another shard.
    pub async fn enqueue(&self, message: impl IntoDraft<T> + Send + Sync) -> Result<Sharded<Enqueued>> {
        let mut tries = Tries::of(self);
        if let Some(unique) = message.unique() {
            tries.routing = Routing::by_key(&*unique.key);
        }
        loop {
            let member = tries.next().await?;
            let waiting = member.shard.health.begin(Instant::now());
            let outcome = member.queue.enqueue(Draft::<()>::lent(&message)).await;
            drop(waiting);
            if let ControlFlow::Break(outcome) = tries.tried(&member, outcome) {
                return outcome;
            }
        }
    }

    /// Enqueues all messages on one shard in one transaction, and returns their ids in the same
    /// order. To distribute messages over the shards, split them into several concurrent calls.
    ///
    /// # Errors
    /// The errors of [`Queue::enqueue`]. One invalid payload fails the whole call, and nothing is
    /// stored. Messages with unique keys must be enqueued one by one, because each goes to the
    /// shard of its key.
    pub async fn enqueue_many<M: IntoDraft<T> + Send + Sync>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<Sharded<Enqueued>>> {
        let messages: Vec<M> = messages.into_iter().collect();
        let mut tries = Tries::of(self);
        match (messages.iter().find_map(|message| message.unique()), messages.len()) {
            (None, _) => {}
            (Some(unique), 1) => tries.routing = Routing::by_key(&*unique.key),
            (Some(_), _) => {
                return Err(Error::invalid(
                    "each message with a unique key goes to its key's shard: enqueue them in separate calls, concurrently if you like",
                ));
            }
        }
        loop {
            let member = tries.next().await?;
            let waiting = member.shard.health.begin(Instant::now());
            let outcome = member.queue.enqueue_many(messages.iter().map(|message| Draft::<()>::lent(message))).await;
            drop(waiting);
            if let ControlFlow::Break(outcome) = tries.tried(&member, outcome) {
                return outcome.map(|all| all.iter().map(|of| Sharded { shard: all.shard, of: *of }).collect());
            }
        }
    }
}

/// The tries of one call.
pub(super) struct Tries<'a, T> {
    queue: &'a Queue<T>,
    turn: usize,
    pub(super) routing: Routing,
    began: Option<Instant>,
    /// The errors of the shards that have been tried since the call last waited.
    failed: Vec<(Id, Error)>,
}

impl<'a, T: Payload> Tries<'a, T> {
    pub fn of(queue: &'a Queue<T>) -> Self {
        queue.shared.tend();
        let turn = queue.shared.turn.fetch_add(1, Ordering::Relaxed);
        Self { queue, turn, routing: queue.routing, began: None, failed: Vec::new() }
    }

    /// Returns the shard to try next. Waits if no shard can be tried.
    pub async fn next(&mut self) -> Result<Arc<Member<T>>> {
        loop {
            let set = &self.queue.shared.shards.0;
            let changed = set.changed.notified(); // reports changes from this point on
            let members = self.queue.members();
            let now = Instant::now();
            let known: Vec<Known> = members
                .iter()
                .map(|member| &member.shard)
                .map(|shard| (shard.id, shard.fitness(now), shard.health.load()))
                .map(|(id, fitness, load)| match self.failed.iter().any(|(tried, _)| *tried == id) {
                    // treats a shard that failed as drained, so that this call does not try it
                    // again
                    true => Known { id, fitness: Fitness::Drained, load },
                    false => Known { id, fitness, load },
                })
                .collect();
            if let Some(at) = choose(&known, self.routing, self.turn) {
                return Ok(members[at].clone());
            }
            let waited = self.began.get_or_insert(now).elapsed();
            let may_be_back = members.iter().any(|member| member.shard.health.is_down());
            if !may_be_back || tokio::time::timeout(PATIENCE.saturating_sub(waited), changed).await.is_err() {
                return Err(self.nowhere(&members));
            }
            self.failed.clear();
        }
    }

    /// Records a try. Returns the result of the call, or continues with the next shard.
    pub fn tried<R>(&mut self, member: &Arc<Member<T>>, outcome: Result<R>) -> ControlFlow<Result<Sharded<R>>> {
        let shard = &member.shard;
        let error = match outcome {
            Ok(of) => {
                shard.health.answered(Instant::now());
                return ControlFlow::Break(Ok(Sharded { shard: shard.id, of }));
            }
            Err(error) => error,
        };
        if error.is_drained() {
            shard.health.drained();
        } else if error.is_closed() || error.is_for_another() {
            // marks the shard as down even if the outcome is unknown, so that the next call avoids
            // it
            shard.lost(&error);
        } else {
            shard.health.answered(Instant::now());
        }
        if !error.is_for_another() {
            return ControlFlow::Break(Err(Error::of_shards(vec![(shard.id.to_string(), error)])));
        }
        debug!(queue = self.queue.shared.name, shard = %shard.id, %error, "enqueue goes to another shard");
        shard.went_elsewhere(&self.queue.shared.name);
        self.failed.push((shard.id, error));
        ControlFlow::Continue(())
    }

    /// Returns an error with the error of each shard that was tried or is known to be down.
    fn nowhere(&self, members: &[Arc<Member<T>>]) -> Error {
        let said = |shard: Id| self.failed.iter().find(|(id, _)| *id == shard).map(|(_, error)| error.clone());
        let drained = || Error::invalid("it is drained");
        let parts = members.iter().map(|member| &member.shard).map(|shard| {
            let why = said(shard.id).or_else(|| shard.health.error()).unwrap_or_else(drained);
            (shard.id.to_string(), why)
        });
        Error::of_shards(parts.collect())
    }
}
