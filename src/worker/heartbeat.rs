//! The heartbeat of a worker. It renews leases while handlers run, notifies handlers of lost
//! leases, and releases messages that would not start soon.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::MissedTickBehavior};

use crate::queue::message::payload::Payload;
use crate::worker::station::Station;

/// The bounds of the heartbeat's interval, which is otherwise a third of the lease.
const BEAT: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));

impl<T: Payload> Station<T> {
    /// Runs the heartbeat in a separate task, so that a handler that blocks its thread does not
    /// delay the renewal of other leases.
    pub async fn heartbeat(self: Arc<Self>) {
        let lease = self.lease;
        let mut beats = tokio::time::interval((lease / 3).clamp(BEAT.0, BEAT.1));
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sending = JoinSet::new();
        loop {
            beats.tick().await;
            while sending.try_join_next().is_some() {}
            let (now, may_send) = (Instant::now(), sending.is_empty());
            let beat = self.held().beat(now, may_send);
            let check = if may_send { self.held().check(now) } else { Vec::new() };
            if beat.changed {
                self.changed.notify_one();
            }
            if !beat.release.is_empty() || !beat.renew.is_empty() || !check.is_empty() {
                let station = self.clone();
                sending.spawn(async move {
                    station.renew(&beat.renew, lease).await;
                    drop(beat.renewal);
                    station.release(&beat.release).await;
                    station.check(&check).await;
                });
            }
        }
    }
}
