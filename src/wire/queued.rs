use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{Bytes, BytesMut};
use tokio::sync::{Notify, oneshot};

use super::Named;
use crate::server_error::ServerError;

/// What callers and the driver share.
#[derive(Default)]
pub(super) struct Shared {
    queued: Mutex<Queued>,
    /// The driver has something to write, or to end for.
    pub wake: Notify,
    /// There is room in the buffer again.
    pub room: Notify,
}

#[derive(Default)]
pub(super) struct Queued {
    /// What the driver has not taken yet.
    pub bytes: BytesMut,
    /// Groups that were sent or are about to be, oldest first: answers come in this order.
    pub groups: VecDeque<Waiting>,
    pub named: HashMap<Arc<str>, Arc<Named>>,
    /// Names so far.
    pub names: u64,
    /// The connection has ended.
    pub ended: Option<Why>,
    /// No caller is left: the driver says goodbye once everything is answered.
    pub leaving: bool,
}

/// Why a connection is over, where the server said so.
#[derive(Debug, Clone, Default)]
pub(super) struct Why(pub Option<Arc<ServerError>>);

/// A group whose answer has not come, or not whole.
pub(super) struct Waiting {
    pub chunks: Vec<Bytes>,
    /// The server may ask it for the data of a copy, which is on its way already.
    pub copies: bool,
    pub to: To,
}

impl Waiting {
    pub fn new(to: To) -> Self {
        Self { chunks: Vec::new(), copies: false, to }
    }
}

/// Whom an answer is for.
pub(super) enum To {
    /// Its parts as they came; nobody may be left to take them.
    Caller(oneshot::Sender<Result<Vec<Bytes>, Option<Arc<ServerError>>>>),
    /// A statement that is being prepared.
    Named(Arc<Named>),
    /// Nobody asked: a statement that was closed, for one.
    Nobody,
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Queued> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
