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

/// The maximum time that an acknowledgement waits when nothing is due, in order to share the
/// transaction of the next lease.
const LINGER: Duration = Duration::from_millis(2);

/// A pause that a notification ends.
pub(crate) struct Linger {
    heard: watch::Receiver<Heard>,
    rings: Rings,
}

/// The number of notifications before a statement that may be sent only after a pause.
#[derive(Clone)]
pub(crate) struct Rings(Arc<AtomicU64>);

impl Rings {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Linger {
    /// Creates a pause that ends with the next unseen notification, or after [`LINGER`].
    pub fn new(subscription: &Subscription) -> Self {
        let heard = subscription.heard.clone();
        let rings = Rings(Arc::new(heard.borrow().rings.into()));
        Self { heard, rings }
    }

    /// Returns a handle to the number of notifications. The number is final once the pause has
    /// ended.
    pub fn rings(&self) -> Rings {
        self.rings.clone()
    }

    pub async fn over(mut self) {
        let _ = timeout(LINGER, self.heard.changed()).await; // a notification or the timeout ends the pause
        self.rings.0.store(self.heard.borrow().rings, Ordering::Relaxed);
    }
}
