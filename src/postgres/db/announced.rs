//! The announcement of a listening session, which decides whether producers notify it.
//!
//! A notification makes a commit wait for all other commits that notify. So a producer first asks
//! whether a session has announced itself on the channel (`sql/functions/announced.sql`). It asks
//! after it has written its rows, when its transaction has an id. A transaction that has an id at
//! the announcement may have asked before it, and may commit much later. So the listening session
//! relies on notifications only after all of these transactions have ended.

use tokio_postgres::{Client, Error};

const ANNOUNCE: &str = include_str!("../../../sql/statements/announce.sql");
const WITHDRAW: &str = include_str!("../../../sql/statements/withdraw.sql");
const RUNNING: &str = include_str!("../../../sql/statements/transactions.sql");

/// The channels on which some transactions may still commit without a notification.
#[derive(Debug, Default)]
pub(super) struct Announced {
    /// Channels that were announced together, and the transactions that may have asked before.
    waiting: Vec<(Vec<String>, Vec<String>)>,
}

impl Announced {
    /// Adds channels that were just announced. `unaware` contains the transactions that had an id
    /// after that.
    pub fn add(&mut self, channels: &[String], unaware: Vec<String>) {
        if !unaware.is_empty() {
            self.waiting.push((channels.to_vec(), unaware));
        }
    }

    /// Removes channels that are no longer announced.
    pub fn withdraw(&mut self, channels: &[String]) {
        for (waiting, _) in &mut self.waiting {
            waiting.retain(|channel| !channels.contains(channel));
        }
    }

    /// Removes all transactions except those that are still running.
    pub fn ended(&mut self, running: &[String]) {
        for (_, unaware) in &mut self.waiting {
            unaware.retain(|transaction| running.contains(transaction));
        }
        self.waiting.retain(|(_, unaware)| !unaware.is_empty());
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn awaits(&self, channel: &str) -> bool {
        self.waiting.iter().any(|(channels, _)| channels.iter().any(|waiting| waiting == channel))
    }
}

/// Announces that this session listens on the channels. Returns the transactions that may have
/// asked before.
pub(super) async fn announce(client: &Client, channels: &[String]) -> Result<Vec<String>, Error> {
    client.query(ANNOUNCE, &[&channels]).await?;
    running(client).await
}

pub(super) async fn withdraw(client: &Client, channels: &[String]) -> Result<(), Error> {
    client.query(WITHDRAW, &[&channels]).await.map(drop)
}

/// Returns the running transactions of this database that have an id.
pub(super) async fn running(client: &Client) -> Result<Vec<String>, Error> {
    Ok(client.query(RUNNING, &[]).await?.iter().map(|row| row.get(0)).collect())
}

#[cfg(test)]
#[path = "../../../tests/models/announced.rs"]
mod model;
