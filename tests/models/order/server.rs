//! The server's side of the lanes' protocol: one lane, and the messages of one key in it.

use super::protocol::{Defect, Protocol};
use crate::queue::message::Lease;

/// So long lasts a lease that is renewed, and so long a lane is held from then on: one and a half
/// as long.
pub(super) const LEASE: u8 = 2;
pub(super) const HOLD: u8 = 3;
/// A message that failed is due again so much later.
pub(super) const DELAY: u8 = 1;

/// A message, in a row of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Row {
    pub attempt: u8,
    pub due: u8,
    /// It was retried or released, so nobody holds it.
    pub failed: bool,
    /// It is in the line of its key, and not in that of the lane.
    pub lined: bool,
    pub gone: bool,
    /// Who leased it last.
    by: u8,
}

/// A statement that leases, once it has read which lanes there are, and when.
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
    /// Somebody wants it.
    Leaving,
    Free,
    /// Somebody else's.
    Theirs,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub clock: u8,
    /// Who holds the lane, 0 for nobody, until then; and whether somebody else wants it.
    holder: u8,
    held_until: u8,
    wanted: bool,
    /// The key has a line of its own, which waits until then.
    line: Option<u8>,
    pub rows: Vec<Row>,
    /// An end took effect although somebody else had the message.
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

    /// Whether all that is leased is one holder's, who holds the lane for at least as long.
    pub fn is_one_holders(&self) -> bool {
        let leased = self.rows.iter().copied().filter(|row| self.is_leased(*row));
        leased.into_iter().all(|row| row.by == self.holder && row.due <= self.held_until)
    }

    /// The first half of a statement that leases: what it sees of the lanes.
    pub fn list(&self, holder: u8) -> Listed {
        let lane = match self.held_until > self.clock {
            true if self.holder != holder => Seen::Theirs,
            true if self.wanted => Seen::Leaving,
            true => Seen::Mine { until: self.held_until },
            false => Seen::Free,
        };
        Listed { lane, at: self.clock }
    }

    /// The second half, under the lane's lock: as `do_lanes_`.
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

    /// As `do_along_`: what is due, in its order, along the line of the lane or, where it has one,
    /// of the key.
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

    /// As `do_leave_`: but for a lane of which something is leased.
    pub fn leave(&mut self, protocol: &Protocol, holder: u8) {
        let keeps = self.rows.iter().any(|row| self.is_leased(*row)) && protocol.defect != Some(Defect::LeavesLeases);
        if self.holder == holder && self.held_until > self.clock && !keeps {
            (self.holder, self.held_until, self.wanted) = (0, 0, false);
        }
    }

    /// The row of a lease that runs; none is refused as late.
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

    /// As `do_retry_`, with `do_hold_`: the key waits for it.
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

    /// As `do_extend_`, with `do_keep_`.
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
