//! The session of a client.

use std::sync::atomic::{AtomicU64, Ordering};

use super::cancel::CancelToken;
use crate::postgres::wire::Connection;

/// The part of a client that its statements, streams and replies share.
pub(super) struct ClientSession {
    pub connection: Connection,
    pub cancel: CancelToken,
    names: AtomicU64,
}

impl ClientSession {
    pub fn new(connection: Connection, cancel: CancelToken) -> Self {
        Self { connection, cancel, names: AtomicU64::new(0) }
    }

    /// Returns a name that no other statement or portal of this client uses.
    pub fn name(&self, kind: char) -> String {
        format!("{kind}{}", self.names.fetch_add(1, Ordering::Relaxed))
    }
}
