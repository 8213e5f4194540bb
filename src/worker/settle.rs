//! Settles finished messages, together with the next lease.

use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use tracing::{debug, warn};

use crate::worker::{
    groups::{Decision, Failed, Finished, ToSettle},
    holder::Holder,
    station::Station,
};
use crate::{
    error::{Error, Result},
    queue::{
        linger::Linger,
        message::{Lease, Message},
        metric::End,
        payload::Payload,
    },
};

impl<T: Payload> Station<T> {
    /// Settles, and leases up to `n` messages: the acknowledgements and the lease in one round trip, the failures beside
    /// them. Settlements that failed are kept for the next time.
    pub async fn settle_and_lease(
        &self,
        settling: ToSettle,
        n: usize,
        linger: Option<Linger>,
    ) -> (Vec<Message<T>>, Result<()>) {
        let mut underway = Underway { station: self, began: Instant::now(), count: settling.len(), settling };
        let ToSettle { done, failed } = &underway.settling;
        let ends = join_all(failed.iter().map(|failed| self.end(failed)));
        let (leased, ended) = join(self.ack_and_lease(done, n, linger), ends).await;
        let mut outcome = Ok(());
        let mut ended = ended.into_iter();
        underway.settling.failed.retain(|_| match ended.next() {
            Some(Err(error)) => {
                outcome = Err(error);
                true
            }
            _ => false,
        });
        match leased {
            Ok(messages) => {
                underway.settling.done.clear();
                (messages, outcome)
            }
            Err(error) => (Vec::new(), Err(error)),
        }
    }

    async fn ack_and_lease(&self, done: &[Finished<()>], n: usize, linger: Option<Linger>) -> Result<Vec<Message<T>>> {
        let leases = done.iter().map(|done| done.lease);
        // Whoever has a lane next counts on the lease that this worker knows.
        let lease = self.options.lease.or(self.holder.as_ref().map(|_| self.lease));
        let (messages, lost) = if n > 0 {
            let number = self.holder.as_ref().map(Holder::number);
            let answer =
                self.queue.ack_and_lease_soon(leases, n, (lease, !self.options.harmless), number, linger).await;
            if let (Some(holder), Err(error)) = (&self.holder, &answer)
                && error.is_outcome_unknown()
            {
                holder.lose(self.lease);
            }
            let (mut messages, lost) = answer?;
            if self.options.harmless {
                for message in &mut messages {
                    message.ran_out = false;
                }
            }
            (messages, lost)
        } else {
            (Vec::new(), lost_of(self.queue.ack(leases).await)?)
        };
        self.tally.add(End::Done, done.len() - lost.len());
        self.lose(lost.len());
        Ok(messages)
    }

    /// Ends the lease of a message whose handler failed.
    async fn end(&self, Finished { lease, answer, .. }: &Finished<Failed>) -> Result<()> {
        let (lost, outcome) = match &answer.answer {
            Decision::Retry(after, reason) => {
                let after = after.saturating_sub(answer.at.elapsed());
                (lost_of(self.queue.retry([lease], after, reason).await)?, End::Retried)
            }
            Decision::Bury(reason) => (lost_of(self.queue.bury([lease], reason).await)?, End::Dead),
            Decision::Done | Decision::Settled | Decision::Released => return Ok(()), // these are no failures
        };
        self.held().confirm([*lease]);
        self.tally.add(outcome, 1 - lost.len());
        self.lose(lost.len());
        Ok(())
    }

    /// Releases messages, uncharged. A message whose release fails is due again when its lease ends.
    pub async fn release(&self, leases: &[Lease]) {
        if leases.is_empty() {
            return;
        }
        match lost_of(self.queue.release(leases).await) {
            Ok(lost) => {
                self.held().confirm(leases.iter().copied());
                self.tally.add(End::Released, leases.len() - lost.len());
            }
            Err(error) => {
                self.held().give_back_again(leases);
                warn!(queue = self.name(), messages = leases.len(), %error, "messages not released; they are due again when their leases end");
            }
        }
    }

    /// Renews leases; handlers whose lease is lost are told.
    pub async fn renew(&self, leases: &[Lease], lease: Duration) {
        if leases.is_empty() {
            return;
        }
        match lost_of(self.queue.extend(leases, lease).await) {
            Ok(lost) => self.held().renewed(leases, &lost, Instant::now()),
            Err(error) => warn!(queue = self.name(), messages = leases.len(), %error, "leases not renewed"),
        }
    }

    /// Tells handlers whose lease is there no more, long before it would be renewed.
    pub async fn check(&self, leases: &[Lease]) {
        if leases.is_empty() {
            return;
        }
        match self.queue.gone(leases).await {
            Ok(gone) => self.held().gone(leases, &gone),
            Err(error) => debug!(queue = self.name(), %error, "leases not checked"), // the next renewal tells
        }
    }

    pub fn lose(&self, messages: usize) {
        if messages > 0 {
            self.tally.add(End::Lost, messages);
            warn!(queue = self.name(), messages, outcome = "lost", "leases lost; the results are discarded");
        }
    }
}

/// Decisions that are being settled. Those left when this is dropped are kept for the next time.
struct Underway<'a, T: Payload> {
    station: &'a Station<T>,
    began: Instant,
    count: usize,
    settling: ToSettle,
}

impl<T: Payload> Drop for Underway<'_, T> {
    fn drop(&mut self) {
        let again = std::mem::take(&mut self.settling);
        let given_up = self.station.held().settled(self.count, again, self.began);
        self.station.lose(given_up);
        self.station.queue.shared.metrics.lost(given_up);
    }
}

/// The ids of messages whose lease was lost, where that is all that went wrong.
fn lost_of(outcome: Result<(), Error>) -> Result<Vec<i64>> {
    match outcome {
        Err(error) if error.is_lease_lost() => Ok(error.lost_ids().to_vec()),
        outcome => outcome.map(|()| Vec::new()),
    }
}
