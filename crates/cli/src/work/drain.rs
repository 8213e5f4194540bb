//! Detects that a queue is drained: no message is due, and this program holds no message of the
//! queue.

use std::time::{Duration, Instant};

use super::counts::Counts;
use crate::{any::AnyQueue, error::Error, print, text::Text};

/// The minimum pause between two queries. Each query scans the queue's rows, so the program sends
/// no query while it has work.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause is at least `SHARE` times as long as the last query, because a limit or a pause may
/// hold the queue for hours.
const SHARE: u32 = 20;
/// The maximum pause. The program ends this much later than it could.
const LONGEST: Duration = Duration::from_secs(3);
/// The time for which the queries must find neither a due message nor a new command. After that,
/// the remaining leases count as leases of other workers.
const QUIET: Duration = Duration::from_secs(1);

/// Waits until the queue is drained, even if the database is unavailable for some time.
pub async fn drained(queue: &AnyQueue<Text>, counts: &Counts) {
    let (mut pause, mut quiet, mut is_said) = (PAUSE, None, false);
    loop {
        let before = counts.started();
        tokio::time::sleep(pause).await;
        let idle = || counts.running() == 0 && counts.started() == before;
        if !idle() {
            quiet = None;
            continue;
        }
        let asked = Instant::now();
        let stats = queue.stats().await;
        pause = after(asked.elapsed());
        match stats {
            // Waits for leased messages, too. Some of them may not have started yet.
            Ok(stats) if stats.due == 0 && idle() => {
                if stats.leased == 0 || quiet.get_or_insert_with(Instant::now).elapsed() >= QUIET {
                    return;
                }
            }
            Err(Error::Database(error)) if !error.is_closed() && !is_said => {
                print::note(format!(
                    "warning: cannot check whether the queue is drained, so the program continues: {error}"
                ));
                (quiet, is_said) = (None, true);
            }
            _ => quiet = None,
        }
    }
}

/// Returns the pause after a query that took the time `took`.
fn after(took: Duration) -> Duration {
    (took * SHARE).clamp(PAUSE, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_query_is_followed_by_a_longer_pause() {
        let pauses = [0, 1, 10, 100, 10_000].map(|took| after(Duration::from_millis(took)).as_millis());
        assert_eq!(pauses, [50, 50, 200, 2_000, 3_000]);
    }
}
