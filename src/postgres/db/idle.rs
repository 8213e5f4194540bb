//! Idle connections, which are reused by later transactions and closed when they stay unused.

use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::ToSql;

use super::{Class, Db, Session, session::Waits, slot::Slot};
use crate::{
    error::Result,
    postgres::{
        sql::Sql,
        wire::{Row, Use},
    },
};

/// The maximum number of idle connections that are kept for transactions.
const IDLE: usize = 4;
/// The time after which [`Db::rest`] closes an unused connection. It is also the minimum time
/// between two runs of that method.
const UNUSED: Duration = Duration::from_secs(30);

/// The time for which [`Db::query_unblocked`] waits for a connection without a running statement.
/// After that, it also uses a connection on which the statements that were running have ended.
const BUSY: Duration = Duration::from_millis(50);
/// The time without the end of a statement after which the main connections count as blocked.
const BLOCKED: Duration = Duration::from_millis(500);
/// The time limit for opening a connection while the main connections are blocked.
const OPENING: Duration = Duration::from_secs(2);

impl Db {
    /// Runs a statement that must not wait behind one that may wait for a lock. Prefers an idle
    /// main connection. After `BUSY`, also uses one whose earlier statements have all ended. After
    /// `BLOCKED`, opens another connection, but only one call at a time does so. If that fails,
    /// the statement waits behind the others.
    pub(crate) async fn query_unblocked(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let since = Instant::now();
        let before = self.0.main.each_ref().map(|slot| slot.load.ended() + slot.load.running().max(1));
        while since.elapsed() < BLOCKED {
            let is_late = since.elapsed() >= BUSY;
            let goes_on = |(slot, before): (&Slot, usize)| slot.is_free() || is_late && slot.load.ended() >= before;
            if let Some(place) = self.0.main.iter().zip(before).position(goes_on) {
                return self.session_of(Class::Main, place).await?.query(sql, params).await;
            }
            sleep(Duration::from_millis(1)).await;
        }
        if let Ok(_only) = self.0.apart.try_acquire()
            && let Some(session) = self.session_now().await
        {
            let rows = session.query(sql, params).await;
            self.give_back(session);
            return rows;
        }
        self.query(Class::Main, sql, params).await
    }

    /// Returns an idle connection or a new one, without retries.
    pub(super) async fn session_now(&self) -> Option<Arc<Session>> {
        if let Some(session) = self.idle_session() {
            return Some(session);
        }
        let opening = async {
            let opened = Session::open_now(&self.0.target, Waits::Long, Use::Alone, Arc::default()).await?;
            self.admit(opened).await
        };
        timeout(OPENING, opening).await.ok()?.ok()
    }

    /// Returns a connection that no transaction uses. Connections that were unused for long are
    /// closed, because a network may have forgotten them.
    pub(super) fn idle_session(&self) -> Option<Arc<Session>> {
        self.usable().pop().map(|(_, session)| session)
    }

    /// Returns the idle connections, without those that were unused for long or have ended.
    fn usable(&self) -> MutexGuard<'_, Vec<(Instant, Arc<Session>)>> {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(given_back, session)| given_back.elapsed() < UNUSED && !session.is_closed());
        idle
    }

    pub(crate) fn give_back(&self, session: Arc<Session>) {
        session.connection().clean();
        let mut idle = self.usable();
        if session.is_closed() {
            idle.clear(); // the other idle connections may lead to the same server
        } else if idle.len() < IDLE {
            idle.push((Instant::now(), session));
        }
    }

    /// Closes connections that have been unused for a while. One connection of the main class and
    /// the listening connection stay open, but the listening connection must prove that it is
    /// alive. This method does nothing if it last ran less than `UNUSED` ago, and any number of
    /// queues may call it.
    pub(crate) fn rest(&self) {
        {
            let mut rested = self.0.rested.lock().unwrap_or_else(PoisonError::into_inner);
            if rested.elapsed() < UNUSED {
                return;
            }
            *rested = Instant::now();
        }
        self.0.listener.doubt();
        drop(self.usable());
        for slot in self.0.store.iter().chain(&self.0.run).chain(&self.0.main[1..]) {
            let Ok(mut place) = slot.place.try_lock() else { continue }; // skips a connection that a call is using
            if slot.load.running() == 0 && place.used.is_some_and(|used| used.elapsed() >= UNUSED) {
                place.session = None; // closes when the last caller drops it
            }
        }
    }
}
