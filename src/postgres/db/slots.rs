//! The shared connections of each class, which are opened when they are needed.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, timeout};
use tokio_postgres::config::TargetSessionAttrs;
use tracing::debug;

use super::{
    Class, Db, Session,
    session::Waits,
    slot::{Burden, Slot, SlotState},
};
use crate::{
    error::{Error, Result},
    postgres::wire::{Load, Use},
};

/// The time for which no connection is tried again after the server refused one, while another
/// connection of the class is open.
const REFUSED: Duration = Duration::from_millis(250);
/// The same time if the connection failed for another reason, or was not opened in time.
const FAILED: Duration = Duration::from_secs(10);
/// The time limit for opening a connection while another connection of the class is open.
const OPENING: Duration = Duration::from_secs(3);

impl Db {
    fn slots(&self, class: Class) -> &[Slot] {
        match class {
            Class::Store => &self.0.store,
            Class::Main => &self.0.main,
            Class::Run => &self.0.run,
        }
    }

    /// Returns the connection of a class with the lowest burden: one that can be used, preferably
    /// an idle one, else one whose statements end, else the one with fewer statements.
    pub(crate) async fn session(&self, class: Class) -> Result<Arc<Session>> {
        let slots = self.slots(class);
        let (mut place, mut lowest) = (0, slots[0].burden());
        for (at, other) in slots.iter().enumerate().skip(1) {
            if lowest == Burden::default() {
                break;
            }
            let burden = other.burden();
            if burden < lowest {
                (place, lowest) = (at, burden);
            }
        }
        self.session_of(class, place).await
    }

    /// Returns the connection of the slot at `place`. Replaces the connection if it was lost. If
    /// that fails, or takes long, returns another open connection of the class.
    pub(super) async fn session_of(&self, class: Class, place: usize) -> Result<Arc<Session>> {
        self.0.listener.revive();
        let slot = &self.slots(class)[place];
        if let Some(session) = slot.used() {
            return Ok(session);
        }
        let of_others = self.slots(class).iter().filter(|other| !std::ptr::eq(*other, slot));
        let Some(other) = of_others.into_iter().find_map(Slot::opened) else {
            return Box::pin(self.replaced(class, place)).await;
        };
        let Ok(permit) = slot.opening.clone().try_acquire_owned() else { return Ok(other) };
        let (db, open) = (self.clone(), other.clone());
        // A task, because the opening goes on after its time limit: it may try several hosts.
        let opening = tokio::spawn(async move {
            let _permit = permit;
            db.opened_beside(class, place, &open).await
        });
        match timeout(OPENING, opening).await {
            Ok(Ok(Ok(session))) => return Ok(session),
            _ if other.is_closed() => return Box::pin(self.replaced(class, place)).await, // the server may restart
            Ok(Ok(Err(error))) => {
                debug!(%error, "cannot open a second connection; sharing the first");
                slot.avoid(if refuses(&error) { REFUSED } else { FAILED });
            }
            Ok(Err(_)) | Err(_) => {
                debug!("the second connection does not open; sharing the first");
                slot.avoid(FAILED);
            }
        }
        Ok(other)
    }

    /// Returns the connection of a slot, or a new one.
    async fn replaced(&self, class: Class, place: usize) -> Result<Arc<Session>> {
        let (slot, asked) = (&self.slots(class)[place], Instant::now());
        let mut place = slot.place.lock().await;
        if let Some(session) = self.usable_in(&mut place) {
            return Ok(session);
        }
        if let Some((_, error)) = place.refused.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(error.clone()); // a concurrent call has tried to connect while this call waited for the lock
        }
        let opened = self.open(class, Use::Common, slot.load.clone(), |_| true).await;
        place.session = opened.as_ref().ok().cloned();
        place.refused = opened.as_ref().err().map(|error| (Instant::now(), error.clone()));
        opened
    }

    /// Returns the connection of a slot, or a new one, while another connection is open. Retries
    /// unless the server refuses it, or the other one ends. The slot can be used meanwhile.
    async fn opened_beside(&self, class: Class, place: usize, other: &Session) -> Result<Arc<Session>> {
        let slot = &self.slots(class)[place];
        if let Some(session) = self.usable_in(&mut *slot.place.lock().await) {
            return Ok(session);
        }
        // If the server has stopped, the other connection is about to end, too.
        let may_wait = |error: &Error| !refuses(error) && !other.is_closed();
        let opened = self.open(class, Use::Common, slot.load.clone(), may_wait).await?;
        let mut place = slot.place.lock().await;
        if let Some(session) = self.usable_in(&mut place) {
            return Ok(session); // a call that found no other connection was faster
        }
        place.session = Some(opened.clone());
        slot.avoid(Duration::ZERO);
        Ok(opened)
    }

    /// Returns the connection of a slot if it is open.
    fn usable_in(&self, place: &mut SlotState) -> Option<Arc<Session>> {
        place.used = Some(Instant::now());
        let session = place.session.as_ref()?;
        if !session.is_closed() {
            return Some(session.clone());
        }
        // Drops the idle connections and checks the listener. The server may have stopped or may
        // not respond, and these connections would take as long to detect this.
        place.session = None;
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.0.listener.doubt();
        None
    }

    /// Opens a connection. Retries after an error for which `may_wait` returns true, unless another
    /// server could accept the writes. Fails at once if the address leads to another database.
    pub(super) async fn open(
        &self,
        class: Class,
        usage: Use,
        load: Arc<Load>,
        may_wait: impl Fn(&Error) -> bool,
    ) -> Result<Arc<Session>> {
        let opened = match class {
            Class::Store if self.0.target.is_of_several => {
                Session::open_now(&self.0.target, waits(class, usage), usage, load).await
            }
            _ => Session::open(&self.0.target, waits(class, usage), usage, load, may_wait).await,
        };
        self.admit(opened?).await
    }

    /// Checks a new connection, and notes it for [`Db::cancel_running`].
    pub(super) async fn admit(&self, session: Session) -> Result<Arc<Session>> {
        self.recognize(&session).await?;
        session.doubt_with(self.0.listener.doubts());
        let chooses = self.0.target.config.get_target_session_attrs() != TargetSessionAttrs::Any;
        if chooses || self.0.target.is_of_several {
            self.0.listener.doubt(); // its server may have taken over from the listener's
        }
        let session = Arc::new(session);
        self.note_opened(&session);
        Ok(session)
    }
}

/// Returns true if the server answers, but accepts no connection at the moment, for example because
/// all of its connections are in use.
fn refuses(error: &Error) -> bool {
    error.sqlstate().is_some() && error.may_pass()
}

/// Returns how long statements wait for locks. Those of users, and those of transactions, wait as
/// long as their roles allow.
fn waits(class: Class, usage: Use) -> Waits {
    match usage == Use::Common && class != Class::Run {
        true => Waits::Briefly,
        false => Waits::Long,
    }
}
