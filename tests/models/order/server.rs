//! The server's side of the protocol of partitions: one partition, and the messages of one key in
//! it.

use super::protocol::{Defect, Protocol};
use crate::queue::message::Lease;

/// The duration of a renewed lease.
pub(super) const LEASE: u8 = 2;
/// The duration of a renewed hold on the partition: one and a half times the lease.
pub(super) const HOLD: u8 = 3;
/// The delay of a failed message.
pub(super) const DELAY: u8 = 1;

/// A message, which is alone in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Row {
    pub attempt: u8,
    pub due: u8,
    /// True if the message was retried or released, so no worker holds it.
    pub failed: bool,
    /// True if the message is in its key's own backlog, not in the partition's backlog.
    pub lined: bool,
    pub gone: bool,
    /// The holder that leased the message last.
    by: u8,
}

/// The state of a lease statement that has read the partitions, and the time of that read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Listed {
    lane: Seen,
    at: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Seen {
    Mine {
        until: u8,
    },
    /// This holder holds the partition, and another holder requests it.
    Leaving,
    Free,
    /// Another holder holds the partition.
    Theirs,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub clock: u8,
    /// The holder of the partition, or 0 if there is none.
    holder: u8,
    /// The time at which the hold ends.
    held_until: u8,
    /// True if another holder requests the partition.
    wanted: bool,
    /// The time until which the key's own backlog waits. It is `None` if the key has none.
    line: Option<u8>,
    pub rows: Vec<Row>,
    /// True if an end took effect although another holder had the message.
    pub usurped: bool,
}

impl Server {
    pub fn new(messages: usize) -> Self {
        let rows = vec![Row::default(); messages];
        Self { clock: 0, holder: 0, held_until: 0, wanted: false, line: None, rows, usurped: false }
    }

    fn row(&self, lease: Lease) -> Row {
        self.rows[lease.id as usize]
    }

    fn is_leased(&self, row: Row) -> bool {
        !row.gone && row.attempt > 0 && !row.failed && row.due > self.clock
    }

    pub fn is_live(&self, lease: Lease) -> bool {
        let row = self.row(lease);
        self.is_leased(row) && i32::from(row.attempt) == lease.attempt
    }

    /// Returns true if all leases belong to the holder of the partition, which holds the partition
    /// for at least as long.
    pub fn is_one_holders(&self) -> bool {
        let leased = self.rows.iter().copied().filter(|row| self.is_leased(*row));
        leased.into_iter().all(|row| row.by == self.holder && row.due <= self.held_until)
    }

    /// Runs the first half of a lease statement, which reads the partitions.
    pub fn list(&self, holder: u8) -> Listed {
        let lane = match self.held_until > self.clock {
            true if self.holder != holder => Seen::Theirs,
            true if self.wanted => Seen::Leaving,
            true => Seen::Mine { until: self.held_until },
            false => Seen::Free,
        };
        Listed { lane, at: self.clock }
    }

    /// Runs the second half of a lease statement, under the partition's lock, like `do_lanes_`.
    pub fn lease(&mut self, protocol: &Protocol, holder: u8, n: usize, Listed { lane, at }: Listed) -> Vec<Lease> {
        let is_mine = self.holder == holder && self.held_until > self.clock;
        match lane {
            Seen::Mine { .. } if !is_mine && protocol.defect != Some(Defect::StaleList) => Vec::new(),
            Seen::Mine { until } => {
                let longer = until < at + LEASE;
                let until = if longer { at + HOLD } else { until };
                let got = self.along(protocol, n, until, holder);
                if longer && !got.is_empty() {
                    let cut_short = protocol.defect == Some(Defect::HoldCutShort);
                    self.held_until = if cut_short { until } else { until.max(self.held_until) };
                    (self.holder, self.wanted) = (holder, false);
                }
                got
            }
            Seen::Free if self.held_until <= self.clock => {
                let got = self.along(protocol, n, at + HOLD, holder);
                if !got.is_empty() {
                    (self.holder, self.held_until, self.wanted) = (holder, at + HOLD, false);
                }
                got
            }
            Seen::Free => Vec::new(),
            Seen::Leaving => {
                self.leave(protocol, holder);
                Vec::new()
            }
            Seen::Theirs => {
                self.wanted |= self.held_until > self.clock && self.holder != holder;
                Vec::new()
            }
        }
    }

    /// Leases due messages in order, like `do_along_`. Uses the key's own backlog if there is one,
    /// otherwise the partition's backlog.
    fn along(&mut self, protocol: &Protocol, n: usize, until: u8, by: u8) -> Vec<Lease> {
        let clock = self.clock;
        let is_due = |row: &Row| !row.gone && row.due <= clock;
        if let Some(wait) = self.line {
            self.rows.iter_mut().filter(|row| is_due(row)).for_each(|row| row.lined = true);
            if wait > clock {
                return Vec::new();
            }
        }
        let mut got = Vec::new();
        let along = self.rows.iter_mut().enumerate().filter(|(_, row)| is_due(row));
        for (id, row) in along.take(n) {
            let released = Row { attempt: row.attempt + 1, due: until.max(clock), failed: false, by, ..*row };
            *row = released;
            got.push(Lease { id: id as i64, attempt: i32::from(row.attempt) });
        }
        if got.is_empty() && self.rows.iter().all(|row| row.gone || !row.lined) {
            self.line = None;
        }
        debug_assert!(got.len() <= protocol.messages);
        got
    }

    /// Frees the partition, like `do_leave_`, unless messages in it are leased.
    pub fn leave(&mut self, protocol: &Protocol, holder: u8) {
        let keeps = self.rows.iter().any(|row| self.is_leased(*row)) && protocol.defect != Some(Defect::LeavesLeases);
        if self.holder == holder && self.held_until > self.clock && !keeps {
            (self.holder, self.held_until, self.wanted) = (0, 0, false);
        }
    }

    /// Returns the row of a valid lease, or `None` if the lease has ended.
    fn fenced(&mut self, protocol: &Protocol, lease: Lease) -> Option<&mut Row> {
        let unfenced = protocol.defect == Some(Defect::NoFence);
        if !(self.is_live(lease) || unfenced && self.is_leased(self.row(lease))) {
            return None;
        }
        self.usurped |= !self.is_live(lease);
        self.rows.get_mut(lease.id as usize)
    }

    pub fn ack(&mut self, protocol: &Protocol, lease: Lease) {
        if let Some(row) = self.fenced(protocol, lease) {
            *row = Row { gone: true, ..Row::default() };
        }
    }

    pub fn release(&mut self, protocol: &Protocol, lease: Lease) {
        let clock = self.clock;
        if let Some(row) = self.fenced(protocol, lease) {
            (row.due, row.failed) = (clock, true);
        }
    }

    /// Delays the message and blocks its key, like `do_retry_` with `do_hold_`.
    pub fn retry(&mut self, protocol: &Protocol, lease: Lease) {
        let due = self.clock + DELAY;
        if let Some(row) = self.fenced(protocol, lease) {
            (row.due, row.failed) = (due, true);
            if protocol.defect != Some(Defect::KeyNotHeld) {
                row.lined = true;
                self.line = Some(self.line.map_or(due, |line| line.max(due)));
            }
        }
    }

    /// Renews the lease and the hold on the partition, like `do_extend_` with `do_keep_`.
    pub fn extend(&mut self, protocol: &Protocol, lease: Lease) {
        let clock = self.clock;
        if let Some(row) = self.fenced(protocol, lease) {
            row.due = clock + LEASE;
            if self.held_until < clock + LEASE && protocol.defect != Some(Defect::HoldNotRenewed) {
                self.held_until = clock + HOLD;
            }
        }
    }
}
