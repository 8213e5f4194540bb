//! Renewals that are on their way. A handler that ends its lease in a transaction of its own lets
//! them arrive first: one that came later would wait for that transaction, and so would all that
//! the worker settles behind it.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};

/// A handler waits no longer than that: its transaction may have what the renewal waits for, and no
/// server sees that they wait for each other.
const LONGEST: Duration = Duration::from_secs(5);

/// The renewals of one worker's queue, of which there is one at a time.
#[derive(Debug, Default)]
pub(in crate::worker) struct Renewals(watch::Sender<Count>);

#[derive(Debug, Default)]
struct Count {
    begun: u64,
    ended: u64,
}

/// A renewal that is on its way, until this is dropped.
#[derive(Debug)]
pub(super) struct Renewal(Arc<Renewals>);

impl Renewals {
    pub fn begin(self: &Arc<Self>) -> Renewal {
        self.0.send_modify(|count| count.begun += 1);
        Renewal(self.clone())
    }

    /// Until all that have begun by now have ended, for a while.
    pub async fn ended(&self) {
        let mut count = self.0.subscribe();
        let begun = count.borrow().begun;
        // It errs when there is no worker any more.
        let _ = timeout(LONGEST, count.wait_for(|count| count.ended >= begun)).await;
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| count.ended += 1);
    }
}
