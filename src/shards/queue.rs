//! A queue on several servers: the handle, and the parts on each shard.

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::{
    error::{Error, Result},
    queue::{admin::description::Description, handle::Queue as ShardQueue, message::payload::Payload},
    shards::{
        id::{Id, Sharded},
        routing::Routing,
        set::{Set, unknown},
        shard::Shard,
    },
};

/// The pause before another try to open a part of the queue.
const PAUSE: Duration = Duration::from_secs(1);

/// A queue on several servers, with payloads of type `T`. Cheap to clone; clones share the
/// connections and batches of each shard.
///
/// Each shard has a complete [`Queue`](crate::Queue). A message is on one shard and stays there,
/// unless a drain moves it ([`Set::drain_and_move`]). All guarantees for the message come from that
/// shard: its id, its lease, and its order among the messages of the shard. Messages on different
/// shards have no order.
pub struct Queue<T> {
    pub(super) shared: Arc<SharedQueue<T>>,
    pub(super) routing: Routing,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), routing: self.routing }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shared, routing } = self;
        out.debug_struct("Queue").field("name", &shared.name).field("routing", routing).finish_non_exhaustive()
    }
}

/// The part of the queue on one shard.
pub(super) struct Member<T> {
    pub shard: Arc<Shard>,
    pub queue: ShardQueue<T>,
}

/// All open parts, in the order of the shards' names.
pub(super) type Members<T> = Arc<[Arc<Member<T>>]>;

pub(super) struct SharedQueue<T> {
    pub name: String,
    pub shards: Set,
    pub members: watch::Sender<Members<T>>,
    /// The number of calls so far.
    pub turn: AtomicUsize,
    /// True if a task is opening the missing parts.
    is_opening: AtomicBool,
}

impl Set {
    /// Opens a queue with payloads of type `T` on every server that has been reached. The other
    /// servers join once they are reached.
    ///
    /// # Errors
    /// The errors of [`Db::queue`](crate::Db::queue), from any server. A server that goes down
    /// during the call joins later, unless no other server is left.
    pub async fn queue<T: Payload>(&self, name: &str) -> Result<Queue<T>> {
        let reached = self.0.reached.borrow().clone();
        let opened = join_all(reached.iter().map(|shard| shard.open::<T>(name))).await;
        let (mut members, mut failed) = (Vec::new(), Vec::new());
        for (shard, opened) in reached.iter().zip(opened) {
            match opened {
                Ok(queue) => members.push(Arc::new(Member { shard: shard.clone(), queue })),
                Err(error) => failed.push((shard.id.to_string(), error)),
            }
        }
        if members.is_empty() || failed.iter().any(|(_, error)| error.is_final()) {
            return Err(Error::of_shards(failed));
        }
        let shared = Arc::new(SharedQueue {
            name: name.to_owned(),
            shards: self.clone(),
            members: watch::Sender::new(members.into()),
            // Starts with a random shard, so that programs that each send one message do not all
            // start with the same one.
            turn: AtomicUsize::new(RandomState::new().build_hasher().finish() as usize / 2),
            is_opening: AtomicBool::new(false),
        });
        shared.tend();
        Ok(Queue { shared, routing: Routing::default() })
    }
}

impl<T: Payload> SharedQueue<T> {
    /// Starts the tasks that look for missing servers and open missing parts, unless they are
    /// running. They may have ended with their runtime. Cheap if nothing is missing.
    pub fn tend(self: &Arc<Self>) {
        let set = &self.shards.0;
        if !set.is_whole() {
            set.seek();
        }
        if !self.is_opening.load(Ordering::Relaxed) && !self.is_opening.swap(true, Ordering::AcqRel) {
            tokio::spawn(open_more(Opening(Arc::downgrade(self)), set.reached.subscribe()));
        }
    }

    /// Releases the parts of removed shards, and opens missing parts. Returns true if a part is
    /// still missing.
    async fn open(&self, is_told: &mut bool) -> bool {
        let reached = self.shards.0.reached.borrow().clone();
        let mut missing = !self.let_go(&reached);
        let members = self.members.borrow().clone();
        let is_missing = |shard: &&Arc<Shard>| !members.iter().any(|member| Arc::ptr_eq(&member.shard, shard));
        for shard in reached.iter().filter(is_missing) {
            match shard.open::<T>(&self.name).await {
                Ok(queue) => {
                    let member = Arc::new(Member { shard: shard.clone(), queue });
                    self.members.send_modify(|members| {
                        let mut all = members.to_vec();
                        all.retain(|other| other.shard.id != member.shard.id);
                        all.push(member);
                        all.sort_by_key(|member| member.shard.id);
                        *members = all.into();
                    });
                    self.shards.0.changed.notify_waiters();
                }
                Err(error) => {
                    missing = true;
                    if error.is_final() && !std::mem::replace(is_told, true) {
                        warn!(queue = self.name, shard = %shard.id, %error, "a shard has no such queue; trying again");
                    } else {
                        debug!(queue = self.name, shard = %shard.id, %error, "queue is not open on a shard");
                    }
                }
            }
        }
        missing
    }

    /// Removes the parts of shards that have left. Returns true if no such part remains. The last
    /// part stays until there is another one.
    fn let_go(&self, reached: &[Arc<Shard>]) -> bool {
        let stays = |member: &&Arc<Member<T>>| reached.iter().any(|shard| Arc::ptr_eq(shard, &member.shard));
        let mut is_done = true;
        self.members.send_if_modified(|members| {
            let stay: Vec<Arc<Member<T>>> = members.iter().filter(stays).cloned().collect();
            let (leave, some) = (stay.len() < members.len(), !stay.is_empty());
            is_done = !leave || some;
            if leave && some {
                *members = stay.into();
            }
            leave && some
        });
        is_done
    }
}

struct Opening<T>(Weak<SharedQueue<T>>);

impl<T> Drop for Opening<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.is_opening.store(false, Ordering::Release);
        }
    }
}

/// Opens the queue on every shard that joins, until the last handle of the queue is dropped.
async fn open_more<T: Payload>(opening: Opening<T>, mut reached: watch::Receiver<Arc<[Arc<Shard>]>>) {
    let mut is_told = false;
    loop {
        reached.borrow_and_update();
        let Some(shared) = opening.0.upgrade() else { return };
        let missing = shared.open(&mut is_told).await;
        let mut members = shared.members.subscribe();
        drop(shared);
        // The handle of the queue also keeps the set alive.
        let ended = tokio::select! {
            changed = reached.changed() => changed.is_err(),
            () = async { while members.changed().await.is_ok() {} } => true, // the last handle is gone
            () = tokio::time::sleep(PAUSE), if missing => false,
        };
        if ended {
            return;
        }
    }
}

impl<T: Payload> Queue<T> {
    /// Returns the same queue with a different routing of enqueues.
    ///
    /// ```
    /// # use trunkline::{Result, shards::{self, Routing}};
    /// # async fn example(mails: shards::Queue<String>) -> Result<()> {
    /// mails
    ///     .routing(Routing::by_key("tenant 7"))
    ///     .enqueue("ada@example.org: hello".to_owned())
    ///     .await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn routing(&self, routing: Routing) -> Self {
        Self { shared: self.shared.clone(), routing }
    }

    /// Returns the set of shards.
    #[must_use]
    pub fn shards(&self) -> &Set {
        &self.shared.shards
    }

    /// Returns the description of the queue on the shard with the lowest name.
    #[must_use]
    pub fn description(&self) -> Description {
        self.shared.members.borrow()[0].queue.description().clone() // there is always at least one shard
    }

    /// Returns the part of the queue on one shard. This part has all verbs, including those for the
    /// caller's transactions on that server.
    ///
    /// # Errors
    /// There is no such shard, or this process has never reached it.
    pub fn on(&self, shard: Id) -> Result<ShardQueue<T>> {
        self.member(shard).map(|member| member.queue.clone())
    }

    /// Returns all open parts, in the order of the shards' names. A shard that this process has
    /// never reached has no part yet.
    #[must_use]
    pub fn queues(&self) -> Vec<Sharded<ShardQueue<T>>> {
        let members = self.shared.members.borrow().clone();
        members.iter().map(|member| Sharded { shard: member.shard.id, of: member.queue.clone() }).collect()
    }

    pub(super) fn members(&self) -> Members<T> {
        self.shared.members.borrow().clone()
    }

    pub(super) fn member(&self, shard: Id) -> Result<Arc<Member<T>>> {
        let members = self.members();
        members.iter().find(|member| member.shard.id == shard).cloned().ok_or_else(|| unknown(shard))
    }
}
