//! A test of whether notifications reach this process.

use std::time::Duration;

use tokio::time::timeout;

use crate::{error::Result, postgres::db::Db};

/// The maximum time in which the listening connection must receive its own test notification.
const LONG_ENOUGH: Duration = Duration::from_secs(12);

impl Db {
    /// Returns true if notifications reach this process. The listening connection tests this:
    /// another connection sends it a notification, and it waits at most 12 seconds for the
    /// notification. Returns false if the notification was sent and did not arrive, as behind a
    /// transaction pooler. Consumers then poll instead.
    ///
    /// # Errors
    /// If the test could not be made in that time, for example because the server has no free
    /// connection for listening. Consumers poll then, too.
    pub async fn notifications_arrive(&self) -> Result<bool> {
        // Subscribes to a channel on which no notification is ever sent. This only makes the
        // listener connect and test itself.
        let mut subscription = self.listener().subscribe(&format!("{}.", self.schema_name()), None);
        match timeout(LONG_ENOUGH, subscription.heard.wait_for(|heard| heard.alive.is_some())).await {
            Ok(heard) => Ok(heard.is_ok()),
            Err(_) => self.listener().why_deaf(),
        }
    }
}
