//! A pause before an acknowledgement, so that it can share a transaction with the next lease.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, time::timeout};

use crate::postgres::db::{Heard, Subscription};

/// How long an acknowledgement waits for the next message where nothing is due: then both are one
/// transaction.
const LINGER: Duration = Duration::from_millis(2);

/// A pause in which a notification is waited for.
pub(crate) struct Linger {
    heard: watch::Receiver<Heard>,
    rings: Rings,
}

/// Notifications heard before a statement, which may come after a pause.
#[derive(Clone)]
pub(crate) struct Rings(Arc<AtomicU64>);

impl Rings {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Linger {
    /// Until the next notification that the consumer has not heard yet, but not for long.
    pub fn new(subscription: &Subscription) -> Self {
        let heard = subscription.heard.clone();
        let rings = Rings(Arc::new(heard.borrow().rings.into()));
        Self { heard, rings }
    }

    /// Those heard when the pause is over.
    pub fn rings(&self) -> Rings {
        self.rings.clone()
    }

    pub async fn over(mut self) {
        let _ = timeout(LINGER, self.heard.changed()).await; // either will do
        self.rings.0.store(self.heard.borrow().rings, Ordering::Relaxed);
    }
}
