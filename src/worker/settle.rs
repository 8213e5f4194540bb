//! Settles finished messages, together with the next lease.

use std::{
    iter::repeat_n,
    time::{Duration, Instant},
};

use futures_util::future::{join, join_all};
use tracing::{debug, warn};

use crate::worker::{
    apart::{Apart, is_of_message},
    groups::{Decision, Failed, Finished, ToSettle},
    holder::Holder,
    station::Station,
};
use crate::{
    error::{Error, Result},
    queue::{
        message::{Lease, dequeue::Dequeue, payload::Payload},
        observe::metric::End,
        verbs::dequeue::Dequeued,
        wait::linger::Linger,
    },
};

impl<T: Payload> Station<T> {
    /// Settles finished messages and leases up to `n` new ones. Acknowledgements and the lease
    /// share a round trip; failures are settled at the same time. Results that could not be settled
    /// are kept for the next try. Also returns when the lease was answered: the settlement of a
    /// failure may wait for a lock after that.
    pub async fn settle_and_lease(
        &self,
        settling: ToSettle,
        n: usize,
        linger: Option<Linger>,
    ) -> (Dequeued<T>, Instant, Result<()>) {
        let mut underway = Underway { station: self, began: Instant::now(), count: settling.len(), settling };
        let ToSettle { done, failed } = &mut underway.settling;
        let rows = failed.chunk_by(Finished::<Failed>::shares_row);
        let ends = join_all(rows.map(|row| async move { (row.len(), self.end(row).await) }));
        let lease = async { (self.ack_and_lease(done, n, linger).await, Instant::now()) };
        let ((leased, arrived), ended) = join(lease, ends).await;
        let mut stays = ended.iter().flat_map(|(count, ended)| repeat_n(ended.is_err(), *count));
        failed.retain(|_| stays.next() == Some(true));
        let outcome = ended.into_iter().filter_map(|(_, ended)| ended.err()).last().map_or(Ok(()), Err);
        match leased {
            Ok(dequeued) => (dequeued, arrived, outcome),
            Err(error) => (Dequeued::default(), arrived, Err(error)),
        }
    }

    /// Acknowledges and leases. Removes acknowledged messages from `done`.
    async fn ack_and_lease(
        &self,
        done: &mut Vec<Finished<()>>,
        n: usize,
        linger: Option<Linger>,
    ) -> Result<Dequeued<T>> {
        match self.ack_and_lease_together(done, n, linger).await {
            Ok((dequeued, lost)) => {
                self.acknowledged(done.len() - lost, lost);
                done.clear();
                Ok(dequeued)
            }
            // Sends the acknowledgements and the lease separately, because the server may have
            // refused either.
            Err(error) if error.is_refusal() && !done.is_empty() => {
                let acked = self.ack_apart(done).await.map(|(ended, lost)| self.acknowledged(ended, lost));
                let dequeued = self.ack_and_lease_together(&[], n, None).await?.0;
                match acked {
                    Err(error) if dequeued.count() == 0 => Err(error), // the caller tries again after a pause
                    _ => Ok(dequeued),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn acknowledged(&self, ended: usize, lost: usize) {
        self.tally.add(End::Done, ended);
        self.lose(lost);
    }

    /// Acknowledges and leases in one transaction. Returns the leased messages, and the number of
    /// leases that were lost before the acknowledgement.
    async fn ack_and_lease_together(
        &self,
        done: &[Finished<()>],
        n: usize,
        linger: Option<Linger>,
    ) -> Result<(Dequeued<T>, usize)> {
        let leases = done.iter().map(|done| done.lease);
        if n == 0 {
            return Ok((Dequeued::default(), lost_of(self.queue.ack(leases).await)?.len()));
        }
        // Requests the length that the heartbeat renews, even if the queue's lease time has been
        // changed since. The partition's next worker relies on it, too.
        let request = Dequeue::up_to(n).lease_for(self.lease);
        let number = self.holder.as_ref().map(Holder::number);
        let answer = self.queue.ack_and_lease_soon(leases, request, self.options.isolates, number, linger).await;
        if let (Some(holder), Err(error)) = (&self.holder, &answer)
            && error.is_outcome_unknown()
        {
            holder.lose(self.lease);
        }
        let (mut dequeued, lost) = answer?;
        if !self.options.isolates {
            for message in &mut dequeued.messages {
                message.ran_out = false;
            }
        }
        Ok((dequeued, lost.len()))
    }

    /// Ends the lease of a failed message, or the leases of a malformed row.
    async fn end(&self, failed: &[Finished<Failed>]) -> Result<()> {
        let Some(Finished { answer, until, .. }) = failed.first() else { return Ok(()) };
        let leases: Vec<Lease> = failed.iter().map(|failed| failed.lease).collect();
        let (outcome, end) = match &answer.answer {
            Decision::Retry(after, reason) => {
                let after = after.saturating_sub(answer.at.elapsed());
                match self.queue.retry_or_bury(leases.iter().copied(), after, reason).await {
                    Ok(0) => (Ok(()), End::Retried),
                    Ok(_) => {
                        for Lease { id, attempt } in &leases {
                            warn!(
                                queue = self.name(),
                                id,
                                attempt,
                                outcome = "dead",
                                reason,
                                "dead letter: that was the last attempt"
                            );
                        }
                        (Ok(()), End::Dead)
                    }
                    Err(error) => (Err(error), End::Retried),
                }
            }
            Decision::Bury(reason) => (self.queue.bury(leases.iter().copied(), reason).await, End::Dead),
            // only failures are settled here
            Decision::Done | Decision::Settled | Decision::Released | Decision::Lost => return Ok(()),
        };
        let lost = match lost_of(outcome) {
            Ok(lost) => lost.len(),
            // Keeps the message in the order of its key until its lease ends, in a queue with keys.
            Err(error) if is_of_message(&error) => {
                for lease in &leases {
                    self.refused(*lease, &error);
                    self.held().confirm_at_the_end(*lease, *until);
                }
                self.lose(leases.len());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.held().confirm(leases.iter().copied());
        self.tally.add(end, leases.len() - lost);
        self.lose(lost);
        Ok(())
    }

    /// Renews leases, and notifies the handlers whose leases are lost. Returns false if a lease was
    /// not renewed. That is a warning only if `is_first` is set, because more tries follow.
    pub async fn renew(&self, leases: &[Lease], lease: Duration, is_first: bool) -> bool {
        let asked = Instant::now();
        let failed = match lost_of(self.queue.extend_unlocked(leases, lease).await) {
            Ok(lost) => {
                self.held().renewed(leases, &lost, asked);
                return true;
            }
            Err(error) if error.is_refusal() && leases.len() > 1 => {
                let asked = Instant::now();
                let apart = Apart::of(leases, async |one| self.queue.extend_unlocked(&[one], lease).await).await;
                let lost: Vec<i64> = apart.lost.iter().map(|lease| lease.id).collect();
                self.held().renewed(&[&apart.ended[..], &apart.lost].concat(), &lost, asked);
                apart.failed
            }
            Err(error) => leases.iter().map(|lease| (*lease, error.clone())).collect(),
        };
        let Some((Lease { id, attempt }, error)) = failed.first() else { return true };
        let (queue, messages) = (self.name(), failed.len());
        if is_first {
            warn!(queue, messages, id, attempt, %error, "leases not renewed; trying again until they end");
        } else {
            debug!(queue, messages, id, attempt, %error, "leases still not renewed");
        }
        false
    }

    /// Notifies handlers whose leases are lost, long before the next renewal would detect the loss.
    pub async fn check(&self, leases: &[Lease]) {
        if leases.is_empty() {
            return;
        }
        match self.queue.gone(leases).await {
            Ok(gone) => self.held().gone(leases, &gone),
            Err(error) => debug!(queue = self.name(), %error, "leases not checked"), // the next renewal finds lost leases too
        }
    }

    pub fn lose(&self, messages: usize) {
        if messages > 0 {
            self.tally.add(End::Lost, messages);
            warn!(queue = self.name(), messages, outcome = "lost", "leases lost; the results are discarded");
        }
    }
}

/// Decisions that are being settled. Dropping this value keeps unsettled decisions for the next
/// try.
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

/// Converts an error about lost leases to the ids of their messages. Returns other errors
/// unchanged.
pub(super) fn lost_of(outcome: Result<(), Error>) -> Result<Vec<i64>> {
    match outcome {
        Err(error) if error.is_lease_lost() => Ok(error.lost_ids().to_vec()),
        outcome => outcome.map(|()| Vec::new()),
    }
}
