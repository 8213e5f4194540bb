//! The place of a shared connection.

use std::{
    sync::{Arc, Mutex as SyncMutex},
    time::Duration,
};

use tokio::{sync::Mutex, time::Instant};

use super::session::Session;
use crate::{error::Error, postgres::wire::Load};

/// The time without the end of a statement after which new statements prefer another connection.
/// One of the running statements probably waits for a lock.
const STALLED: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(super) struct Slot {
    pub place: Mutex<SlotState>,
    pub load: Arc<Load>,
    /// The number of ended statements when it was last seen to change while others were running,
    /// with the time.
    progress: SyncMutex<Option<(usize, Instant)>>,
}

#[derive(Default)]
pub(super) struct SlotState {
    pub session: Option<Arc<Session>>,
    pub used: Option<Instant>,
    /// The last failure to connect.
    pub refused: Option<(Instant, Error)>,
    /// The last time that the server refused a connection while another one was open.
    pub shared: Option<Instant>,
}

impl Slot {
    /// Returns whether the running statements have stalled, and their number. The connection with
    /// the lowest burden gets the next statement.
    pub fn burden(&self) -> (bool, usize) {
        match self.load.running() {
            0 => (false, 0),
            running => (self.stalls(), running),
        }
    }

    fn stalls(&self) -> bool {
        let Ok(mut progress) = self.progress.try_lock() else { return false };
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
        self.load.running() == 0 && self.place.try_lock().is_ok()
    }

    /// Returns the open connection, unless the slot is about to be filled.
    pub fn opened(&self) -> Option<Arc<Session>> {
        let session = self.place.try_lock().ok()?.session.clone()?;
        (!session.is_closed()).then_some(session)
    }
}
