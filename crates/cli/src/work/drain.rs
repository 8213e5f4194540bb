//! Detects that a queue is drained: no message is due, and this program holds no message of the
//! queue.

use std::time::Duration;

use super::counts::Counts;
use crate::{any::AnyQueue, error::Error, print, text::Text};

/// The pause between two queries. Each query scans the queue's rows, so the program sends no query
/// while it has work.
const PAUSE: Duration = Duration::from_millis(50);
/// The number of queries in a row that find neither a due message nor a new command. After that,
/// the remaining leases count as leases of other workers.
const LOOKS: u32 = 20;

/// Waits until the queue is drained, even if the database is unavailable for some time.
pub async fn drained(queue: &AnyQueue<Text>, counts: &Counts) {
    let (mut quiet, mut is_said) = (0, false);
    while quiet < LOOKS {
        let before = counts.started();
        tokio::time::sleep(PAUSE).await;
        let idle = || counts.running() == 0 && counts.started() == before;
        if !idle() {
            quiet = 0;
            continue;
        }
        match queue.stats().await {
            // `leased` includes messages that are leased but not started yet.
            Ok(stats) if stats.due == 0 && idle() => quiet += if stats.leased == 0 { LOOKS } else { 1 },
            Err(Error::Database(error)) if !error.is_closed() && !is_said => {
                print::note(format!(
                    "warning: cannot check whether the queue is drained, so the program continues: {error}"
                ));
                (quiet, is_said) = (0, true);
            }
            _ => quiet = 0,
        }
    }
}
