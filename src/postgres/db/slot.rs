//! A slot that holds one shared connection, and replaces it when it is lost.

use std::{
    sync::{Arc, Mutex as SyncMutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Mutex, Semaphore},
    time::Instant,
};

use super::session::Session;
use crate::{error::Error, postgres::wire::Load};

/// The time without the end of a statement after which new statements prefer another connection.
/// One of the running statements probably waits for a lock.
const STALLED: Duration = Duration::from_millis(50);

pub(super) struct Slot {
    pub place: Mutex<SlotState>,
    /// Permits one opening at a time beside another connection.
    pub opening: Arc<Semaphore>,
    pub load: Arc<Load>,
    /// The number of ended statements when it was last seen to change while others were running,
    /// with the time.
    progress: SyncMutex<Option<(usize, Instant)>>,
    /// The time until which statements use another connection, because none could be opened here.
    avoided: SyncMutex<Option<Instant>>,
}

/// The reasons not to use a connection, the most important one first.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Burden {
    is_avoided: bool,
    has_stalled: bool,
    running: usize,
}

#[derive(Default)]
pub(super) struct SlotState {
    pub session: Option<Arc<Session>>,
    pub used: Option<Instant>,
    /// The last failure to connect.
    pub refused: Option<(Instant, Error)>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            place: Mutex::default(),
            opening: Arc::new(Semaphore::new(1)),
            load: Arc::default(),
            progress: SyncMutex::default(),
            avoided: SyncMutex::default(),
        }
    }
}

impl Slot {
    /// Returns the burden of the connection. The one with the lowest gets the next statement.
    pub fn burden(&self) -> Burden {
        let running = self.load.running();
        Burden { is_avoided: self.is_avoided(), has_stalled: running > 0 && self.stalls(), running }
    }

    pub fn is_avoided(&self) -> bool {
        let avoided = self.avoided.lock().unwrap_or_else(PoisonError::into_inner);
        avoided.is_some_and(|until| Instant::now() < until)
    }

    /// Lets statements use another connection for a while.
    pub fn avoid(&self, time: Duration) {
        *self.avoided.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + time);
    }

    fn stalls(&self) -> bool {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (ended, now) = (self.load.ended(), Instant::now());
        match *progress {
            Some((before, since)) if before == ended => now.duration_since(since) >= STALLED,
            _ => {
                *progress = Some((ended, now));
                false
            }
        }
    }

    /// Returns true if a statement would be sent at once, and none is running.
    pub fn is_free(&self) -> bool {
        let is_opening = self.opening.available_permits() == 0;
        self.load.running() == 0 && !self.is_avoided() && !is_opening && self.place.try_lock().is_ok()
    }

    /// Returns the open connection, unless the slot is about to be filled.
    pub fn opened(&self) -> Option<Arc<Session>> {
        let session = self.place.try_lock().ok()?.session.clone()?;
        (!session.is_closed()).then_some(session)
    }

    /// Returns the open connection like [`Slot::opened`], and notes its use.
    pub fn used(&self) -> Option<Arc<Session>> {
        let mut place = self.place.try_lock().ok()?;
        let session = place.session.clone().filter(|session| !session.is_closed())?;
        place.used = Some(Instant::now());
        Some(session)
    }
}
