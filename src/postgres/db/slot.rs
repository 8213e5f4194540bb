//! The place of a shared connection.

use std::sync::Arc;

use tokio::{sync::Mutex, time::Instant};

use super::session::Session;
use crate::{error::Error, postgres::wire::Load};

#[derive(Default)]
pub(super) struct Slot {
    pub place: Mutex<SlotState>,
    pub load: Arc<Load>,
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
