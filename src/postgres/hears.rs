//! A test of whether notifications reach this process.

use std::time::Duration;

use tokio::time::timeout;

use crate::postgres::db::Db;

/// The maximum time in which the listening connection must receive its own test notification.
const LONG_ENOUGH: Duration = Duration::from_secs(12);

impl Db {
    /// Returns true if notifications reach this process. The listening connection tests this:
    /// another connection sends it a notification, and it waits at most 12 seconds for the
    /// notification.
    ///
    /// Notifications do not arrive if the process connects through a transaction pooler, or if it
    /// cannot open a separate connection for listening. Consumers then poll instead.
    pub async fn notifications_arrive(&self) -> bool {
        // No notification is ever sent on this channel. The subscription only makes the listener
        // connect and test itself.
        let mut subscription = self.listener().subscribe(&format!("{}.", self.schema_name()), None);
        timeout(LONG_ENOUGH, subscription.heard.wait_for(|heard| heard.alive.is_some()))
            .await
            .is_ok_and(|heard| heard.is_ok())
    }
}
