//! Lets a handler wait for renewals that are being sent before it ends its lease in its own
//! transaction. A renewal that begins later would wait for that transaction and delay all later
//! settlements.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};

/// The maximum time that a handler waits. Its transaction may hold a lock that the renewal waits
/// for, and the server cannot detect such a deadlock.
const LONGEST: Duration = Duration::from_secs(5);

/// The renewals of one worker's queue; at most one is being sent at a time.
#[derive(Debug, Default)]
pub(in crate::worker) struct Renewals(watch::Sender<Count>);

#[derive(Debug, Default)]
struct Count {
    begun: u64,
    ended: u64,
}

/// A guard that marks a renewal as being sent until it is dropped.
#[derive(Debug)]
pub(super) struct Renewal(Arc<Renewals>);

impl Renewals {
    pub fn begin(self: &Arc<Self>) -> Renewal {
        self.0.send_modify(|count| count.begun += 1);
        Renewal(self.clone())
    }

    /// Waits until all renewals that have already begun have ended, or until the time limit.
    pub async fn ended(&self) {
        let mut count = self.0.subscribe();
        let begun = count.borrow().begun;
        // Ignores an error, which means that the worker has been dropped.
        let _ = timeout(LONGEST, count.wait_for(|count| count.ended >= begun)).await;
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| count.ended += 1);
    }
}
