//! When a queue is drained: nothing is due, and nothing of it is in our hands.

use std::time::Duration;

use super::counts::Counts;
use crate::{any::AnyQueue, text::Text};

/// The pause between two looks, which cost a pass over the queue's rows each: none is made while
/// there is work.
const PAUSE: Duration = Duration::from_millis(50);
/// The number of looks without anything due or begun after which other workers have what is leased.
const LOOKS: u32 = 20;

/// Returns when the queue is drained. A database that is away is waited for.
pub async fn drained(queue: &AnyQueue<Text>, counts: &Counts) {
    let mut quiet = 0;
    while quiet < LOOKS {
        let before = counts.started();
        tokio::time::sleep(PAUSE).await;
        let idle = || counts.running() == 0 && counts.started() == before;
        if !idle() {
            quiet = 0;
            continue;
        }
        match queue.stats().await {
            // What was leased and not begun yet is counted as leased.
            Ok(stats) if stats.due == 0 && idle() => quiet += if stats.leased == 0 { LOOKS } else { 1 },
            _ => quiet = 0,
        }
    }
}
