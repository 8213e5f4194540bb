//! The heartbeat of a worker. It renews leases while handlers run, notifies handlers of lost
//! leases, and releases messages that would not start soon.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, sleep},
};

use crate::queue::message::payload::Payload;
use crate::worker::station::Station;

/// The bounds of the heartbeat's interval, which is otherwise a third of the lease.
const BEAT: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));

/// The maximum number of releases at the same time. One may wait for a lock, or for a server that
/// does not answer.
const RELEASES: usize = 4;

/// Returns the pause after a failed renewal. It grows with the number of failures in a row, but
/// several more tries follow while the lease lasts.
fn pause(failures: u32, lease: Duration) -> Duration {
    BEAT.1.saturating_mul(1 << failures.min(16)).min(lease / 12)
}

impl<T: Payload> Station<T> {
    /// Runs the heartbeat in a separate task, so that a handler that blocks its thread does not
    /// delay the renewal of other leases.
    pub async fn heartbeat(self: Arc<Self>) {
        let lease = self.lease;
        let mut beats = tokio::time::interval((lease / 3).clamp(BEAT.0, BEAT.1));
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Renews and checks leases separately, because a release may wait for a lock.
        let (mut renewing, mut releasing, mut checking) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
        let mut failures = 0; // renewals in a row
        loop {
            beats.tick().await;
            while let Some(renewed) = renewing.try_join_next() {
                failures = renewed.unwrap_or_default();
            }
            while releasing.try_join_next().is_some() || checking.try_join_next().is_some() {}
            let now = Instant::now();
            let beat = self.held().beat(now, renewing.is_empty(), releasing.len() < RELEASES);
            let check = if checking.is_empty() { self.held().check(now) } else { Vec::new() };
            if beat.changed {
                self.changed.notify_one();
            }
            if renewing.is_empty() && beat.renew.is_empty() {
                failures = 0; // the leases that were not renewed have ended
            }
            if !beat.renew.is_empty() {
                let station = self.clone();
                renewing.spawn(async move {
                    let is_renewed = station.renew(&beat.renew, lease, failures == 0).await;
                    drop(beat.renewal);
                    if is_renewed {
                        return 0;
                    }
                    sleep(pause(failures, lease)).await;
                    failures + 1
                });
            }
            if !beat.release.is_empty() {
                releasing.spawn(self.clone().release_counted(beat.release));
            }
            if !check.is_empty() {
                let station = self.clone();
                checking.spawn(async move { station.check(&check).await });
            }
        }
    }
}
