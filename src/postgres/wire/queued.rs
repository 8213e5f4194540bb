//! The state that callers and the driver share: queued bytes, and groups that await replies.

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::{
    Bound, CachedStatement, InFlight, ReplyMode, Use,
    frame::frames,
    inbox::{Came, Delivery, ends},
    reply_limit::Over,
    socket::Socket,
};
use crate::{error::server::ServerError, postgres::target::AnswerLimits};

#[derive(Default)]
pub(super) struct Link {
    queued: Mutex<Queued>,
    pub limits: AnswerLimits,
    pub usage: Use,
    /// Wakes the driver, so that it writes queued bytes or ends.
    pub wake: Notify,
    /// Signals that the buffer has room again.
    pub room: Notify,
}

#[derive(Default)]
pub(super) struct Queued {
    /// The bytes of groups that the driver has not taken yet.
    pub bytes: BytesMut,
    /// The bytes of groups that must follow the open copy, or `None` if no copy is open.
    pub behind_copy: Option<BytesMut>,
    /// The asynchronous messages from the server, if a caller collects them.
    pub asides: Option<VecDeque<(u8, Bytes)>>,
    /// A handle with which a caller can write directly if no statement is running.
    pub socket: Option<Socket>,
    /// The groups that await their replies, oldest first. Replies arrive in this order.
    pub groups: VecDeque<AwaitedGroup>,
    pub named: HashMap<Arc<str>, Arc<CachedStatement>>,
    /// Statements that the next uses of their texts prepare again, and that must be closed.
    pub forgotten: Vec<Arc<CachedStatement>>,
    pub names: u64,
    pub ended: Option<Why>,
    /// True if the last caller is gone. The driver then ends the session after the last reply.
    pub leaving: bool,
    /// True if a statement may have changed session state beyond the end of its transaction.
    pub soiled: bool,
    /// True if the driver has stopped reading because a stream is full.
    pub is_held: bool,
}

/// The error with which the server ended the connection, if it sent one.
#[derive(Debug, Clone, Default)]
pub(super) struct Why(pub Option<Arc<ServerError>>);

pub(super) struct AwaitedGroup {
    came: Came,
    /// The number of bytes received so far. Once the limit is exceeded, the count starts again at
    /// each check.
    bytes: usize,
    /// The number of bytes above which the rows will next be counted.
    counted_at: usize,
    pub bound: Bound,
    /// Counts the group as load until this value is dropped.
    pub load: Option<InFlight>,
    /// The number of bytes that have been passed to the caller.
    handed_out: usize,
    pub mode: ReplyMode,
    pub work: GroupWork,
    /// True if the group contains a copy with its data. The driver then ignores the server's
    /// request for the data.
    pub copies: bool,
    /// True if the caller of a copy may supply more data.
    pub is_open: bool,
    /// True if the server has requested the data of the copy.
    pub is_asked: bool,
    pub to: To,
}

/// The work that a group causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupWork {
    Statements,
    /// Closing statements or portals, and nothing else.
    Closes,
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
            mode: ReplyMode::Whole,
            work: GroupWork::Statements,
            copies: false,
            is_open: false,
            is_asked: false,
            to,
        }
    }

    /// Stores complete messages of the reply. Above the limit, stores only messages that end the
    /// reply to a statement.
    pub fn keep(&mut self, chunk: Bytes, limit: usize) -> io::Result<()> {
        if let (ReplyMode::Streamed, To::Caller(delivery)) = (self.mode, &self.to) {
            delivery.streamed(chunk, limit);
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(chunk.len());
        self.came.chunks.push(chunk);
        if self.came.over.is_some() && self.bytes <= KEPT_BEYOND {
            return Ok(()); // discards the rows only after `KEPT_BEYOND` bytes
        }
        if self.came.over.is_none() {
            self.came.over = self.over(limit);
        }
        if self.came.over.is_none() {
            self.hand_out();
            return Ok(());
        }
        let kept = ends(&std::mem::take(&mut self.came.chunks));
        self.bytes = 0;
        if kept.len() > limit {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer without an end"));
        }
        self.came.chunks.push(kept);
        Ok(())
    }

    /// Returns the limit that the reply exceeds, if any. Rows are counted whenever the size of the
    /// reply has doubled, but not in a small reply.
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
            && self.mode == ReplyMode::InParts
            && self.bytes - self.handed_out >= PART
        {
            self.handed_out = self.bytes;
            delivery.part(std::mem::take(&mut self.came));
        }
    }

    /// Returns true if the reader of a stream must take messages before the driver may read more.
    fn is_full(&self, limit: usize) -> bool {
        matches!(&self.to, To::Caller(delivery) if self.mode == ReplyMode::Streamed
            && delivery.unread() >= UNREAD.min(limit / 2))
    }

    /// Returns true if the group may wait for the reader of an earlier stream: a stream whose
    /// reader is not waiting, a group that no caller has sent, and one that only closes something
    /// and whose caller is gone. A rollback that no caller awaits must not wait, because it ends
    /// locks.
    fn can_wait(&self) -> bool {
        match &self.to {
            To::Caller(delivery) => {
                self.work == GroupWork::Closes && delivery.is_abandoned()
                    || self.mode == ReplyMode::Streamed && !delivery.is_awaited()
            }
            To::CachedStatement(_) => false,
            To::NoCaller => true,
        }
    }

    pub fn answered(self) -> (Came, To) {
        (self.came, self.to)
    }
}

/// The minimum size of a part that wakes the caller. In measurements, sizes from 8 to 64 KiB were
/// equally fast.
const PART: usize = 32 << 10;
/// The number of bytes of an oversized reply that are collected before its rows are discarded. In a
/// reply below this size, rows are not counted.
const KEPT_BEYOND: usize = 1 << 20;

/// The number of unread bytes in a stream above which the driver stops reading.
const UNREAD: usize = 1 << 20;

pub(super) enum To {
    /// A caller, which may have stopped waiting.
    Caller(Delivery),
    CachedStatement(Arc<CachedStatement>),
    /// No caller, for example if a statement is closed. Such a group must not fail.
    NoCaller,
}

impl Queued {
    /// Returns the buffer to which the next group is appended.
    pub fn out(&mut self) -> &mut BytesMut {
        self.behind_copy.as_mut().unwrap_or(&mut self.bytes)
    }

    /// Removes a statement from the cache, so that the next use of its text prepares it again.
    pub fn forget(&mut self, text: &str) {
        if let Some(named) = self.named.remove(text) {
            named.set_outdated();
            self.forgotten.push(named);
        }
    }

    /// Returns true if the server waits for the data of an open copy.
    pub fn awaits_data(&self) -> bool {
        self.groups.front().is_some_and(|copy| copy.is_open && copy.is_asked)
    }

    /// Returns true if the driver should stop reading from the socket. This is the case if a stream
    /// is full and no caller waits for a later reply. If a caller waits for a later reply, the
    /// driver keeps reading, and the requested rows are stored in memory.
    pub fn hold(&mut self, limit: usize) -> bool {
        let mut groups = self.groups.iter();
        self.is_held = !self.leaving
            && groups.next().is_some_and(|front| front.is_full(limit))
            && groups.all(AwaitedGroup::can_wait);
        self.is_held
    }
}

impl Link {
    /// Makes the driver check again whether to read. The reader of a stream calls this method after
    /// it has taken rows or has begun to wait.
    pub fn read_on(&self) {
        if self.lock().is_held {
            self.wake.notify_one();
        }
    }

    pub fn new(limits: AnswerLimits, usage: Use) -> Self {
        Self { limits, usage, ..Self::default() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Queued> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
