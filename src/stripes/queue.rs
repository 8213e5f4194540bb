//! A queue over several servers: the handle, and the part of it on each.

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
    queue::{admin::settings::Description, handle::Queue, message::payload::Payload},
    stripes::{
        choose::Spread,
        id::{StripeId, Striped},
        set::{Stripes, unknown},
        stripe::Stripe,
    },
};

/// A part of the queue that could not be opened is tried again after this pause.
const PAUSE: Duration = Duration::from_secs(1);

/// A queue of `T`s over several servers. Cheap to clone; clones share connections and batches,
/// stripe by stripe.
///
/// Each stripe is a whole [`Queue`]. A message is in one of them and stays there, unless a drain
/// moves it ([`Stripes::drain_and_move`]), and all that is promised of a message is promised by
/// that one: its id, its lease, its order among those of the same stripe. Between stripes there is
/// no order.
pub struct StripedQueue<T> {
    pub(super) shared: Arc<Shared<T>>,
    pub(super) spread: Spread,
}

impl<T> Clone for StripedQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), spread: self.spread }
    }
}

impl<T> fmt::Debug for StripedQueue<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shared, spread } = self;
        out.debug_struct("StripedQueue").field("name", &shared.name).field("spread", spread).finish_non_exhaustive()
    }
}

/// The part of the queue on one server.
pub(super) struct Member<T> {
    pub stripe: Arc<Stripe>,
    pub queue: Queue<T>,
}

/// All parts that are open, in the order of the stripes' names.
pub(super) type Members<T> = Arc<[Arc<Member<T>>]>;

pub(super) struct Shared<T> {
    pub name: String,
    pub stripes: Stripes,
    pub members: watch::Sender<Members<T>>,
    /// Calls so far.
    pub turn: AtomicUsize,
    /// A task opens what is not open yet.
    is_opening: AtomicBool,
}

impl Stripes {
    /// Opens a queue whose payloads are `T`s, on every server that was reached. The others join
    /// when they are there.
    ///
    /// # Errors
    /// As those of [`Db::queue`](crate::Db::queue), of any server. One that went away meanwhile
    /// joins later, unless none is left.
    pub async fn queue<T: Payload>(&self, name: &str) -> Result<StripedQueue<T>> {
        let reached = self.0.reached.borrow().clone();
        let opened = join_all(reached.iter().map(|stripe| stripe.open::<T>(name))).await;
        let (mut members, mut failed) = (Vec::new(), Vec::new());
        for (stripe, opened) in reached.iter().zip(opened) {
            match opened {
                Ok(queue) => members.push(Arc::new(Member { stripe: stripe.clone(), queue })),
                Err(error) => failed.push((stripe.id.to_string(), error)),
            }
        }
        if members.is_empty() || failed.iter().any(|(_, error)| error.is_final()) {
            return Err(Error::of_stripes(failed));
        }
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            stripes: self.clone(),
            members: watch::Sender::new(members.into()),
            // Programs that send one message each do not all begin with the same stripe.
            turn: AtomicUsize::new(RandomState::new().build_hasher().finish() as usize / 2),
            is_opening: AtomicBool::new(false),
        });
        shared.tend();
        Ok(StripedQueue { shared, spread: Spread::default() })
    }
}

impl<T: Payload> Shared<T> {
    /// Sees to it that what is missing is looked for and opened: tasks end with their runtime.
    /// Cheap where nothing is missing.
    pub fn tend(self: &Arc<Self>) {
        let set = &self.stripes.0;
        if !set.is_whole() {
            set.seek();
        }
        if !self.is_opening.load(Ordering::Relaxed) && !self.is_opening.swap(true, Ordering::AcqRel) {
            tokio::spawn(open_more(Opening(Arc::downgrade(self)), set.reached.subscribe()));
        }
    }

    /// Lets go of what has left, and opens what is reached and not open. Says whether something is
    /// still missing.
    async fn open(&self, is_told: &mut bool) -> bool {
        let reached = self.stripes.0.reached.borrow().clone();
        let mut missing = !self.let_go(&reached);
        let members = self.members.borrow().clone();
        let is_missing = |stripe: &&Arc<Stripe>| !members.iter().any(|member| Arc::ptr_eq(&member.stripe, stripe));
        for stripe in reached.iter().filter(is_missing) {
            match stripe.open::<T>(&self.name).await {
                Ok(queue) => {
                    let member = Arc::new(Member { stripe: stripe.clone(), queue });
                    self.members.send_modify(|members| {
                        let mut all = members.to_vec();
                        all.retain(|other| other.stripe.id != member.stripe.id);
                        all.push(member);
                        all.sort_by_key(|member| member.stripe.id);
                        *members = all.into();
                    });
                    self.stripes.0.changed.notify_waiters();
                }
                Err(error) => {
                    missing = true;
                    if error.is_final() && !std::mem::replace(is_told, true) {
                        warn!(queue = self.name, stripe = %stripe.id, %error, "a stripe has no such queue; trying again");
                    } else {
                        debug!(queue = self.name, stripe = %stripe.id, %error, "queue is not open on a stripe");
                    }
                }
            }
        }
        missing
    }

    /// Whether no part is left of a stripe that is not there. The last part stays until there is
    /// another.
    fn let_go(&self, reached: &[Arc<Stripe>]) -> bool {
        let stays = |member: &&Arc<Member<T>>| reached.iter().any(|stripe| Arc::ptr_eq(stripe, &member.stripe));
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

struct Opening<T>(Weak<Shared<T>>);

impl<T> Drop for Opening<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.is_opening.store(false, Ordering::Release);
        }
    }
}

/// Opens the queue on every stripe that joins, until its last handle is gone.
async fn open_more<T: Payload>(opening: Opening<T>, mut reached: watch::Receiver<Arc<[Arc<Stripe>]>>) {
    let mut is_told = false;
    loop {
        reached.borrow_and_update();
        let Some(shared) = opening.0.upgrade() else { return };
        let missing = shared.open(&mut is_told).await;
        drop(shared);
        // The set lives as long as the queue does.
        let ended = tokio::select! {
            changed = reached.changed() => changed.is_err(),
            () = tokio::time::sleep(PAUSE), if missing => false,
        };
        if ended {
            return;
        }
    }
}

impl<T: Payload> StripedQueue<T> {
    /// The same queue with another way to spread what is enqueued.
    ///
    /// ```
    /// # use trunkline::{Result, Spread, StripedQueue};
    /// # async fn example(mails: StripedQueue<String>) -> Result<()> {
    /// mails.spread(Spread::by_key("tenant 7")).enqueue("ada@example.org: hello".to_owned()).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn spread(&self, spread: Spread) -> Self {
        Self { shared: self.shared.clone(), spread }
    }

    /// The set of stripes that it is on.
    #[must_use]
    pub fn stripes(&self) -> &Stripes {
        &self.shared.stripes
    }

    /// The queue as the stripe with the lowest name has it.
    #[must_use]
    pub fn description(&self) -> Description {
        self.shared.members.borrow()[0].queue.description().clone() // there is one from the beginning, and the last one stays
    }

    /// The part of it on one stripe: a queue with all its verbs, and those in the caller's
    /// transactions, which are of one server.
    ///
    /// # Errors
    /// There is no such stripe, or it was not reached since this process began.
    pub fn on(&self, stripe: StripeId) -> Result<Queue<T>> {
        self.member(stripe).map(|member| member.queue.clone())
    }

    /// All parts that are open, in the order of the stripes' names. A stripe that was not reached
    /// since this process began has none yet.
    #[must_use]
    pub fn parts(&self) -> Vec<Striped<Queue<T>>> {
        let members = self.shared.members.borrow().clone();
        members.iter().map(|member| Striped { stripe: member.stripe.id, of: member.queue.clone() }).collect()
    }

    pub(super) fn members(&self) -> Members<T> {
        self.shared.members.borrow().clone()
    }

    pub(super) fn member(&self, stripe: StripeId) -> Result<Arc<Member<T>>> {
        let members = self.members();
        members.iter().find(|member| member.stripe.id == stripe).cloned().ok_or_else(|| unknown(stripe))
    }
}
