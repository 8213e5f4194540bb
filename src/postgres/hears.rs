//! Tests whether notifications reach this process.

use std::time::Duration;

use tokio::time::timeout;

use crate::postgres::db::Db;

/// The time limit for the listening connection to receive its own test notification.
const LONG_ENOUGH: Duration = Duration::from_secs(12);

impl Db {
    /// Returns true if notifications reach this process. The listening connection sends itself a
    /// notification through another connection, and waits for it for at most 12 seconds.
    ///
    /// Notifications do not reach a process behind a transaction pooler, or a process that cannot
    /// open a separate connection to listen on. In such a process, consumers poll.
    pub async fn notifications_arrive(&self) -> bool {
        // No notification is sent on this channel. The subscription only shows whether the listener
        // listens.
        let mut subscription = self.listener().subscribe(&format!("{}.", self.schema_name()), None);
        timeout(LONG_ENOUGH, subscription.heard.wait_for(|heard| heard.alive.is_some()))
            .await
            .is_ok_and(|heard| heard.is_ok())
    }
}
