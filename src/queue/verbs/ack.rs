//! `ack` and the other ways to end a lease. A task settles concurrent calls together, or a
//! statement runs in the caller's transaction.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_postgres::types::{ToSql, Type};
use tracing::Instrument;

use crate::{
    error::{Error, OneByOne, Result},
    postgres::{in_transaction::InTransaction, sql::Sql, transaction::Transaction},
    queue::{
        batch::{
            batcher::run_or_detach,
            notify::may_have_committed,
            settle::{ENDING, Ending, Lost, SettlePermit, SettleRequest, Settlement, lost_or_ok},
        },
        handle::{Queue, Shared},
        message::{Lease, Ranges, Settled, reason::reason_of},
        observe::{metric::End, span},
    },
};

/// The range of possible ids. It begins with the first row's ids, and ends one row below the
/// highest number.
const IDS: std::ops::RangeInclusive<i64> = 1024..=i64::MAX - 1024;
/// The maximum duration of a lease, and of a delay.
const LONGEST: f64 = 365.0 * 86_400.0;
/// The maximum wait of an extension for the transaction that has locked a message.
const LOCKED: Duration = Duration::from_secs(10);
/// The pause before the next try, if a trigger refuses to wait for a lock.
const PAUSE: Duration = Duration::from_millis(50);

impl<T> Queue<T> {
    /// Acknowledges messages: their work is done, and they are deleted. Accepts messages or their
    /// [`Lease`]s. Concurrent calls share statements.
    ///
    /// # Errors
    /// [`Error::is_lease_lost`](crate::Error::is_lease_lost), if any lease is lost.
    /// [`Error::lost_ids`](crate::Error::lost_ids) returns the ids of those messages; all other
    /// messages are acknowledged.
    pub async fn ack<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(Ending::Ack, leases).await.map(drop)
    }

    /// Acknowledges messages and keeps them in the queue's archive.
    ///
    /// # Errors
    /// The errors of [`Queue::ack`].
    pub async fn archive<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(Ending::Archive, leases).await.map(drop)
    }

    /// Returns messages to the queue after a failure, with `error` as the reason. They are due
    /// again after a delay; after their last attempt they become dead letters. A reason of more
    /// than 16,384 characters keeps its first 8,000 and its last 8,000.
    ///
    /// # Errors
    /// The errors of [`Queue::ack`].
    pub async fn retry<L: Into<Lease>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        after: Duration,
        error: impl Into<String>,
    ) -> Result<()> {
        self.retry_or_bury(leases, after, error).await.map(drop)
    }

    /// Retries like [`Queue::retry`]. Returns the number of messages that became dead letters
    /// because this was their last attempt.
    pub(crate) async fn retry_or_bury<L: Into<Lease>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        after: Duration,
        error: impl Into<String>,
    ) -> Result<usize> {
        self.settle(Ending::Retry(after.as_secs_f64(), reason_of(error)), leases).await
    }

    /// Makes messages dead letters at once, with `reason`, even if attempts are left. A long reason
    /// is shortened as in [`Queue::retry`].
    ///
    /// # Errors
    /// The errors of [`Queue::ack`].
    pub async fn bury<L: Into<Lease>>(
        &self,
        leases: impl IntoIterator<Item = L>,
        reason: impl Into<String>,
    ) -> Result<()> {
        self.settle(Ending::Bury(reason_of(reason)), leases).await.map(drop)
    }

    /// Extends leases to the time `by` from now: more than zero, at most 365 days.
    ///
    /// # Errors
    /// The errors of [`Queue::ack`]. `55P03`: another transaction has kept one of the messages
    /// locked for ten seconds.
    pub async fn extend<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>, by: Duration) -> Result<()> {
        let (began, leases): (_, Vec<Lease>) = (Instant::now(), leases.into_iter().map(Into::into).collect());
        loop {
            match self.extend_unlocked(&leases, by).await {
                // Pauses only briefly, because the statement itself waits half a second for the
                // lock before it fails.
                Err(error) if error.is_of_a_lock() && began.elapsed() < LOCKED => tokio::time::sleep(PAUSE).await,
                outcome => return outcome,
            }
        }
    }

    /// Extends leases, unless another transaction keeps one of the messages locked for half a
    /// second.
    pub(crate) async fn extend_unlocked(&self, leases: &[Lease], by: Duration) -> Result<()> {
        self.settle(Ending::Extend(by.as_secs_f64()), leases.iter().copied()).await.map(drop)
    }

    /// Returns messages to the queue unprocessed: they are due again at once, and the attempt is
    /// not counted. Their leases end.
    ///
    /// # Errors
    /// The errors of [`Queue::ack`].
    pub async fn release<L: Into<Lease>>(&self, leases: impl IntoIterator<Item = L>) -> Result<()> {
        self.settle(Ending::Release, leases).await.map(drop)
    }

    /// Acknowledges messages inside the caller's transaction. The transaction's other effects
    /// commit together with the acknowledgement, so these effects happen exactly once. The work
    /// itself needs no open transaction.
    ///
    /// In a queue with `max_leased`, the transaction also notifies waiting consumers. It can then
    /// not be prepared for a two-phase commit, because PostgreSQL refuses that.
    ///
    /// # Errors
    /// [`Error::is_lease_lost`](crate::Error::is_lease_lost): a lease has ended, or its message was
    /// cancelled or purged. Roll back to undo the effects.
    pub async fn ack_in<L: Into<Lease>>(
        &self,
        transaction: &impl InTransaction,
        leases: impl IntoIterator<Item = L>,
    ) -> Result<()> {
        let leases = checked(self.shared.name(), leases)?;
        if leases.is_empty() {
            return Ok(());
        }
        let ranges = self.carve(&leases).await?;
        self.ack_carved_in(transaction, &leases, &ranges).await
    }

    /// Splits the rows of leases in a separate transaction, because the other messages of a row
    /// must not wait for the commit of the caller, who ends these leases.
    pub(crate) async fn carve(&self, leases: &[Lease]) -> Result<Ranges> {
        let (shared, ranges) = (&self.shared, Ranges::of(leases, |_, _| true));
        shared.query_again(&shared.sql.carve, &[&ranges.ids, &ranges.sizes, &ranges.attempts]).await?;
        Ok(ranges)
    }

    /// Ends leases in the caller's transaction, after [`Queue::carve`].
    pub(crate) async fn ack_carved_in(
        &self,
        transaction: &impl InTransaction,
        leases: &[Lease],
        ranges: &Ranges,
    ) -> Result<()> {
        let shared = &self.shared;
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&ranges.ids, Type::INT8_ARRAY), (&ranges.sizes, Type::INT4_ARRAY), (&ranges.attempts, Type::INT4_ARRAY)];
        let (began, span) = (Instant::now(), span::settle(shared.name(), End::Done.name(), leases.len()));
        let settled = transaction.fetch(&shared.sql.ack.text, &params).instrument(span).await;
        let settled = settled.map_err(|error| error.or_no_queue(shared.name()))?;
        let settled = settled.iter().map(|row| Settled::checked(row.read(0)?, row.read(1)?, row.read(2)?));
        let settled = settled.collect::<Result<Vec<_>>>()?;
        let lost = lost(leases, settled);
        if shared.has_room_for_others() {
            transaction.fetch(&shared.notify_in().text, &[(&shared.channel, Type::TEXT)]).await?;
        }
        shared.metrics.settled(End::Done, leases.len(), lost.len(), began);
        lost_or_ok(shared.name(), lost)
    }

    /// Acknowledges like [`Queue::ack_in`], without waiting: the statement is sent together with
    /// the transaction's next statements. **Await the returned future before the commit**, or
    /// together with it, because only this future reports a lost lease.
    ///
    /// Commit soon, because other sessions that settle messages of the same rows wait for the
    /// commit.
    ///
    /// # Errors
    /// The errors of [`Transaction::send`]; the returned future has those of [`Queue::ack_in`].
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
        if self.shared.has_room_for_others() {
            drop(transaction.send_text::<()>(&self.shared.notify_in().text, &[&self.shared.channel]).await?);
        }
        let (shared, began) = (self.shared.clone(), Instant::now());
        Ok(Box::pin(async move {
            let settled = settled.await?.into_iter().map(|(id, size, attempt)| Settled::checked(id, size, attempt));
            let settled = settled.collect::<Result<Vec<_>>>()?;
            let lost = lost(&leases, settled);
            shared.metrics.settled(End::Done, leases.len(), lost.len(), began);
            lost_or_ok(shared.name(), lost)
        }))
    }

    /// Ends leases with a statement that other calls may share. Returns the number of messages that
    /// became dead letters because their attempts were exhausted.
    pub(crate) async fn settle<L: Into<Lease>>(
        &self,
        ending: Ending,
        leases: impl IntoIterator<Item = L>,
    ) -> Result<usize> {
        let leases = checked(self.shared.name(), leases)?;
        if leases.is_empty() {
            return Ok(0);
        }
        let bounds = match &ending {
            Ending::Extend(seconds) => Some((f64::MIN_POSITIVE, *seconds)),
            Ending::Retry(seconds, _) | Ending::Charge(Some(seconds), _) => Some((0.0, *seconds)),
            Ending::Charge(None, _) | Ending::Ack | Ending::Archive | Ending::Release | Ending::Bury(_) => None,
        };
        if let Some((least, seconds)) = bounds
            && !(least..=LONGEST).contains(&seconds)
        {
            return Err(Error::invalid(format!(
                "{seconds} seconds are out of bounds: a lease is more than zero, a delay at least zero, both at most 365 days"
            )));
        }
        let (done, answer) = oneshot::channel();
        // Sends extensions separately: other statements may wait for a lock.
        let extends = matches!(ending, Ending::Extend(_));
        let batchers = &self.shared.batchers;
        let batcher = if extends { &batchers.extend } else { &batchers.settle };
        let request = SettleRequest { ending, leases, done };
        if let Some(permit) = batcher.join(|unsettled| unsettled.add(request)) {
            tokio::spawn(settle_all(self.shared.clone(), permit));
        }
        answer.await.unwrap_or_else(|_| Err(Error::ended(ENDING, true)))
    }
}

/// Returns the leases sorted and distinct. Rejects ids that no queue has assigned, because they
/// would make all calls of a shared statement fail.
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

/// Returns the ids of the leases that were not settled.
pub(crate) fn lost(leases: &[Lease], settled: impl IntoIterator<Item = Settled>) -> Vec<i64> {
    Lost::of(leases.len(), settled.into_iter().collect()).among(leases)
}

/// Settles waiting requests, one statement after another.
async fn settle_all(shared: Arc<Shared>, mut permit: SettlePermit) {
    while let Some(settlements) = permit.next() {
        let answered = settlements.iter().map(Settlement::calls).sum();
        for settlement in settlements {
            let shared = shared.clone();
            run_or_detach(async move { shared.settle(settlement).await }).await;
        }
        permit.give_way(answered).await;
    }
}

impl Shared {
    /// Settles and answers the calls. If the server refuses a shared statement, each call gets its
    /// own statement, so that no call fails because of another.
    async fn settle(&self, settlement: Settlement) {
        match self.end_leases(&settlement).await {
            Err(error) if settlement.calls() > 1 && error.is_refusal() => {
                // The server waits half a second for each locked message, so the search for them is
                // limited in time.
                let locked = matches!(settlement.ending, Ending::Extend(_)).then_some(LOCKED);
                let mut search = OneByOne::default();
                for mut alone in settlement.apart() {
                    let outcome = search.send(self.end_alone(&mut alone), locked).await;
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

    /// Ends the leases of one call. If the database's encoding cannot represent a reason, the
    /// reason is rewritten in ASCII.
    async fn end_alone(&self, alone: &mut Settlement) -> Result<Vec<Settled>> {
        match self.end_leases(alone).await {
            Err(error) if error.is_of_encoding() && alone.is_beyond_ascii() => {
                alone.put_in_ascii();
                self.end_leases(alone).await
            }
            outcome => outcome,
        }
    }

    /// Returns the statement that notifies consumers at the commit of the caller's transaction.
    fn notify_in(&self) -> Sql {
        self.db.statement("notify_in", include_str!("../../../sql/statements/notify_in.sql"))
    }

    fn answer(&self, settlement: Settlement, outcome: Result<Vec<Settled>>) {
        let comes_back = matches!(settlement.ending, Ending::Release | Ending::Retry(..) | Ending::Charge(..));
        let frees_room = settlement.ending.end().is_some() && self.has_room_for_others();
        if may_have_committed(&outcome) && (comes_back || frees_room) {
            self.db.wake(&self.channel); // waiting consumers must check when the messages are due again
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
        let params = [&leases[..], more].concat();
        let rows = async {
            match settlement.ending {
                Ending::Extend(_) => self.query_unblocked(sql, &params).await,
                _ => self.query(sql, &params).await,
            }
        };
        let rows = rows.instrument(span).await?;
        let settled = rows.iter().map(Settled::of).collect::<Result<Vec<_>>>()?;
        if let Some(end) = end {
            let lost = asked.saturating_sub(Settled::messages(settled.iter().copied()));
            let dead = if end == End::Retried { Settled::messages(Settled::dead(&settled)) } else { 0 };
            self.metrics.settled(end, asked - dead, lost, began);
            self.metrics.died(dead);
        }
        Ok(settled)
    }
}
