//! How leases end: calls gather, and a task settles what has gathered.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;
use tokio_postgres::types::ToSql;
use tracing::Instrument;

use crate::{
    error::{Error, Result},
    queue::{
        handle::{Queue, Shared},
        message::{Lease, Settled},
        metric::End,
        settle::{ENDING, Ending, Lost, Request, Settlement, Settling},
        span,
    },
};

/// The ids that a queue gives: from the first row's on, and with room for a row above the last.
const IDS: std::ops::RangeInclusive<i64> = 1024..=i64::MAX - 1024;
/// The longest lease, and the longest delay.
const LONGEST: f64 = 365.0 * 86_400.0;

impl<T> Queue<T> {
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
        if let Some(settling) = self.shared.settler.join(Request { ending, leases, done }) {
            tokio::spawn(settle_all(self.shared.clone(), settling));
        }
        answer.await.unwrap_or_else(|_| Err(Error::ended(ENDING, true)))
    }
}

/// Sorted and distinct. One that no queue has given is refused here, where it is its own caller's error: in a statement it
/// would be an error of everybody who shares that.
pub(super) fn checked<L: Into<Lease>>(queue: &str, leases: impl IntoIterator<Item = L>) -> Result<Vec<Lease>> {
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

/// A lease time as a number that Postgres can make an interval of, to say that it is out of bounds where it is.
pub(super) fn seconds(lease: Duration) -> f64 {
    lease.as_secs_f64().min(1e9)
}

/// The ids of those that are not among the settled.
pub(super) fn lost(leases: &[Lease], settled: impl IntoIterator<Item = Settled>) -> Vec<i64> {
    Lost::of(leases.len(), settled.into_iter().collect()).among(leases)
}

/// Settles what has gathered, statement after statement, until nothing waits.
async fn settle_all(shared: Arc<Shared>, mut settling: Settling) {
    loop {
        let settlements = settling.next();
        if settlements.is_empty() {
            return;
        }
        for settlement in settlements {
            shared.settle(settlement).await;
        }
    }
}

impl Shared {
    /// Settles and answers. What the server refuses of several calls together, it is asked for each of them alone: strangers do
    /// not fail for each other.
    async fn settle(&self, settlement: Settlement) {
        match self.end_leases(&settlement).await {
            Err(error) if settlement.is_shared() && error.is_refusal() => {
                for alone in settlement.apart() {
                    let outcome = self.end_leases(&alone).await;
                    self.answer(alone, outcome);
                }
            }
            outcome => self.answer(settlement, outcome),
        }
    }

    fn answer(&self, settlement: Settlement, outcome: Result<Vec<Settled>>) {
        let comes_back = matches!(settlement.ending, Ending::Release | Ending::Retry(..) | Ending::Charge(..));
        if outcome.is_ok() && comes_back {
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
