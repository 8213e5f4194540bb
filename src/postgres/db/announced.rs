//! Announcements of a listening session, so that producers send notifications to it.
//!
//! A notification makes a commit wait for all other commits that notify. A producer therefore
//! checks first whether a session has announced itself on the channel
//! (`sql/functions/announced.sql`). The producer checks after it has written its rows, when its
//! transaction has an id.
//!
//! A transaction that already has an id at the time of the announcement may have checked before the
//! announcement, and may commit much later. The listening session therefore relies on notifications
//! only after all of these transactions have ended.

use std::time::Duration;

use super::session::Session;
use crate::{error::Result, postgres::sql::Sql};

/// The first and the longest pause between checks for ended transactions. The pauses do not delay
/// messages, because consumers still poll during this time.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
const ANNOUNCE: &str = include_str!("../../../sql/statements/announce.sql");
const WITHDRAW: &str = include_str!("../../../sql/statements/withdraw.sql");
const RUNNING: &str = include_str!("../../../sql/statements/transactions.sql");

/// The channels on which a transaction may still commit without a notification.
#[derive(Debug, Default)]
pub(super) struct Announced {
    checks: u32,
    /// Channels announced together, and the transactions that may have missed the announcement.
    waiting: Vec<(Vec<String>, Vec<String>)>,
}

impl Announced {
    /// Adds channels that were just announced. `unaware` contains the transactions that already had
    /// an id at the announcement.
    pub fn add(&mut self, channels: &[String], unaware: Vec<String>) {
        if !unaware.is_empty() {
            self.checks = 0;
            self.waiting.push((channels.to_vec(), unaware));
        }
    }

    /// Removes channels that the session no longer listens on.
    pub fn withdraw(&mut self, channels: &[String]) {
        for (waiting, _) in &mut self.waiting {
            waiting.retain(|channel| !channels.contains(channel));
        }
        self.waiting.retain(|(waiting, _)| !waiting.is_empty());
    }

    /// Removes all transactions that are not in `running`, because they have ended.
    pub fn ended(&mut self, running: &[String]) {
        self.checks += 1;
        for (_, unaware) in &mut self.waiting {
            unaware.retain(|transaction| running.contains(transaction));
        }
        self.waiting.retain(|(_, unaware)| !unaware.is_empty());
    }

    pub fn pause(&self) -> Duration {
        PAUSE.0.saturating_mul(1 << self.checks.min(8)).min(PAUSE.1)
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn awaits(&self, channel: &str) -> bool {
        self.waiting.iter().any(|(channels, _)| channels.iter().any(|waiting| waiting == channel))
    }
}

/// Announces that this session listens on the channels. Returns the transactions that may have
/// missed the announcement.
pub(super) async fn announce(session: &Session, channels: &[String]) -> Result<Vec<String>> {
    session.query(&Sql::new("announce", ANNOUNCE), &[&channels]).await?;
    running(session).await
}

pub(super) async fn withdraw(session: &Session, channels: &[String]) -> Result<()> {
    session.query(&Sql::new("withdraw", WITHDRAW), &[&channels]).await.map(drop)
}

/// Returns the running transactions in this database that have an id.
pub(super) async fn running(session: &Session) -> Result<Vec<String>> {
    let rows = session.query(&Sql::new("transactions", RUNNING), &[]).await?;
    rows.iter().map(|row| row.read(0)).collect()
}

#[cfg(test)]
#[path = "../../../tests/models/announced.rs"]
mod model;
