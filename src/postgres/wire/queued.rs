use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::Notify;

use super::{
    Bound, CachedStatement, InFlight, Use,
    bound::Over,
    frame::frames,
    inbox::{Came, Delivery},
    socket::Socket,
};
use crate::{error::server::ServerError, postgres::target::Limits};

/// The state that callers and the driver share.
#[derive(Default)]
pub(super) struct Link {
    queued: Mutex<Queued>,
    pub limits: Limits,
    pub usage: Use,
    /// The driver has something to write, or to end for.
    pub wake: Notify,
    /// There is room in the buffer again.
    pub room: Notify,
}

#[derive(Default)]
pub(super) struct Queued {
    /// Groups that the driver has not taken yet.
    pub bytes: BytesMut,
    /// For a caller that finds no statement running.
    pub socket: Option<Socket>,
    /// Groups that were sent or are about to be, oldest first: answers come in this order.
    pub groups: VecDeque<AwaitedGroup>,
    pub named: HashMap<Arc<str>, Arc<CachedStatement>>,
    /// Names so far.
    pub names: u64,
    /// The connection has ended.
    pub ended: Option<Why>,
    /// No caller is left: the driver says goodbye once everything is answered.
    pub leaving: bool,
    /// A statement may have changed the session beyond its transaction.
    pub soiled: bool,
}

/// Why a connection is over, where the server said so.
#[derive(Debug, Clone, Default)]
pub(super) struct Why(pub Option<Arc<ServerError>>);

/// A group whose answer has not come, or not whole.
pub(super) struct AwaitedGroup {
    came: Came,
    /// Bytes so far; once it is more than its bound, those since the last look.
    bytes: usize,
    /// Bytes of a reply from which on its rows are counted.
    counted_at: usize,
    pub bound: Bound,
    /// Where it is counted as long as it is here.
    pub load: Option<InFlight>,
    /// How many of them are handed out already.
    handed_out: usize,
    /// Its caller reads the reply in parts, as they come.
    pub in_parts: bool,
    /// The server may ask it for the data of a copy, which is on its way already.
    pub copies: bool,
    pub to: To,
}

impl AwaitedGroup {
    pub fn new(to: To) -> Self {
        Self {
            came: Came::default(),
            bytes: 0,
            counted_at: KEPT_BEYOND,
            bound: Bound::default(),
            load: None,
            handed_out: 0,
            in_parts: false,
            copies: false,
            to,
        }
    }

    /// Keeps whole messages of the reply; beyond its bound only those that say how its statements
    /// ended.
    pub fn keep(&mut self, chunk: Bytes, limit: usize) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(chunk.len());
        self.came.chunks.push(chunk);
        if self.came.over.is_some() && self.bytes <= KEPT_BEYOND {
            return Ok(()); // the next look is not at once
        }
        if self.came.over.is_none() {
            self.came.over = self.over(limit);
        }
        if self.came.over.is_none() {
            self.hand_out();
            return Ok(());
        }
        let mut ends = BytesMut::new();
        for chunk in self.came.chunks.drain(..) {
            for (kind, body) in frames(&chunk).filter(|(kind, _)| ENDS.contains(kind)) {
                ends.put_u8(kind);
                ends.put_u32(body.len() as u32 + 4);
                ends.extend_from_slice(body);
            }
        }
        self.bytes = 0;
        if ends.len() > limit {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer without an end"));
        }
        self.came.chunks.push(ends.freeze());
        Ok(())
    }

    /// What the reply is more than, if it is. Rows are counted each time that the reply has
    /// doubled, and never in a small one.
    fn over(&mut self, limit: usize) -> Option<Over> {
        if self.bytes > limit && !self.bound.whole {
            return Some(Over::Bytes(limit));
        }
        let most = self.bound.rows.filter(|_| self.bytes > self.counted_at)?;
        self.counted_at = self.bytes.saturating_mul(2);
        let rows = self.came.chunks.iter().flat_map(|chunk| frames(chunk)).filter(|(kind, _)| *kind == b'D').count();
        (rows > most).then_some(Over::Rows(most))
    }

    fn hand_out(&mut self) {
        if let To::Caller(delivery) = &self.to
            && self.in_parts
            && self.bytes - self.handed_out >= PART
        {
            self.handed_out = self.bytes;
            delivery.part(std::mem::take(&mut self.came));
        }
    }

    /// The reply, or its rest, and its receiver.
    pub fn answered(self) -> (Came, To) {
        (self.came, self.to)
    }
}

/// Bytes of a reply that are worth waking their caller while the rest is still to come. From 8 to
/// 64 KiB, a list of 10,000 rows took the same time: a fifth less than decoded at its end.
const PART: usize = 32 << 10;
/// Messages that say how a statement ended.
const ENDS: &[u8] = b"CEIs";
/// Bytes of an answer that is too large that gather before its rows are dropped; the rows of a
/// smaller one are not counted.
const KEPT_BEYOND: usize = 1 << 20;

/// Whom an answer is for.
pub(super) enum To {
    /// Who may be gone.
    Caller(Delivery),
    /// A statement that is being prepared.
    CachedStatement(Arc<CachedStatement>),
    /// No caller waits, as for the closing of a statement. It cannot fail.
    NoCaller,
}

impl Link {
    pub fn new(limits: Limits, usage: Use) -> Self {
        Self { limits, usage, ..Self::default() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Queued> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
