//! Tests of the doctor, the metrics and the web console on real servers.

mod browser;
mod chromium;
mod doctor;
mod metrics;
mod own_metrics;
mod web;

use std::time::Duration;

/// Waits between two polls, so that the processors are free for the tests that run beside this one.
async fn until_next_poll() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}
