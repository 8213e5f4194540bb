//! Leases of messages whose delivery is not yet confirmed.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use tokio::time::Instant;
use trunkline::shards;

use crate::{
    any::{AnyQueue, End, Id, Lent},
    error::Result,
    print::{self, thousands},
    text::Text,
};

/// The lease of a message that was sent to the writing thread.
struct Sent {
    lent: Lent,
    /// The number of bytes in the output up to the end of the message.
    end: u64,
    /// True if the connection broke before the server answered the acknowledgement.
    unanswered: bool,
}

pub struct Held {
    leases: VecDeque<Sent>,
    /// The time when all leases were last extended. If there was no lease before, the time of the
    /// first lease.
    extended: Instant,
    /// True if acknowledged messages are archived.
    keep: bool,
    late: u64,
    unsure: u64,
}

impl Held {
    pub fn new(keep: bool) -> Self {
        Self { leases: VecDeque::new(), extended: Instant::now(), keep, late: 0, unsure: 0 }
    }

    /// Returns the time at which the leases should be extended.
    pub fn extends_at(&self, lease: Duration) -> Instant {
        self.extended + lease / 3
    }

    pub fn add(&mut self, lent: Lent, end: u64) {
        if self.leases.is_empty() {
            self.extended = Instant::now();
        }
        self.leases.push_back(Sent { lent, end, unanswered: false });
    }

    /// Acknowledges the messages that end within the first `delivered` bytes.
    pub async fn acknowledge(&mut self, queue: &AnyQueue<Text>, delivered: u64) -> Result<()> {
        let count = self.leases.partition_point(|sent| sent.end <= delivered);
        let leases = self.leases.range(..count).map(|sent| sent.lent).collect();
        let outcome = queue.end(leases, if self.keep { End::Archive } else { End::Ack }).await;
        self.note(count, outcome, true)
    }

    /// Acknowledges the messages that end within the first `delivered` bytes. Extends the leases of
    /// all others if `extends` is true.
    pub async fn keep(&mut self, queue: &AnyQueue<Text>, delivered: u64, extends: bool) -> Result<()> {
        self.acknowledge(queue, delivered).await?;
        if extends { self.extend(queue, queue.description().lease).await } else { Ok(()) }
    }

    async fn extend(&mut self, queue: &AnyQueue<Text>, by: Duration) -> Result<()> {
        let asked = Instant::now();
        let outcome = queue.end(self.all(), End::Extend(by)).await;
        self.note(self.leases.len(), outcome, false)?;
        self.extended = asked;
        Ok(())
    }

    pub async fn give_back(&mut self, queue: &AnyQueue<Text>) -> Result<()> {
        match queue.end(self.all(), End::Release).await {
            Err(error) if error.is_lease_lost() => {} // another consumer has the messages, or they are no longer leased
            outcome => outcome?,
        }
        self.leases.clear();
        Ok(())
    }

    fn all(&self) -> Vec<Lent> {
        self.leases.iter().map(|sent| sent.lent).collect()
    }

    /// Notes the outcome of a call for the first `count` leases, which ended those that were not
    /// lost if `ends`. Drops all leases that have ended. Returns an error of any other kind.
    fn note(&mut self, count: usize, outcome: trunkline::Result<()>, ends: bool) -> Result<()> {
        let Err(error) = outcome else {
            self.leases.drain(..if ends { count } else { 0 });
            return Ok(());
        };
        let (lost, mut at) = (lost(&error), 0);
        let (late, unsure) = (&mut self.late, &mut self.unsure);
        self.leases.retain_mut(|sent| {
            at += 1;
            if at > count {
                return true;
            }
            if lost.contains(&sent.lent.id()) {
                *(if sent.unanswered { &mut *unsure } else { &mut *late }) += 1;
                return false;
            }
            // On each server, the call succeeds for all other leases if some are lost.
            let error = error_of(&error, sent.lent).filter(|error| !error.is_lease_lost());
            sent.unanswered |= ends && error.is_some_and(trunkline::Error::is_outcome_unknown);
            !ends || error.is_some()
        });
        if error.is_lease_lost() { Ok(()) } else { Err(error.into()) }
    }

    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    pub fn warn(&self) {
        if self.late > 0 {
            let late = thousands(self.late);
            print::note(format!(
                "warning: {late} messages were delivered after their leases had ended, and may come again"
            ));
        }
        if self.unsure > 0 {
            let unsure = thousands(self.unsure);
            print::note(format!(
                "warning: {unsure} messages were delivered, and the connection broke while they were acknowledged: \
                 they are acknowledged, or will be delivered again if their leases had ended"
            ));
        }
    }
}

/// Returns the error of the server that has the lease, or `None` if the call succeeded there.
fn error_of(error: &trunkline::Error, lent: Lent) -> Option<&trunkline::Error> {
    let Some(shard) = lent.shard else { return Some(error) };
    let is_its = |(name, _): &&(String, trunkline::Error)| *name == shard.to_string();
    error.shards().iter().find(is_its).map(|(_, error)| error)
}

/// Returns the ids of the messages whose leases were lost, on one server or on several.
fn lost(error: &trunkline::Error) -> BTreeSet<Id> {
    let plain = error.lost_ids().iter().map(|id| Id { shard: None, id: *id });
    let on = |(shard, error): &(String, trunkline::Error)| {
        let shard = shard.parse::<shards::Id>().ok();
        error
            .lost_ids()
            .iter()
            .filter_map(|id| Some(Id::from(shards::Sharded { shard: shard?, of: *id })))
            .collect::<Vec<_>>()
    };
    plain.chain(error.shards().iter().flat_map(on)).collect()
}
