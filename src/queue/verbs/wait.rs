//! Waits for messages. The poller of a wait list sleeps until a message may be due, and dequeues
//! for all waiters.

use std::sync::Arc;

use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use crate::{
    error::Result,
    queue::{
        batch::dequeues::PAGE,
        handle::Shared,
        wait::{
            list::Poller,
            waiter::{Waiter, WakeUp, Wanted},
        },
    },
};

impl Shared {
    /// Waits until a message is due or `until` has passed. If the call is dropped, messages that
    /// were already dequeued for it are put back.
    pub async fn wait(self: &Arc<Self>, wanted: Wanted<'_>, until: Option<Instant>) -> Result<WakeUp> {
        let (answer, mut answered) = oneshot::channel();
        let (entry, poller) = self.wait_list.enter(Waiter::new(wanted, until, answer));
        if let Some(poller) = poller {
            tokio::spawn(self.clone().poll(poller));
        }
        if let Some(until) = until {
            match timeout_at(until, &mut answered).await {
                Ok(answer) => return answer.unwrap_or(Ok(WakeUp::MayBeDue)),
                Err(_) if entry.leave() => return Ok(WakeUp::TimeIsUp),
                Err(_) => {} // a statement is running, so the poller will answer with messages or `TimeIsUp`
            }
        }
        answered.await.unwrap_or(Ok(WakeUp::MayBeDue)) // the poller ended with its runtime; this caller starts another
    }

    /// Probes like [`Shared::look`]. Consumers that have woken together share the probe.
    pub async fn look_together(self: &Arc<Self>) -> Result<Option<f64>> {
        self.wait_list.probes.share(self.look()).await
    }

    /// Serves the waiters until none is left.
    async fn poll(self: Arc<Self>, mut poller: Poller) {
        // Starts without a dequeue, because consumers enter the list just after one that found
        // nothing.
        let mut may_be_due = false;
        while poller.goes_on() {
            poller.hear();
            if may_be_due || poller.missed() {
                may_be_due = self.serve(&mut poller).await;
                if may_be_due || poller.is_deserted() {
                    continue;
                }
            }
            let listens = poller.listens();
            let due_in = match listens {
                true => self.probe(&mut poller).await,
                false => Ok(None), // consumers that poll need no probe, because only time wakes them
            };
            match due_in {
                Ok(due_in) => may_be_due = poller.sleep(listens, due_in).await,
                Err(error) => poller.fail(&error),
            }
        }
    }

    /// Returns the seconds until the oldest visible message is due. If a sweep is due, sweeps below
    /// the floor first.
    async fn probe(self: &Arc<Self>, poller: &mut Poller) -> Result<Option<f64>> {
        if poller.claim_sweep() {
            self.db.rest();
            self.sweep().await?;
        }
        self.look().await
    }

    /// Runs one statement for each mode in which waiters dequeue, and wakes waiters that dequeue by
    /// themselves. Returns true if more messages may be due, for example because a statement found
    /// as many as it asked for.
    async fn serve(self: &Arc<Self>, poller: &mut Poller) -> bool {
        self.put_back_unclaimed();
        poller.wake_others();
        let mut more = false;
        for (how, waiters) in poller.groups() {
            // Requests beyond what fits wait for the next statement.
            let (mut asks, mut asked, page) = (Vec::new(), 0, self.fitting(PAGE));
            for n in waiters.iter().map(|waiter| waiter.n().min(page)) {
                if asked + n > page {
                    break;
                }
                asks.push(n);
                asked += n;
            }
            match self.dequeue_page(asked, how).await {
                Ok(batches) => {
                    // In each of these cases, more may be due.
                    let is_full = batches.size >= asked || batches.is_apart() || batches.has_stopped;
                    more |= is_full;
                    poller.answer(waiters, batches.distribute(&asks), is_full);
                }
                Err(error) => waiters.into_iter().for_each(|waiter| waiter.answer(Err(error.clone()))),
            }
        }
        more
    }
}
