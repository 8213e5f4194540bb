//! `ack` and the other ends of leases: calls gather for a task that settles them, or run in the
//! caller's transaction.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_postgres::types::{ToSql, Type};
use tracing::Instrument;

use crate::{
    error::{Error, Result, Search},
    postgres::{in_transaction::InTransaction, transaction::Transaction},
    queue::{
        batch::settle::{ENDING, Ending, Lost, SettlePermit, SettleRequest, Settlement, lost_or_ok},
        handle::{Queue, Shared},
        message::{Lease, Ranges, Settled, reason::reason_of},
        observe::{metric::End, span},
    },
};

/// The ids that a queue gives: from the first row's on, and with room for a row above the last.
const IDS: std::ops::RangeInclusive<i64> = 1024..=i64::MAX - 1024;
/// The longest lease, and the longest delay.
const LONGEST: f64 = 365.0 * 86_400.0;

impl<T> Queue<T> {
    /// Acknowledges messages: they are done and gone. Takes messages or their [`Lease`]s;
    /// concurrent calls share statements.
    ///
    /// # Errors
    /// [`Error::is_lease_lost`](crate::Error::is_lease_lost) for those of
    /// [`Error::lost_ids`](crate::Error::lost_ids); the others are acknowledged.
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

    /// Gives messages back after a failure: due again after a delay, or dead letters after their
    /// last attempt, with `error` as the reason. Of a reason of more than 16,384 characters, the
    /// first 8,000 and the last 8,000 are kept.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn retry<L: Into<Lease>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        after: Duration,
        error: impl Into<String>,
    ) -> Result<()> {
        self.settle(Ending::Retry(after.as_secs_f64(), reason_of(error)), leases).await
    }

    /// Makes messages dead letters at once, with `reason`, however many attempts are left. A long
    /// reason is kept as by [`Queue::retry`].
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn bury<L: Into<Lease>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        reason: impl Into<String>,
    ) -> Result<()> {
        self.settle(Ending::Bury(reason_of(reason)), leases).await
    }

    /// Makes leases end that long from now; more than zero, at most 365 days.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn extend<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>, by: Duration) -> Result<()> {
        self.settle(Ending::Extend(by.as_secs_f64()), leases).await
    }

    /// Gives messages back unharmed: due again at once, and the attempt is not charged. The leases
    /// end with it.
    ///
    /// # Errors
    /// As [`Queue::ack`].
    pub async fn release<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(Ending::Release, leases).await
    }

    /// Acknowledges messages inside the caller's transaction: the effects and the acknowledgement
    /// commit together, which makes the effects exactly once, without a transaction being open
    /// during the work.
    ///
    /// # Errors
    /// [`Error::is_lease_lost`](crate::Error::is_lease_lost): roll back, so that the effects are
    /// undone; someone else has the message.
    pub async fn ack_in<L: Into<Lease>>(
        &self,
        transaction: &impl InTransaction,
        leases: impl IntoIterator<Item = L>,
    ) -> Result<()> {
        let leases = checked(self.shared.name(), leases)?;
        if leases.is_empty() {
            return Ok(());
        }
        let (shared, ranges) = (&self.shared, Ranges::of(&leases, |_, _| true));
        // Neighbours in the same row must not wait for the caller's commit: cut them off, in a
        // transaction of our own.
        shared.query_again(&shared.sql.carve, &[&ranges.ids, &ranges.sizes, &ranges.attempts]).await?;
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&ranges.ids, Type::INT8_ARRAY), (&ranges.sizes, Type::INT4_ARRAY), (&ranges.attempts, Type::INT4_ARRAY)];
        let (began, span) = (Instant::now(), span::settle(shared.name(), End::Done.name(), leases.len()));
        let settled = transaction.fetch(&shared.sql.ack.text, &params).instrument(span).await;
        let settled = settled.map_err(|error| error.or_no_queue(shared.name()))?;
        let settled = settled.iter().map(|row| Settled::checked(row.read(0)?, row.read(1)?, row.read(2)?));
        let settled = settled.collect::<Result<Vec<_>>>()?;
        let lost = lost(&leases, settled);
        shared.metrics.settled(End::Done, leases.len(), lost.len(), began);
        lost_or_ok(shared.name(), lost)
    }

    /// As [`Queue::ack_in`], without waiting: the acknowledgement leaves with the transaction's
    /// next statements. **Await what is returned before the commit**, or with it: only its answer
    /// says whether a lease was lost.
    ///
    /// Commit soon: until then, others wait who settle messages of the same rows.
    ///
    /// # Errors
    /// As [`Transaction::send`]; what is returned errs as [`Queue::ack_in`].
    pub async fn send_ack<L: Into<Lease>>(
        &self,
        transaction: &Transaction,
        leases: impl IntoIterator<Item = L>,
    ) -> Result<BoxFuture<'static, Result<()>>> {
        let leases = checked(self.shared.name(), leases)?;
        let ranges = Ranges::of(&leases, |_, _| true);
        let ranges: [&(dyn ToSql + Sync); 3] = [&ranges.ids, &ranges.sizes, &ranges.attempts];
        let sent = transaction.send_text::<Vec<(i64, i32, i32)>>(&self.shared.sql.ack.text, &ranges).await;
        let settled = sent.map_err(|error| error.or_no_queue(self.shared.name()))?;
        let (shared, began) = (self.shared.clone(), Instant::now());
        Ok(Box::pin(async move {
            let settled = settled.await?.into_iter().map(|(id, size, attempt)| Settled::checked(id, size, attempt));
            let settled = settled.collect::<Result<Vec<_>>>()?;
            let lost = lost(&leases, settled);
            shared.metrics.settled(End::Done, leases.len(), lost.len(), began);
            lost_or_ok(shared.name(), lost)
        }))
    }

    pub(crate) async fn settle<L: Into<Lease>>(
        &self,
        ending: Ending,
        leases: impl IntoIterator<Item = L>,
    ) -> Result<()> {
        let leases = checked(self.shared.name(), leases)?;
        if leases.is_empty() {
            return Ok(());
        }
        let bounds = match &ending {
            Ending::Extend(seconds) => Some((f64::MIN_POSITIVE, *seconds)),
            Ending::Retry(seconds, _) | Ending::Charge(seconds, _) => Some((0.0, *seconds)),
            Ending::Ack | Ending::Archive | Ending::Release | Ending::Bury(_) => None,
        };
        if let Some((least, seconds)) = bounds
            && !(least..=LONGEST).contains(&seconds)
        {
            return Err(Error::invalid(format!(
                "{seconds} seconds are out of bounds: a lease is more than zero, a delay at least zero, both at most 365 days"
            )));
        }
        let (done, answer) = oneshot::channel();
        let request = SettleRequest { ending, leases, done };
        if let Some(permit) = self.shared.settle_batcher.join(|unsettled| unsettled.add(request)) {
            tokio::spawn(settle_all(self.shared.clone(), permit));
        }
        answer.await.unwrap_or_else(|_| Err(Error::ended(ENDING, true)))
    }
}

/// Sorted and distinct. One that no queue has given is refused here, where it is its own caller's
/// error: in a statement it would be an error of everybody who shares that.
pub(crate) fn checked<L: Into<Lease>>(queue: &str, leases: impl IntoIterator<Item = L>) -> Result<Vec<Lease>> {
    let mut leases: Vec<Lease> = leases.into_iter().map(Into::into).collect();
    if let Some(lease) = leases.iter().find(|lease| !IDS.contains(&lease.id)) {
        return Err(Error::invalid(format!(
            "no queue has given a message {}, so queue {queue:?} has no lease of it; pass messages or leases as they were returned",
            lease.id
        )));
    }
    leases.sort_unstable();
    leases.dedup();
    Ok(leases)
}

/// The ids of those that are not among the settled.
pub(crate) fn lost(leases: &[Lease], settled: impl IntoIterator<Item = Settled>) -> Vec<i64> {
    Lost::of(leases.len(), settled.into_iter().collect()).among(leases)
}

/// Settles the requests that wait, statement after statement.
async fn settle_all(shared: Arc<Shared>, mut permit: SettlePermit) {
    while let Some(settlements) = permit.next() {
        let answered = settlements.iter().map(Settlement::calls).sum();
        for settlement in settlements {
            shared.settle(settlement).await;
        }
        permit.give_way(answered).await;
    }
}

impl Shared {
    /// Settles and answers. What the server refuses of several calls together, it is asked for each
    /// of them alone: strangers do not fail for each other.
    async fn settle(&self, settlement: Settlement) {
        match self.end_leases(&settlement).await {
            Err(error) if settlement.calls() > 1 && error.is_refusal() => {
                let (mut search, mut futile) = (Search::default(), None::<Error>);
                for mut alone in settlement.apart() {
                    let outcome = match &futile {
                        Some(error) => Err(error.clone()),
                        None => self.end_alone(&mut alone).await,
                    };
                    match &outcome {
                        Ok(_) => search.found_good(),
                        Err(error) if futile.is_none() && !search.goes_on() => futile = Some(error.clone()),
                        Err(_) => {}
                    }
                    self.answer(alone, outcome);
                }
            }
            Err(error) if error.is_of_encoding() && settlement.is_beyond_ascii() => {
                let mut alone = settlement;
                let outcome = self.end_alone(&mut alone).await;
                self.answer(alone, outcome);
            }
            outcome => self.answer(settlement, outcome),
        }
    }

    /// Ends the leases of one call. A reason that the database's encoding cannot hold is no reason
    /// to keep its message.
    async fn end_alone(&self, alone: &mut Settlement) -> Result<Vec<Settled>> {
        match self.end_leases(alone).await {
            Err(error) if error.is_of_encoding() && alone.is_beyond_ascii() => {
                alone.put_in_ascii();
                self.end_leases(alone).await
            }
            outcome => outcome,
        }
    }

    fn answer(&self, settlement: Settlement, outcome: Result<Vec<Settled>>) {
        let comes_back = matches!(settlement.ending, Ending::Release | Ending::Retry(..) | Ending::Charge(..));
        if outcome.is_ok() && (comes_back || self.has_room_for_others()) {
            self.db.wake(&self.channel); // sleepers learn when it is due again
        }
        settlement.answer(self.name(), outcome);
    }

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
        let (began, asked, end) = (Instant::now(), ranges.messages(), settlement.ending.end());
        let span = span::settle(self.name(), end.map_or("extended", End::name), asked);
        let rows = self.query(sql, &[&leases[..], more].concat()).instrument(span).await?;
        let settled = rows.iter().map(Settled::of).collect::<Result<Vec<_>>>()?;
        if let Some(end) = end {
            self.metrics.settled(end, asked, asked.saturating_sub(Settled::messages(settled.iter().copied())), began);
        }
        Ok(settled)
    }
}
