//! At least once: leased, handed over, and ended by `ack`, `archive`, `retry`, `extend` or time.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::sync::oneshot;
use tokio_postgres::{
    Transaction,
    types::{ToSql, Type},
};
use tracing::{debug, warn};

use crate::{
    dequeue::{Dequeue, Dequeued},
    error::{Error, Result},
    message::{Lease, Message, Ranges, Settled},
    payload::Payload,
    queue::{Queue, Shared},
    settle::{Ending, Request, Settlement, lost_or_ok},
};

impl<T: Payload> Queue<T> {
    /// Leases up to `n` messages, oldest first, for the queue's lease time; none where none is due.
    ///
    /// Each is charged with an attempt now, so that a crash counts. Until the lease ends nobody else gets them. What
    /// is neither acknowledged nor retried by then comes back, one message a row; after the last attempt it is a dead
    /// letter. If the call is dropped before it returns, they are given back and the attempt is not charged.
    ///
    /// A message that cannot be read as `T` fails its attempt with that error; the others are returned.
    pub async fn at_least_once(&self, n: usize) -> Result<Vec<Message<T>>> {
        self.lease(n, Dequeue::Lease(None)).await
    }

    /// As [`Queue::at_least_once`], with a lease time of its own: more than zero, at most 365 days.
    pub async fn at_least_once_for(&self, n: usize, lease: Duration) -> Result<Vec<Message<T>>> {
        self.lease(n, Dequeue::Lease(Some(lease.as_secs_f64()))).await
    }

    async fn lease(&self, n: usize, how: Dequeue) -> Result<Vec<Message<T>>> {
        loop {
            let Dequeued { messages, unreadable } = self.shared.dequeue(n, how).await?;
            let nothing_else = messages.is_empty() && !unreadable.is_empty();
            for (lease, error) in unreadable {
                warn!(queue = self.shared.name(), id = lease.id, %error, "a message cannot be read");
                let (queue, pause) = (self.clone(), Duration::from_secs(1));
                tokio::spawn(async move { queue.retry([&lease], pause, error.to_string()).await });
            }
            if !nothing_else {
                return Ok(messages);
            }
        }
    }

    /// Acknowledges messages, and leases up to `n`: [`Queue::ack`], then [`Queue::at_least_once`] or, with a lease time,
    /// [`Queue::at_least_once_for`]. Returns what was leased, and the ids of those in `done` whose lease was lost.
    ///
    /// For callers that work on many messages at a time: one whose lease ran out may have killed its worker, so it comes
    /// alone, in a call of its own.
    ///
    /// # Errors
    /// The database's; then nothing was leased for this caller, and what is still leased of `done` may be acknowledged again.
    pub async fn ack_and_lease<L: Into<Lease>>(
        &self,
        done: impl IntoIterator<Item = L>,
        n: usize,
        lease: Option<Duration>,
    ) -> Result<(Vec<Message<T>>, Vec<i64>)> {
        let done: Vec<Lease> = done.into_iter().map(Into::into).collect();
        let acknowledges = !done.is_empty();
        let lost = match self.ack(done).await {
            Err(error) if error.is_lease_lost() => error.lost_ids().to_vec(),
            outcome => outcome.map(|()| Vec::new())?,
        };
        match self.lease(n, Dequeue::LeaseApart(lease.map(|lease| lease.as_secs_f64()))).await {
            Err(error) if acknowledges => {
                debug!(queue = self.shared.name(), %error, "acknowledged, but nothing leased");
                Ok((Vec::new(), lost)) // the next lease will say it again
            }
            outcome => outcome.map(|messages| (messages, lost)),
        }
    }

    /// Gives messages back unharmed: due again at once, and the attempt is not charged. The leases end with it.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn release<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(Ending::Release, leases).await
    }

    /// Acknowledges messages: they are done and gone. Takes messages or their [`Lease`]s; concurrent calls share
    /// statements.
    ///
    /// # Errors
    /// [`Error::is_lease_lost`] for those of [`Error::lost_ids`]; the others are acknowledged.
    pub async fn ack<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(Ending::Ack, leases).await
    }

    /// Acknowledges messages and keeps them in the queue's archive.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn archive<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(Ending::Archive, leases).await
    }

    /// Gives messages back after a failure: due again after a delay, or dead letters after their last attempt, with
    /// `error` as the reason.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn retry<L: Into<Lease>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        after: Duration,
        error: impl Into<String>,
    ) -> Result<()> {
        self.settle(Ending::Retry(after.as_secs_f64(), as_text(error)), leases).await
    }

    /// Makes messages dead letters at once, with `reason`, however many attempts are left.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn bury<L: Into<Lease>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        reason: impl Into<String>,
    ) -> Result<()> {
        self.settle(Ending::Bury(as_text(reason)), leases).await
    }

    /// Makes leases end that long from now; more than zero, at most 365 days.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn extend<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>, by: Duration) -> Result<()> {
        self.settle(Ending::Extend(by.as_secs_f64()), leases).await
    }

    /// Acknowledges messages inside the caller's transaction: the effects and the acknowledgement commit together,
    /// which makes the effects exactly once, without a transaction being open during the work.
    ///
    /// # Errors
    /// [`Error::is_lease_lost`]: roll back, so that the effects are undone; someone else has the message.
    pub async fn ack_in<L: Into<Lease>>(
        &self,
        transaction: &Transaction<'_>,
        leases: impl IntoIterator<Item = L>,
    ) -> Result<()> {
        let leases = sorted(leases);
        if leases.is_empty() {
            return Ok(());
        }
        let (shared, ranges) = (&self.shared, Ranges::of(&leases, |_, _| true));
        // Neighbours in the same row must not wait for the caller's commit: cut them off, in a transaction of our own.
        shared.query_again(&shared.sql.carve, &[&ranges.ids, &ranges.sizes, &ranges.attempts]).await?;
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&ranges.ids, Type::INT8_ARRAY), (&ranges.sizes, Type::INT4_ARRAY), (&ranges.attempts, Type::INT4_ARRAY)];
        let settled = transaction.query_typed(&shared.sql.ack.text, &params).await;
        let settled =
            settled.map_err(|error| Error::of_statement("the transaction", error).or_no_queue(shared.name()))?;
        let settled = settled.iter().map(|row| Settled { id: row.get(0), size: row.get(1), attempt: row.get(2) });
        let settled: HashSet<Lease> = settled.flat_map(Settled::leases).collect();
        let lost = leases.iter().filter(|lease| !settled.contains(lease)).map(|lease| lease.id);
        lost_or_ok(shared.name(), lost.collect())
    }

    pub(crate) async fn settle<L: Into<Lease>>(
        &self,
        ending: Ending,
        leases: impl IntoIterator<Item = L>,
    ) -> Result<()> {
        let leases = sorted(leases);
        if leases.is_empty() {
            return Ok(());
        }
        if let Ending::Extend(seconds) | Ending::Retry(seconds, _) = &ending {
            let least = if matches!(ending, Ending::Extend(_)) { f64::MIN_POSITIVE } else { 0.0 };
            if !(least..=365.0 * 86_400.0).contains(seconds) {
                return Err(Error::invalid(format!(
                    "{seconds} seconds are out of bounds: a lease is more than zero, a delay at least zero, both at most 365 days"
                )));
            }
        }
        let (done, answer) = oneshot::channel();
        if self.shared.settler.join(Request { ending, leases, done }) {
            tokio::spawn(settle_all(self.shared.clone()));
        }
        answer.await.unwrap_or_else(|_| Err(Error::invalid("the runtime shut down before the lease was settled")))
    }
}

/// Postgres stores no NUL in text.
fn as_text(reason: impl Into<String>) -> String {
    reason.into().replace('\0', "\u{fffd}")
}

fn sorted<L: Into<Lease>>(leases: impl IntoIterator<Item = L>) -> Vec<Lease> {
    let mut leases: Vec<Lease> = leases.into_iter().map(Into::into).collect();
    leases.sort_unstable();
    leases.dedup();
    leases
}

/// Settles what has gathered, statement after statement, until nothing waits.
async fn settle_all(shared: Arc<Shared>) {
    loop {
        let settlements = shared.settler.next();
        if settlements.is_empty() {
            return;
        }
        for settlement in settlements {
            let outcome = shared.end_leases(&settlement).await;
            if outcome.is_ok() && matches!(settlement.ending, Ending::Release | Ending::Retry(..) | Ending::Charge(..))
            {
                shared.db.wake(&shared.channel); // sleepers learn when it is due again
            }
            settlement.answer(shared.name(), outcome);
        }
    }
}

impl Shared {
    async fn end_leases(&self, settlement: &Settlement) -> Result<Vec<Settled>> {
        let Settlement { ranges, delays, errors, .. } = settlement;
        let leases: [&(dyn ToSql + Sync); 3] = [&ranges.ids, &ranges.sizes, &ranges.attempts];
        let (sql, more): (_, &[&(dyn ToSql + Sync)]) = match &settlement.ending {
            Ending::Ack => (&self.sql.ack, &[]),
            Ending::Archive => (&self.sql.archive, &[]),
            Ending::Release => (&self.sql.release, &[]),
            Ending::Extend(by) => (&self.sql.extend, &[by]),
            Ending::Retry(..) => (&self.sql.retry, &[delays, errors]),
            Ending::Bury(_) => (&self.sql.bury, &[errors]),
            Ending::Charge(..) => (&self.sql.charge, &[delays, errors]),
        };
        let rows = self.query(sql, &[&leases[..], more].concat()).await?;
        Ok(rows.iter().map(|row| Settled { id: row.get(0), size: row.get(1), attempt: row.get(2) }).collect())
    }
}
