//! Collects the results of handlers by leased row, without I/O.

use std::time::{Duration, Instant};

use crate::queue::message::Lease;

/// The way to settle a message, as its handler and the retry policy decided.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    Done,
    /// The handler ended the lease itself, and the message is already counted.
    Settled,
    /// The lease has ended, or ends with the handler's open transaction. It is already counted.
    Released,
    /// The lease was lost, and is not counted yet.
    Lost,
    Retry(Duration, String),
    Bury(String),
}

/// A failure and the time of the decision. The retry delay starts at that time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failed {
    pub answer: Decision,
    pub at: Instant,
    /// The id of the malformed row, if the message failed because of it.
    pub row: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finished<A> {
    pub lease: Lease,
    pub until: Instant,
    pub answer: A,
}

impl Finished<Failed> {
    /// Returns true if both messages failed because of the same malformed row. Such a row is
    /// settled as a whole, because a split of it under its lease ends the lease.
    pub fn shares_row(&self, other: &Self) -> bool {
        self.answer.row.is_some() && self.answer.row == other.answer.row && self.lease.attempt == other.lease.attempt
    }
}

/// Decisions to be settled. Acknowledgements have a separate list because they are frequent.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ToSettle {
    pub done: Vec<Finished<()>>,
    pub failed: Vec<Finished<Failed>>,
}

impl ToSettle {
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        self.done.len() + self.failed.len()
    }

    pub fn append(&mut self, other: &mut Self) {
        self.done.append(&mut other.done);
        self.failed.append(&mut other.failed);
    }
}

/// A leased row. It is settled as a whole where possible, because settling a part splits the row.
#[derive(Default)]
struct LeasedRow {
    open: usize,
    answered: ToSettle,
    /// True if some messages of the row, but not all, already had results at the last heartbeat.
    partial: bool,
}

#[derive(Default)]
pub(super) struct Groups {
    rows: Vec<LeasedRow>,
    free: Vec<usize>,
    /// The row whose messages are arriving, and its number.
    arriving: Option<((i64, i32), usize)>,
    pub settling: ToSettle,
}

impl Groups {
    /// Returns a number for a new row.
    pub fn begin(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.rows.push(LeasedRow::default());
            self.rows.len() - 1
        })
    }

    /// Adds a message without a result to the row.
    pub fn open(&mut self, nr: usize) {
        self.rows[nr].open += 1;
    }

    /// Adds a leased message without a result to its row, and returns the row's number. The row
    /// stays open until the whole row has arrived.
    pub fn arrive(&mut self, lease: Lease) -> usize {
        // The ids of a row lie between two multiples of 1,024.
        let row = (lease.id >> 10, lease.attempt);
        let nr = match self.arriving {
            Some((of, nr)) if of == row => nr,
            _ => {
                self.arrived();
                let nr = self.begin();
                self.open(nr);
                self.arriving = Some((row, nr));
                nr
            }
        };
        self.open(nr);
        nr
    }

    /// Records that the last row of a lease has arrived.
    pub fn arrived(&mut self) {
        if let Some((_, nr)) = self.arriving.take() {
            self.close(nr);
        }
    }

    pub fn answered(&mut self, nr: usize) -> &mut ToSettle {
        &mut self.rows[nr].answered
    }

    /// Removes a message without a result from the row. If none is left, the row is settled.
    pub fn close(&mut self, nr: usize) {
        let group = &mut self.rows[nr];
        group.open -= 1;
        if group.open == 0 {
            self.settling.append(&mut group.answered);
            group.partial = false;
            self.free.push(nr);
        }
    }

    /// Settles results that have waited for the rest of their row since the last heartbeat.
    pub fn beat(&mut self) {
        for group in &mut self.rows {
            if group.partial {
                self.settling.append(&mut group.answered);
            }
            group.partial = !group.answered.is_empty();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.len() == self.free.len() && self.settling.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(groups: &mut Groups, nr: usize, id: i64) {
        let lease = Lease { id, attempt: 1 };
        groups.answered(nr).done.push(Finished { lease, until: Instant::now(), answer: () });
        groups.close(nr);
    }

    #[test]
    fn a_row_is_settled_as_a_whole() {
        let mut groups = Groups::default();
        let nr = groups.begin();
        (0..3).for_each(|_| groups.open(nr));
        for id in 1..3 {
            finish(&mut groups, nr, id);
            assert!(groups.settling.is_empty());
        }
        finish(&mut groups, nr, 3);
        assert_eq!(groups.settling.len(), 3);
        assert_eq!(groups.begin(), nr, "its number is free");
    }

    #[test]
    fn part_of_a_row_waits_one_heartbeat_for_the_rest() {
        let mut groups = Groups::default();
        let nr = groups.begin();
        (0..3).for_each(|_| groups.open(nr));
        finish(&mut groups, nr, 1);
        groups.beat();
        assert!(groups.settling.is_empty());
        groups.beat();
        assert_eq!(groups.settling.len(), 1);
        finish(&mut groups, nr, 2);
        groups.beat();
        assert_eq!(groups.settling.len(), 1, "a beat for the second as well");
        finish(&mut groups, nr, 3);
        assert_eq!(groups.settling.len(), 3);
        assert!(!groups.is_empty());
    }
}
