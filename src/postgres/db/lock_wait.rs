//! Connections for statements that wait for locks. On a shared connection, later statements of
//! other callers would wait behind them.

use std::{sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    select,
    sync::OwnedSemaphorePermit,
    time::{sleep, timeout},
};
use tokio_postgres::types::ToSql;

use super::{Class, Db, Session};
use crate::{
    error::Result,
    postgres::{sql::Sql, wire::Row},
};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The maximum time that a statement waits for its turn. Others may wait for other locks.
const TURN: Duration = Duration::from_secs(5);

/// A connection for one statement that waits for a lock.
pub(crate) struct LockWait<'a> {
    db: &'a Db,
    pub session: Arc<Session>,
    /// One of the `LOCK_WAITS`; `None` after the reply.
    permit: Option<OwnedSemaphorePermit>,
}

impl LockWait<'_> {
    /// Keeps the connection for later use. Call this after the reply to the statement.
    pub fn give_back(mut self) {
        let _permit = self.permit.take();
        self.db.give_back(self.session.clone());
    }
}

impl Drop for LockWait<'_> {
    /// Keeps the permit until the reply if the caller no longer waits, because the server still
    /// does. Otherwise calls with a time limit would open any number of connections.
    fn drop(&mut self) {
        let (Some(permit), Ok(runtime)) = (self.permit.take(), Handle::try_current()) else { return };
        let session = self.session.clone();
        runtime.spawn(async move {
            let _ = session.batch("after a wait", "select").await; // replies come in order
            drop(permit);
        });
    }
}

/// The tries of a statement that was refused because it waited for a lock.
#[derive(Debug)]
pub(crate) struct LockTries {
    pause: Duration,
    /// The turn for the try that is under way on a shared connection.
    turn: Option<OwnedSemaphorePermit>,
}

impl Default for LockTries {
    fn default() -> Self {
        Self { pause: FIRST_PAUSE, turn: None }
    }
}

impl LockTries {
    /// Returns a connection on which the statement can wait. If there is none, pauses and returns
    /// `None`: the statement is then tried again on a shared connection. Statements take turns,
    /// because each try may stop the other statements of the connection for half a second.
    pub async fn next<'a>(&mut self, db: &'a Db) -> Option<LockWait<'a>> {
        self.turn = None; // its try has ended
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        let mut turn = Box::pin(async {
            sleep(pause).await;
            timeout(TURN, db.0.again.clone().acquire_owned()).await.ok()?.ok()
        });
        let permit = select! {
            biased;
            permit = db.0.waiting.clone().acquire_owned() => permit.ok(),
            turn = &mut turn => {
                self.turn = turn;
                return None;
            }
        };
        if let Some(session) = db.session_now().await {
            return Some(LockWait { db, session, permit });
        }
        drop(permit);
        self.turn = turn.await;
        None
    }
}

impl Db {
    pub(crate) async fn query(&self, class: Class, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        Ok(self.query_together(class, &[(sql, params)], None).await?.remove(0))
    }

    /// Runs statements as [`Session::query_together`] does, on a shared connection, and waits for
    /// locks on another one. A statement that sets its own limit waits no longer than that.
    pub(crate) async fn query_together(
        &self,
        class: Class,
        statements: &[(&Sql, &[&(dyn ToSql + Sync)])],
        most: Option<usize>,
    ) -> Result<Vec<Vec<Row>>> {
        let mut send = |session: Arc<Session>| async move { session.query_together(statements, most).await };
        if statements.iter().any(|(sql, _)| sql.limits_waits) {
            return self.sent(class, &mut send).await;
        }
        self.with_lock_waits(class, send).await
    }

    /// Sends statements by `send`, on a shared connection. If the connection ended before they were
    /// sent, sends them once more, on a new one.
    async fn sent<T, F: Future<Output = Result<T>>>(
        &self,
        class: Class,
        send: &mut impl FnMut(Arc<Session>) -> F,
    ) -> Result<T> {
        match send(self.session(class).await?).await {
            // Boxed, so that other calls have no room for this.
            Err(error) if error.is_closed() && !error.is_outcome_unknown() => {
                Box::pin(async { send(self.session(class).await?).await }).await
            }
            outcome => outcome,
        }
    }

    /// Sends statements by `send`, on a shared connection. If the server refuses them because one
    /// of them waited for a lock, nothing has taken effect, and they are sent again on a connection
    /// of their own.
    pub(crate) async fn with_lock_waits<T, F: Future<Output = Result<T>>>(
        &self,
        class: Class,
        mut send: impl FnMut(Arc<Session>) -> F,
    ) -> Result<T> {
        match self.sent(class, &mut send).await {
            // Boxed, so that calls that wait for no lock have no room for this.
            Err(error) if error.is_of_lock_timeout() => Box::pin(self.send_again(class, send)).await,
            outcome => outcome,
        }
    }

    /// Sends statements that were refused until one try waits long enough.
    async fn send_again<T, F: Future<Output = Result<T>>>(
        &self,
        class: Class,
        mut send: impl FnMut(Arc<Session>) -> F,
    ) -> Result<T> {
        let mut tries = LockTries::default();
        loop {
            if let Some(wait) = tries.next(self).await {
                let outcome = send(wait.session.clone()).await;
                wait.give_back();
                return outcome;
            }
            match self.sent(class, &mut send).await {
                Err(error) if error.is_of_lock_timeout() => {}
                outcome => return outcome,
            }
        }
    }

    /// Runs a statement that may wait for locks, on a connection of its own, so that no other
    /// statement waits behind it. If no such connection is available, uses a shared one.
    pub(crate) async fn query_apart(&self, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        if let Ok(permit) = self.0.waiting.clone().try_acquire_owned()
            && let Some(session) = self.session_now().await
        {
            let wait = LockWait { db: self, session, permit: Some(permit) };
            let rows = Box::pin(wait.session.query(sql, params)).await;
            wait.give_back();
            return rows;
        }
        self.query(Class::Main, sql, params).await
    }
}
