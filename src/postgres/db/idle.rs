//! Idle connections, which are reused by later transactions and closed when they stay unused.

use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tokio_postgres::types::ToSql;

use super::{Class, Db, Session};
use crate::{
    error::Result,
    postgres::{sql::Sql, wire::Row},
};

/// The maximum number of idle connections that are kept for transactions.
const IDLE: usize = 4;
/// The time after which [`Db::rest`] closes an unused connection. It is also the minimum time
/// between two runs of that method.
const UNUSED: Duration = Duration::from_secs(30);

/// The maximum wait for a connection without a running statement.
const BUSY: Duration = Duration::from_millis(50);

impl Db {
    /// Runs a statement that must not wait behind another one, which may wait for a lock. It waits
    /// briefly for a connection of the main class without a running statement, and otherwise takes
    /// a connection of its own.
    pub(crate) async fn query_unblocked(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let since = Instant::now();
        while self.0.main.iter().all(|slot| slot.load.load(Ordering::Relaxed) > 0) {
            if since.elapsed() >= BUSY {
                let session = self.own_session_for(Class::Main).await?;
                let rows = session.query(sql, params).await;
                self.give_back(session);
                return rows;
            }
            sleep(Duration::from_millis(1)).await;
        }
        self.query(Class::Main, sql, params).await
    }

    pub(crate) fn give_back(&self, session: Arc<Session>) {
        session.connection().clean();
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE && !session.is_closed() {
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
        self.0
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(given_back, _)| given_back.elapsed() < UNUSED);
        for slot in self.0.store.iter().chain(&self.0.run).chain(&self.0.main[1..]) {
            let Ok(mut place) = slot.place.try_lock() else { continue }; // the connection is in use
            if slot.load.load(Ordering::Relaxed) == 0 && place.used.is_some_and(|used| used.elapsed() >= UNUSED) {
                place.session = None; // closes when the last caller drops it
            }
        }
    }
}
