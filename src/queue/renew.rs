//! Reads again what a handle knows of its queue and what may have changed since it was opened.

use std::{sync::Arc, time::Instant};

use tracing::debug;

use crate::queue::handle::Shared;

impl Shared {
    /// Starts a task that reads whether the queue limits its leases, unless that was read a moment
    /// ago.
    pub(super) fn renew_lease_limit(self: &Arc<Self>) {
        if self.lease_limit.claim(Instant::now()) {
            let shared = self.clone();
            tokio::spawn(async move {
                match shared.db.describe_queue(shared.name()).await {
                    Ok(described) => shared.lease_limit.set(described.limits.max_leased.is_some()),
                    Err(error) => debug!(queue = shared.name(), %error, "cannot read the limits of the queue"),
                }
            });
        }
    }
}
