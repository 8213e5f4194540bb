//! Connections for statements that wait for locks. On a shared connection, later statements of
//! other callers would wait behind them.

use std::{sync::Arc, time::Duration};

use tokio::{sync::SemaphorePermit, time::sleep};
use tokio_postgres::types::ToSql;

use super::{Class, Db, Session};
use crate::{
    error::Result,
    postgres::{sql::Sql, wire::Row},
};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A connection for one statement that waits for a lock.
pub(crate) struct LockWait<'a> {
    db: &'a Db,
    pub session: Arc<Session>,
    _permit: SemaphorePermit<'a>,
}

impl LockWait<'_> {
    /// Keeps the connection for later use. Call this after the reply to the statement.
    pub fn give_back(self) {
        self.db.give_back(self.session);
    }
}

/// The tries of a statement that was refused because it waited for a lock.
#[derive(Debug)]
pub(crate) struct LockTries(Duration);

impl Default for LockTries {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl LockTries {
    /// Returns a connection on which the statement can wait. If there is none, pauses and returns
    /// `None`: the statement is then tried again on a shared connection.
    pub async fn next<'a>(&mut self, db: &'a Db) -> Option<LockWait<'a>> {
        if let Ok(permit) = db.0.waiting.try_acquire()
            && let Some(session) = db.session_now().await
        {
            return Some(LockWait { db, session, _permit: permit });
        }
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
        None
    }
}

impl Db {
    pub(crate) async fn query(&self, class: Class, sql: &Sql, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        Ok(self.query_together(class, &[(sql, params)], None).await?.remove(0))
    }

    /// Runs statements as [`Session::query_together`] does, on a shared connection. If the server
    /// refuses them because one of them waited for a lock, nothing has taken effect, and they are
    /// sent again on a connection of their own. A statement that sets its own limit has waited as
    /// long as it may.
    pub(crate) async fn query_together(
        &self,
        class: Class,
        statements: &[(&Sql, &[&(dyn ToSql + Sync)])],
        most: Option<usize>,
    ) -> Result<Vec<Vec<Row>>> {
        let sets_limit = || statements.iter().any(|(sql, _)| sql.text.contains("lock_timeout"));
        let mut tries = LockTries::default();
        loop {
            match self.session(class).await?.query_together(statements, most).await {
                Err(error) if error.is_of_lock_timeout() && !sets_limit() => {}
                outcome => return outcome,
            }
            if let Some(wait) = tries.next(self).await {
                let outcome = wait.session.query_together(statements, most).await;
                wait.give_back();
                return outcome;
            }
        }
    }
}
