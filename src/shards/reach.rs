//! The servers of a set. A server that cannot be reached is tried repeatedly, and joins once it is
//! reached.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError, Weak,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::{Notify, watch};
use tracing::{debug, info, warn};

use crate::{
    error::{Error, Result},
    postgres::{db::Db, target::Target},
    shards::{
        id::Id,
        shard::{PAUSE, Shard},
    },
};

/// The shards that have been reached, in the order of their names.
pub(super) type ReachedShards = Arc<[Arc<Shard>]>;

/// All servers of a set.
pub(super) struct Servers {
    places: Mutex<Vec<Arc<Server>>>,
    /// The number of servers that have not been reached yet.
    missing: AtomicUsize,
    pub reached: watch::Sender<ReachedShards>,
    /// Notified when a shard may be usable again.
    pub changed: Arc<Notify>,
}

pub(super) struct Server {
    target: Target,
    shard: OnceLock<Arc<Shard>>,
    /// The last error, if the server could not be reached.
    error: Mutex<Option<Error>>,
    /// True if a task is trying to reach the server.
    is_sought: AtomicBool,
}

impl Server {
    pub fn new(target: Target) -> Arc<Self> {
        Arc::new(Self { target, shard: OnceLock::new(), error: Mutex::default(), is_sought: AtomicBool::new(false) })
    }

    pub fn shown(&self) -> String {
        self.target.place()
    }

    pub fn shard(&self) -> Option<&Arc<Shard>> {
        self.shard.get()
    }

    pub fn error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Servers {
    pub fn new() -> Self {
        Self {
            places: Mutex::default(),
            missing: AtomicUsize::new(0),
            reached: watch::Sender::new([].into()),
            changed: Arc::default(),
        }
    }

    pub fn places(&self) -> Vec<Arc<Server>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a server. Its shard joins once it is reached.
    pub fn add(&self, place: Arc<Server>) {
        if place.shard().is_none() {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
        self.places.lock().unwrap_or_else(PoisonError::into_inner).push(place);
    }

    /// Removes a shard with its server, unless it is the last one. Returns true if it was removed.
    pub fn remove(&self, id: Id) -> bool {
        let left = self.reached.send_if_modified(|reached| {
            let (stay, gone): (Vec<Arc<Shard>>, Vec<_>) = reached.iter().cloned().partition(|shard| shard.id != id);
            let leaves = !stay.is_empty() && !gone.is_empty();
            if leaves {
                gone.iter().map(Arc::as_ref).for_each(Shard::no_longer_counts);
                *reached = stay.into();
            }
            leaves
        });
        if left {
            let is_other = |place: &Arc<Server>| place.shard().is_none_or(|shard| shard.id != id);
            self.places.lock().unwrap_or_else(PoisonError::into_inner).retain(is_other);
            self.changed.notify_waiters();
        }
        left
    }

    /// Tries once to reach a server. If the try succeeds, its shard joins.
    pub async fn reach(&self, place: &Server) -> Result<()> {
        let outcome = self.connect(place).await;
        *place.error.lock().unwrap_or_else(PoisonError::into_inner) = outcome.as_ref().err().cloned();
        outcome
    }

    async fn connect(&self, place: &Server) -> Result<()> {
        let shard = Shard::of(Db::to_one_of_several(place.target.clone()).await?, self.changed.clone()).await?;
        let mut twin = None;
        self.reached.send_if_modified(|reached| {
            twin = reached.iter().find(|other| other.id == shard.id).cloned();
            if twin.is_none() {
                let mut all = reached.to_vec();
                all.push(shard.clone());
                all.sort_by_key(|shard| shard.id);
                *reached = all.into();
            }
            twin.is_none()
        });
        if let Some(twin) = twin {
            return Err(Error::invalid(format!(
                "{} is the shard {}, and so is {}: name each server once; of a database that is a copy of another, give one a number of its own: \
                 update trunkline.stripe set number = default",
                place.shown(),
                shard.id,
                twin.db.address(),
            )));
        }
        let _ = place.shard.set(shard); // only one task connects to it
        self.changed.notify_waiters();
        Ok(())
    }

    /// Starts a task for each missing server that tries to reach it, unless one is running. Earlier
    /// tasks may have ended with their runtime.
    pub fn seek(self: &Arc<Self>) {
        let places = self.places();
        for place in places.iter().filter(|place| place.shard().is_none()) {
            if !place.is_sought.swap(true, Ordering::AcqRel) {
                tokio::spawn(seek(Seeking(place.clone()), Arc::downgrade(self)));
            }
        }
    }

    /// Returns true if every server has been reached.
    pub fn is_whole(&self) -> bool {
        self.missing.load(Ordering::Relaxed) == 0
    }
}

struct Seeking(Arc<Server>);

impl Drop for Seeking {
    fn drop(&mut self) {
        self.0.is_sought.store(false, Ordering::Release);
    }
}

async fn seek(Seeking(ref place): Seeking, set: Weak<Servers>) {
    let mut is_told = false;
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(set) = set.upgrade() else { return };
        match set.reach(place).await {
            Ok(()) => {
                set.missing.fetch_sub(1, Ordering::Relaxed);
                let id = place.shard().map(|shard| shard.id.to_string());
                return info!(place = place.shown(), shard = id, "shard was reached and takes part");
            }
            Err(error) if error.is_final() && !is_told => {
                is_told = true;
                warn!(place = place.shown(), %error, "cannot use a shard; retrying");
            }
            Err(error) => debug!(place = place.shown(), %error, "shard is not reached"),
        }
    }
}
