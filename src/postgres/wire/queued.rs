use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::{Notify, oneshot};

use super::{CachedStatement, Use, WireError, frame::frames};
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
    bytes: usize,
    /// The server may ask it for the data of a copy, which is on its way already.
    pub copies: bool,
    pub to: To,
}

impl AwaitedGroup {
    pub fn new(to: To) -> Self {
        Self { came: Came::default(), bytes: 0, copies: false, to }
    }

    /// Keeps whole messages of the reply; beyond the limit only those that say how its statements ended.
    pub fn keep(&mut self, chunk: Bytes, limit: usize) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(chunk.len());
        self.came.chunks.push(chunk);
        if self.bytes <= limit {
            return Ok(());
        }
        self.came.over = Some(limit);
        let mut ends = BytesMut::new();
        for chunk in self.came.chunks.drain(..) {
            for (kind, body) in frames(&chunk).filter(|(kind, _)| ENDS.contains(kind)) {
                ends.put_u8(kind);
                ends.put_u32(body.len() as u32 + 4);
                ends.extend_from_slice(body);
            }
        }
        self.bytes = limit.saturating_sub(KEPT_BEYOND); // the next look is not at once
        if ends.len() > limit {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer without an end"));
        }
        self.came.chunks.push(ends.freeze());
        Ok(())
    }

    /// The reply, and its receiver.
    pub fn answered(self) -> (Came, To) {
        (self.came, self.to)
    }
}

/// Messages that say how a statement ended.
const ENDS: &[u8] = b"CEIs";
/// So much of an answer that is too large gathers before its rows are dropped.
const KEPT_BEYOND: usize = 1 << 20;

/// An answer as it came.
#[derive(Debug, Default)]
pub(super) struct Came {
    pub chunks: Vec<Bytes>,
    /// It was larger than this, and its rows were not kept.
    pub over: Option<usize>,
}

/// Whom an answer is for.
pub(super) enum To {
    /// Its parts as they came; the receiver may be gone.
    Caller(oneshot::Sender<Result<Came, WireError>>),
    /// A statement that is being prepared.
    CachedStatement(Arc<CachedStatement>),
    /// No caller waits, as for the closing of a statement. It cannot fail.
    Nobody,
}

impl Link {
    pub fn new(limits: Limits, usage: Use) -> Self {
        Self { limits, usage, ..Self::default() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Queued> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
