//! The watch that a lookout's consumers share: sleeps until something may be due, and dequeues for
//! all of them.

use std::sync::Arc;

use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use crate::{
    error::Result,
    queue::{
        batch::share::PAGE,
        handle::Shared,
        wait::lookout::{Seat, Waiter, Watch, Woken},
    },
};

impl Shared {
    /// Waits until something is due, or the time is up. What is dequeued for a call that is dropped
    /// meanwhile is given back.
    pub async fn wait(self: &Arc<Self>, waiter: Waiter<'_>, until: Option<Instant>) -> Result<Woken> {
        let (answer, mut answered) = oneshot::channel();
        let (place, watch) = self.lookout.sit(Seat::of(waiter, until, answer));
        if let Some(watch) = watch {
            tokio::spawn(self.clone().watch(watch));
        }
        if let Some(until) = until {
            match timeout_at(until, &mut answered).await {
                Ok(answer) => return answer.unwrap_or(Ok(Woken::Told)),
                Err(_) if place.leave() => return Ok(Woken::Late),
                Err(_) => {} // a statement for it is under way, which answers: with messages, or that the time is up
            }
        }
        answered.await.unwrap_or(Ok(Woken::Told)) // the watch ended with its runtime; the next one begins another
    }

    /// Keeps watch for as long as there are seats.
    async fn watch(self: Arc<Self>, mut watch: Watch) {
        // Whoever takes a seat has just found nothing.
        let mut may_be_due = false;
        while watch.goes_on() {
            watch.hear();
            if may_be_due || watch.missed() {
                may_be_due = self.serve(&mut watch).await;
                if may_be_due || watch.is_deserted() {
                    continue;
                }
            }
            let due_in = match watch.listens() {
                true => self.outlook(&mut watch).await,
                false => Ok(None), // time alone wakes those that poll
            };
            match due_in {
                Ok(due_in) => may_be_due = watch.sleep(due_in).await,
                Err(error) => watch.fail(&error),
            }
        }
    }

    /// Seconds until the oldest visible message is due. Every so often what lies below the floor is
    /// looked for, too.
    async fn outlook(self: &Arc<Self>, watch: &mut Watch) -> Result<Option<f64>> {
        if watch.claim_sweep() {
            self.db.rest();
            self.sweep().await?;
        }
        self.look().await
    }

    /// One statement for all seats that dequeue in the same way, and a word to those that do not
    /// dequeue here. Says whether as much was found as was asked for, so that more may be due.
    async fn serve(self: &Arc<Self>, watch: &mut Watch) -> bool {
        self.send_back_kept();
        watch.tell();
        let mut more = false;
        for (how, seats) in watch.calls() {
            // What is more than a page waits for the next statement.
            let (mut asks, mut asked) = (Vec::new(), 0);
            for n in seats.iter().map(Seat::n) {
                if asked + n > PAGE {
                    break;
                }
                asks.push(n);
                asked += n;
            }
            match self.dequeue_page(asked, how).await {
                Ok(batches) => {
                    let is_full = batches.size >= asked;
                    more |= is_full;
                    watch.deal(seats, batches.deal(&asks), is_full);
                }
                Err(error) => seats.into_iter().for_each(|seat| seat.answer(Err(error.clone()))),
            }
        }
        more
    }
}
