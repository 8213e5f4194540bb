//! The beat of a worker: leases are kept while handlers run, and what would not start soon is given back.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::MissedTickBehavior};

use crate::queue::payload::Payload;
use crate::worker::line::Line;

/// A beat is a third of the lease, within these bounds.
const BEAT: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));

impl<T: Payload> Line<T> {
    /// Runs beside everything else, so that a handler that keeps its thread does not keep this from the others' leases.
    pub async fn keep(self: Arc<Self>) {
        let lease = self.lease;
        let mut beats = tokio::time::interval((lease / 3).clamp(BEAT.0, BEAT.1));
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sending = JoinSet::new();
        loop {
            beats.tick().await;
            while sending.try_join_next().is_some() {}
            let beat = self.held().beat(Instant::now(), sending.is_empty());
            if beat.changed {
                self.changed.notify_one();
            }
            if !beat.release.is_empty() || !beat.renew.is_empty() {
                let line = self.clone();
                sending.spawn(async move {
                    line.renew(&beat.renew, lease).await;
                    line.release(&beat.release).await;
                });
            }
        }
    }
}
