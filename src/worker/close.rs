//! Ends a worker: running handlers may finish within a limit, and the other messages are released.

use std::{pin::pin, time::Duration};

use futures_util::future::join;
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::queue::{message::payload::Payload, observe::metric::End};
use crate::worker::{held::GivenUp, outage::Outage, station::Station};

/// The time that notified handlers have to end after the shutdown limit.
const GRACE: Duration = Duration::from_secs(1);
/// The maximum time that the last statements wait for the database.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl<T: Payload> Station<T> {
    pub async fn close(&self, running: JoinSet<()>, limit: &CancellationToken) {
        self.close_in_time(running, limit).await;
        // The call has dropped its statements, so results that they did not settle wait again: the
        // database was unreachable, or refused them.
        let given_up = self.held().give_up_results();
        self.count(&given_up);
    }

    async fn close_in_time(&self, mut running: JoinSet<()>, limit: &CancellationToken) {
        let waiting = self.held().give_up_waiting();
        let mut finish = pin!(async {
            // Does both at once, because the release waits if another session has locked a message.
            join(self.release(&waiting), self.finish()).await;
            let kept = self.held().give_back(); // in a queue with keys: what has gone back since
            self.release(&kept).await;
        });
        if limit.run_until_cancelled(&mut finish).await.is_some() {
            return;
        }
        if self.held().tell_all() && timeout(GRACE, &mut finish).await.is_ok() {
            return;
        }
        running.abort_all();
        let ended = async { while running.join_next().await.is_some() {} };
        let _ = timeout(GRACE, ended).await; // does not wait for a handler that blocks its thread
        let given_up = self.held().give_up_running();
        self.count(&given_up);
        self.changed.notify_one();
        let last_words = join(self.release(&given_up.leases), finish);
        let _ = timeout(LAST_WORDS, last_words).await; // unsettled messages are delivered again when their leases end
    }

    /// Counts messages that were given up, except for those that are released later.
    fn count(&self, given_up: &GivenUp) {
        self.tally.add(End::Done, given_up.done);
        self.tally.add(End::Released, given_up.released);
        self.lose(given_up.lost + given_up.unknown);
        self.queue.shared.metrics.lost(given_up.lost); // it has counted the others as done
        if given_up.done > 0 {
            self.queue.shared.make_room();
        }
    }

    /// Settles finished messages until none are left. If a permanent error prevents that, still
    /// waits for the running handlers.
    async fn finish(&self) {
        let mut outage = Outage::default();
        loop {
            let settling = {
                let mut held = self.held();
                if held.is_empty() {
                    return;
                }
                held.settle()
            };
            if settling.is_empty() {
                self.changed.notified().await;
                continue;
            }
            match self.settle_and_lease(settling, 0, None).await.2 {
                Ok(()) => {}
                Err(error) if error.is_final() => {
                    while self.held().is_running() {
                        self.changed.notified().await;
                    }
                    return;
                }
                Err(error) => tokio::time::sleep(outage.pause(self.name(), &error)).await,
            }
        }
    }
}
