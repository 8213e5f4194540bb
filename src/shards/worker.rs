//! A worker of all shards: one worker on each shard, which share the handlers.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::Arc,
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    error::Result,
    queue::{handle::Queue as ShardQueue, message::payload::Payload},
    shards::{
        id::Id,
        queue::{Members, Queue},
        shard::Shard,
    },
    worker::{
        Summary, Worker as ShardWorker,
        several::{Crew, Later},
    },
};

/// A worker that runs a function for every message of a queue on several servers, at least once. It
/// has a [`Worker`](crate::Worker) on each shard; these share a number of handlers as
/// [`Workers`](crate::Workers) do. A busy shard therefore leaves at least one handler to every
/// other shard, and a shard that is down occupies only one.
///
/// A function creates the worker of each shard, with all options of a [`Worker`](crate::Worker),
/// including hooks and the attempt with its transaction on that server. A shard that joins later
/// gets a worker when it is reached. The worker of a removed shard
/// ([`Set::remove`](crate::shards::Set::remove)) is shut down gracefully.
///
/// ```no_run
/// # use trunkline::{Failure, Result, Worker, shards};
/// # async fn example(
/// #     mails: shards::Queue<String>,
/// #     shutdown: impl Future<Output = ()>,
/// # ) -> Result<()> {
/// let worker = shards::Worker::new(mails, |_shard, mails| {
///     Worker::new(mails, |mail| async move {
///         println!("{}", mail.payload);
///         Ok::<(), Failure>(())
///     })
/// });
/// let summary = worker.concurrency(64).run(shutdown).await?;
/// println!("{} done", summary.done);
/// # Ok(()) }
/// ```
pub struct Worker<T> {
    queue: Queue<T>,
    concurrency: usize,
    make: Arc<Make<T>>,
}

type Make<T> = dyn Fn(Id, ShardQueue<T>) -> ShardWorker<T> + Send + Sync;

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, concurrency, .. } = self;
        out.debug_struct("Worker").field("queue", queue).field("concurrency", concurrency).finish_non_exhaustive()
    }
}

impl<T: Payload> Worker<T> {
    /// Creates a worker. `worker` creates its part on each shard, from the shard's name and the
    /// queue's part on that shard.
    #[must_use]
    pub fn new(queue: Queue<T>, worker: impl Fn(Id, ShardQueue<T>) -> ShardWorker<T> + Send + Sync + 'static) -> Self {
        Self { queue, concurrency: 64, make: Arc::new(worker) }
    }

    /// Sets the number of handlers that run at the same time, for all shards together: 64 by
    /// default, at least one for each shard. The concurrency that a shard's worker sets has no
    /// effect.
    #[must_use]
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency, ..self }
    }

    /// Works until `shutdown` completes. Then shuts down gracefully (see
    /// [`Worker::shutdown_after`](crate::Worker::shutdown_after)) and returns a summary of all
    /// shards.
    ///
    /// # Errors
    /// The errors of [`Worker::run`](crate::Worker::run), from any shard; the workers of all other
    /// shards are then shut down gracefully. If a server is down, its worker waits for it, without
    /// delaying the other shards.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Summary> {
        let Self { queue, concurrency, make } = self;
        queue.shared.tend();
        let mut crew = Crew::new(concurrency);
        let mut members = queue.shared.members.subscribe();
        let mut lines: BTreeMap<Id, (Arc<Shard>, CancellationToken)> = BTreeMap::new();
        let mut begin = move |crew: &mut Crew, members: &Members<T>| {
            // Ends the workers of removed shards, even if a shard of the same name has joined again
            // through another connection.
            lines.retain(|_, (shard, line)| {
                let stays = members.iter().any(|member| Arc::ptr_eq(&member.shard, shard));
                if !stays {
                    line.cancel();
                }
                stays
            });
            for member in members.iter() {
                let id = member.shard.id;
                if let Entry::Vacant(place) = lines.entry(id) {
                    let line = crew.begin(make(id, member.queue.clone()), 1)?;
                    place.insert((member.shard.clone(), line));
                }
            }
            Ok(())
        };
        {
            // the borrow ends at once, because shards that leave need the lock
            let now = members.borrow_and_update().clone();
            begin(&mut crew, &now)?;
        }
        let (more, signal) = watch::channel(());
        let changes = members.clone();
        // Signals later changes of the set of shards. Never completes: only the end of `crew.run`
        // ends the call.
        let watching = async move {
            while members.changed().await.is_ok() && more.send(()).is_ok() {}
            std::future::pending().await
        };
        let later: Later = (
            signal,
            Box::new(move |crew| {
                let now = changes.borrow().clone(); // the borrow ends at once, because `make` may use the shards
                begin(crew, &now)
            }),
        );
        tokio::select! {
            summary = crew.run(shutdown, Some(later)) => summary,
            never = watching => never,
        }
    }
}
