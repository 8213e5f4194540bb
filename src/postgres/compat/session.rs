//! The session of a client.

use std::sync::atomic::{AtomicU64, Ordering};

use super::cancel::CancelToken;
use crate::postgres::wire::Connection;

/// The part of a client that its statements, streams and replies share.
pub(super) struct ClientSession {
    pub connection: Connection,
    pub cancel: CancelToken,
}

impl ClientSession {
    pub fn new(connection: Connection, cancel: CancelToken) -> Self {
        Self { connection, cancel }
    }

    /// Returns a name that no other statement or portal of this process has. A client that is
    /// passed a statement of another client would otherwise run its own statement of that name.
    pub fn name(kind: char) -> String {
        static NAMES: AtomicU64 = AtomicU64::new(0);
        format!("{kind}{}", NAMES.fetch_add(1, Ordering::Relaxed))
    }
}
