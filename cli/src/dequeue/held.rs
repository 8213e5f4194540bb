//! Leases of what is not known to be delivered.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use trunkline::{Lease, Queue};

use crate::{
    error::Result,
    print::{self, thousands},
    text::Text,
};

/// The lease of a message that was sent to be written.
struct Lent {
    lease: Lease,
    /// Where the message ends in all that was written.
    end: u64,
    /// It was acknowledged, and the connection broke before the answer.
    unanswered: bool,
}

/// Leases in the order in which their messages are written.
#[derive(Default)]
pub struct Held {
    leases: VecDeque<Lent>,
    /// In the archive, once they are acknowledged.
    keep: bool,
    late: u64,
    unsure: u64,
}

impl Held {
    pub fn new(keep: bool) -> Self {
        Self { keep, ..Self::default() }
    }

    pub fn add(&mut self, lease: Lease, end: u64) {
        self.leases.push_back(Lent { lease, end, unanswered: false });
    }

    /// Acknowledges what ends within the bytes that were delivered.
    pub async fn acknowledge(&mut self, queue: &Queue<Text>, delivered: u64) -> Result<()> {
        let count = self.leases.partition_point(|lent| lent.end <= delivered);
        let leases = self.leases.range(..count).map(|lent| lent.lease);
        let outcome = match self.keep {
            true => queue.archive(leases).await,
            false => queue.ack(leases).await,
        };
        if outcome.as_ref().is_err_and(trunkline::Error::is_outcome_unknown) {
            self.leases.range_mut(..count).for_each(|lent| lent.unanswered = true);
        }
        self.note_lost(outcome)?;
        self.leases.drain(..count.min(self.leases.len()));
        Ok(())
    }

    pub async fn extend(&mut self, queue: &Queue<Text>, by: Duration) -> Result<()> {
        let outcome = queue.extend(self.leases.iter().map(|lent| lent.lease), by).await;
        self.note_lost(outcome)
    }

    pub async fn give_back(&mut self, queue: &Queue<Text>) -> Result<()> {
        match queue.release(self.leases.iter().map(|lent| lent.lease)).await {
            Err(error) if error.is_lease_lost() => {} // they are back already
            outcome => outcome?,
        }
        self.leases.clear();
        Ok(())
    }

    /// Forgets the leases that are lost, where that is all that went wrong.
    fn note_lost(&mut self, outcome: trunkline::Result<()>) -> Result<()> {
        match outcome {
            Err(error) if error.is_lease_lost() => {
                let lost: BTreeSet<i64> = error.lost_ids().iter().copied().collect();
                let (late, unsure) = (&mut self.late, &mut self.unsure);
                self.leases.retain(|lent| {
                    let is_lost = lost.contains(&lent.lease.id);
                    *(if lent.unanswered { &mut *unsure } else { &mut *late }) += u64::from(is_lost);
                    !is_lost
                });
                Ok(())
            }
            outcome => Ok(outcome?),
        }
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
                 they are done, or come again if their leases had ended"
            ));
        }
    }
}
