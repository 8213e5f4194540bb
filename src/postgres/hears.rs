//! Whether notifications reach this process.

use std::time::Duration;

use tokio::time::timeout;

use crate::postgres::db::Db;

/// The connection that listens has sent itself one by then, or does not hear it.
const LONG_ENOUGH: Duration = Duration::from_secs(12);

impl Db {
    /// Whether notifications reach this process: the connection that listens sends itself one by
    /// another connection, and waits for it, 12 s at most.
    ///
    /// They do not reach a process behind a transaction pooler, or one that gets no connection of
    /// its own to listen on. There consumers poll.
    pub async fn notifications_arrive(&self) -> bool {
        // Nothing is sent on this channel. A subscription learns here that the listener listens.
        let mut subscription = self.listener().subscribe(&format!("{}.", self.schema_name()), None);
        timeout(LONG_ENOUGH, subscription.heard.wait_for(|heard| heard.hearing)).await.is_ok_and(|heard| heard.is_ok())
    }
}
