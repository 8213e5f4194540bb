//! A queue on one server or on several, for the verbs that work on both.

mod consumer;
mod id;

use std::{fmt, time::Duration};

use trunkline::{
    Archived, Db, DeadLetter, Description, Draft, Due, Enqueued, Found, Lease, Payload, Peeked, Queue, Stats, Wait,
    shards,
};

use self::id::{plain, seen, sharded};
pub use self::{
    consumer::AnyConsumer,
    id::{Id, Lent},
};
use crate::{
    deed::{self, Undone},
    error::{Error, Result},
};

#[derive(Debug, Clone)]
pub enum AnyQueue<T> {
    One(Queue<T>),
    Sharded {
        queue: shards::Queue<T>,
        /// The servers that had no part of the queue when the command began. A call covers only
        /// the parts that are open at its start, even if these servers are back at its end.
        absent: Vec<Away>,
    },
}

/// A server without a result, and the reason.
pub type Away = (String, String);

type Of<V> = (Id, V);

/// Returns the servers that could not be reached.
pub fn down(shards: &shards::Set) -> Vec<Away> {
    let down = |shard: shards::State| Some((shard.server, shard.down?.to_string()));
    shards.list().into_iter().filter_map(down).collect()
}

/// Returns the servers on which the queue is not open.
pub fn absent<T: Payload>(queue: &shards::Queue<T>) -> Vec<Away> {
    let absent = |shard: shards::State| {
        let is_open = shard.id.is_some_and(|id| queue.on(id).is_ok());
        let why = shard.down.map_or_else(|| "it was away when the command began".to_owned(), |why| why.to_string());
        (!is_open).then_some((shard.server, why))
    };
    queue.shards().list().into_iter().filter_map(absent).collect()
}

fn alone<V>(id: i64, of: V) -> Of<V> {
    (Id { shard: None, id }, of)
}

fn ids_of(ids: impl IntoIterator<Item = i64>) -> Vec<Id> {
    ids.into_iter().map(|id| Id { shard: None, id }).collect()
}

fn named(ids: Vec<shards::MessageId>) -> Vec<Id> {
    ids.into_iter().map(Id::from).collect()
}

impl<T: Payload> AnyQueue<T> {
    pub fn description(&self) -> Description {
        match self {
            Self::One(queue) => queue.description().clone(),
            Self::Sharded { queue, .. } => queue.description(),
        }
    }

    /// Returns a queue that has just been opened on several servers.
    pub fn of_several(queue: shards::Queue<T>) -> Self {
        Self::Sharded { absent: absent(&queue), queue }
    }

    /// Returns the outcome of a command that has done its work and written its result. Fails if a
    /// server was away at the beginning or the end, even if the reader has gone away.
    pub fn complete(&self, written: Result<()>) -> Result<()> {
        let Self::Sharded { queue, absent } = self else { return written };
        let mut away = absent.clone();
        away.extend(down(queue.shards()).into_iter().filter(|(server, _)| absent.iter().all(|(one, _)| one != server)));
        if away.is_empty() {
            return written;
        }
        let away: Vec<String> = away.iter().map(|(server, why)| format!("{server}: {why}")).collect();
        Err(Error::new(format!("the result is only of the other servers: {}", away.join("; ")))
            .hint("run the command again when these servers answer"))
    }

    /// Runs a change of this queue that is one transaction on each server. A signal interrupts it.
    pub fn change<R, E: Into<Error>>(
        &self,
        change: impl Future<Output = Result<R, E>>,
    ) -> impl Future<Output = Result<R>> {
        let undone = match self {
            Self::One(_) => Undone::All,
            Self::Sharded { .. } => Undone::Part,
        };
        deed::undertake(self.dbs(), undone, change)
    }

    /// Runs a change of this queue that consists of several transactions. A signal interrupts it.
    pub fn change_in_parts<R, E: Into<Error>>(
        &self,
        change: impl Future<Output = Result<R, E>>,
    ) -> impl Future<Output = Result<R>> {
        deed::undertake(self.dbs(), Undone::Part, change)
    }

    fn dbs(&self) -> Vec<Db> {
        match self {
            Self::One(queue) => vec![queue.db().clone()],
            Self::Sharded { queue, .. } => queue.queues().iter().map(|part| part.of.db().clone()).collect(),
        }
    }

    pub async fn enqueue_many(
        &self,
        drafts: impl IntoIterator<Item = Draft<&T>>,
    ) -> trunkline::Result<Vec<Of<Enqueued>>> {
        Ok(match self {
            Self::One(queue) => {
                let all = queue.enqueue_many(drafts).await?.into_iter();
                all.map(|enqueued| alone(enqueued.id(), enqueued)).collect()
            }
            Self::Sharded { queue, .. } => {
                let all = queue.enqueue_many(drafts).await?.into_iter();
                all.map(|enqueued| (enqueued.id().into(), enqueued.of)).collect()
            }
        })
    }

    pub async fn send_direct(&self, draft: Draft<&T>) -> trunkline::Result<Id> {
        Ok(match self {
            Self::One(queue) => ids_of([queue.send_direct(draft).await?.id()])[0],
            Self::Sharded { queue, .. } => queue.send_direct(draft).await?.id().into(),
        })
    }

    pub fn consumer(&self) -> AnyConsumer<T> {
        match self {
            Self::One(queue) => AnyConsumer::One(Box::new(queue.consumer(Wait::Adaptive))),
            Self::Sharded { queue, .. } => AnyConsumer::Sharded(Box::new(queue.consumer(Wait::Adaptive))),
        }
    }

    pub async fn find(&self, id: Id) -> Result<Option<Found<T>>> {
        Ok(match self {
            Self::One(queue) => queue.find(plain(&[id])?[0]).await?,
            Self::Sharded { queue, .. } => queue.find(sharded(&[id])?[0]).await?.map(|found| found.of),
        })
    }

    pub async fn cancel(&self, ids: &[Id]) -> Result<Vec<Id>> {
        Ok(match self {
            Self::One(queue) => ids_of(queue.cancel(&plain(ids)?).await?),
            Self::Sharded { queue, .. } => named(queue.cancel(&sharded(ids)?).await?),
        })
    }

    pub async fn reschedule(&self, ids: &[Id], due: Due) -> Result<Vec<Id>> {
        Ok(match self {
            Self::One(queue) => ids_of(queue.reschedule(&plain(ids)?, due).await?),
            Self::Sharded { queue, .. } => named(queue.reschedule(&sharded(ids)?, due).await?),
        })
    }

    pub async fn replay(&self, ids: Option<&[Id]>) -> Result<usize> {
        Ok(match (self, ids) {
            (Self::One(queue), Some(ids)) => queue.replay(&plain(ids)?).await?,
            (Self::One(queue), None) => queue.replay_all().await?,
            (Self::Sharded { queue, .. }, Some(ids)) => queue.replay(&sharded(ids)?).await?,
            (Self::Sharded { queue, .. }, None) => {
                sum(queue.on_each(|part| async move { part.replay_all().await }).await)?
            }
        })
    }

    pub async fn discard(&self, ids: Option<&[Id]>) -> Result<usize> {
        Ok(match (self, ids) {
            (Self::One(queue), Some(ids)) => queue.discard(&plain(ids)?).await?,
            (Self::One(queue), None) => queue.discard_all().await?,
            (Self::Sharded { queue, .. }, Some(ids)) => queue.discard(&sharded(ids)?).await?,
            (Self::Sharded { queue, .. }, None) => {
                sum(queue.on_each(|part| async move { part.discard_all().await }).await)?
            }
        })
    }

    pub async fn purge(&self) -> Result<u64> {
        Ok(match self {
            Self::One(queue) => queue.purge().await?,
            Self::Sharded { queue, .. } => sum(queue.on_each(|part| async move { part.purge().await }).await)?,
        })
    }

    pub async fn prune(&self, older: Duration) -> Result<u64> {
        Ok(match self {
            Self::One(queue) => queue.prune(older).await?,
            Self::Sharded { queue, .. } => sum(queue.on_each(|part| async move { part.prune(older).await }).await)?,
        })
    }

    /// Returns the counts, summed over all servers.
    pub async fn stats(&self) -> Result<Stats> {
        Ok(match self {
            Self::One(queue) => queue.stats().await?,
            Self::Sharded { queue, .. } => {
                let stats = queue.stats().await;
                stats.parts.into_iter().try_for_each(|part| part.of.map(drop))?;
                stats.sum
            }
        })
    }

    pub async fn dead_letters(&self, after: Id, n: usize) -> Result<Vec<Of<DeadLetter<T>>>> {
        Ok(match self {
            Self::One(queue) => {
                let page = queue.dead_letters(plain(&[after])?[0], n).await?;
                page.into_iter().map(|letter| alone(letter.id, letter)).collect()
            }
            Self::Sharded { queue, .. } => {
                let page = queue.dead_letters(seen(after)?, n).await?;
                let of = |shards::Sharded { shard, of }: shards::Sharded<DeadLetter<T>>| {
                    (shards::Sharded { shard, of: of.id }.into(), of)
                };
                page.into_iter().map(of).collect()
            }
        })
    }

    pub async fn archived(&self, after: Id, n: usize) -> Result<Vec<Of<Archived<T>>>> {
        Ok(match self {
            Self::One(queue) => {
                let page = queue.archived(plain(&[after])?[0], n).await?;
                page.into_iter().map(|message| alone(message.id, message)).collect()
            }
            Self::Sharded { queue, .. } => {
                let page = queue.archived(seen(after)?, n).await?;
                let of = |shards::Sharded { shard, of }: shards::Sharded<Archived<T>>| {
                    (shards::Sharded { shard, of: of.id }.into(), of)
                };
                page.into_iter().map(of).collect()
            }
        })
    }

    /// Returns the first messages of all servers, ordered by due time.
    pub async fn peek(&self, n: usize) -> Result<Vec<Of<Peeked<T>>>> {
        Ok(match self {
            Self::One(queue) => queue.peek(n).await?.into_iter().map(|message| alone(message.id, message)).collect(),
            Self::Sharded { queue, .. } => {
                let mut all = Vec::new();
                for shards::Sharded { shard, of } in queue.on_each(|part| async move { part.peek(n).await }).await {
                    all.extend(
                        of?.into_iter().map(|message| (shards::Sharded { shard, of: message.id }.into(), message)),
                    );
                }
                all.sort_by_key(|(id, message): &Of<Peeked<T>>| (message.due_at, *id));
                all.truncate(n);
                all
            }
        })
    }

    pub async fn end(&self, leases: Vec<Lent>, how: End) -> trunkline::Result<()> {
        match self {
            Self::One(queue) => {
                let leases: Vec<Lease> = leases.into_iter().map(|lent| lent.lease).collect();
                match how {
                    End::Ack => queue.ack(leases).await,
                    End::Archive => queue.archive(leases).await,
                    End::Release => queue.release(leases).await,
                    End::Extend(by) => queue.extend(leases, by).await,
                }
            }
            Self::Sharded { queue, .. } => {
                let on = |lent: Lent| Some(shards::Sharded { shard: lent.shard?, of: lent.lease });
                let leases: Vec<shards::Sharded<Lease>> = leases.into_iter().filter_map(on).collect();
                match how {
                    End::Ack => queue.ack(leases).await,
                    End::Archive => queue.archive(leases).await,
                    End::Release => queue.release(leases).await,
                    End::Extend(by) => queue.extend(leases, by).await,
                }
            }
        }
    }
}

/// The ways to end or extend leases.
#[derive(Debug, Clone, Copy)]
pub enum End {
    Ack,
    Archive,
    Release,
    Extend(Duration),
}

/// Sums the results of all servers. If some servers failed, the error names them, and says what the
/// others did.
fn sum<N: std::iter::Sum + fmt::Display>(parts: Vec<shards::Sharded<trunkline::Result<N>>>) -> Result<N> {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for shards::Sharded { shard, of } in parts {
        match of {
            Ok(messages) => done.push(messages),
            Err(error) => failed.push((shard, error)),
        }
    }
    if failed.is_empty() {
        return Ok(done.into_iter().sum());
    }
    let others = done.len();
    // After a signal, the caller reports that all servers have cancelled the change.
    if others == 0
        && failed.iter().all(|(_, error)| deed::is_cancelled(error))
        && let Some((_, error)) = failed.pop()
    {
        return Err(error.into());
    }
    let told: Vec<_> = failed
        .into_iter()
        .map(|(shard, error)| format!("shard {shard}: {}", Error::Database(error).told().0))
        .collect();
    let error = Error::new(told.join("; "));
    if others == 0 {
        return Err(error);
    }
    let messages: N = done.into_iter().sum();
    Err(error.hint(format!("on the other servers ({others}) the command is done: {messages} messages")))
}
