//! Copies for which the caller supplies the data piece by piece. Groups of other callers wait until
//! the copy has ended.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use postgres_protocol::message::frontend;

use super::{
    Connection, Group, Incoming, ReplyMode, WireError,
    connection::check,
    inbox::Inbox,
    queued::{AwaitedGroup, To},
};

/// The maximum size of a message with data. The server accepts up to 1 GiB.
const PART: usize = 64 << 20;

impl Connection {
    /// Sends a copy statement without a Sync, after any earlier copy. The reply is streamed.
    pub async fn begin_copy(&self, mut group: Group) -> Result<Incoming, WireError> {
        loop {
            let room = self.shared.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if let Some(inbox) = self.try_begin_copy(&mut group)? {
                let places = std::mem::take(&mut group.places);
                return Ok(Incoming::new(inbox, places, false, ReplyMode::Streamed));
            }
            room.await;
        }
    }

    fn try_begin_copy(&self, group: &mut Group) -> Result<Option<Arc<Inbox>>, WireError> {
        let mut queued = self.shared.lock();
        check(&queued)?;
        if queued.behind_copy.is_some() {
            return Ok(None);
        }
        let (inbox, delivery) = Inbox::new();
        let mut waiting = AwaitedGroup::new(To::Caller(delivery));
        (waiting.copies, waiting.is_open, waiting.mode) = (true, true, ReplyMode::Streamed);
        queued.bytes.extend_from_slice(&group.bytes);
        // Flushes for a statement that is not a copy, because the server replies to it only after
        // the flush. During a copy, the server ignores it.
        frontend::flush(&mut queued.bytes);
        queued.groups.push_back(waiting);
        queued.behind_copy = Some(BytesMut::new());
        drop(queued);
        self.shared.wake.notify_one();
        Ok(Some(inbox))
    }

    pub fn copy_data(&self, mut data: impl Buf) -> Result<(), WireError> {
        let mut queued = self.shared.lock();
        check(&queued)?;
        while data.has_remaining() {
            let part = data.copy_to_bytes(data.remaining().min(PART));
            frontend::CopyData::new(part).map_err(WireError::encode)?.write(&mut queued.bytes);
        }
        drop(queued);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Ends the open copy, or aborts it if `is_complete` is false. Other groups can then follow.
    pub fn end_copy(&self, is_complete: bool) {
        let mut queued = self.shared.lock();
        let Some(behind) = queued.behind_copy.take() else { return }; // the connection has ended
        match is_complete {
            true => frontend::copy_done(&mut queued.bytes),
            // This cannot fail, because the text contains no NUL.
            false => drop(frontend::copy_fail("the caller gave the copy up", &mut queued.bytes)),
        }
        frontend::sync(&mut queued.bytes);
        queued.bytes.extend_from_slice(&behind);
        if let Some(copy) = queued.groups.iter_mut().find(|group| group.is_open) {
            copy.is_open = false;
        }
        drop(queued);
        self.shared.wake.notify_one();
        self.shared.room.notify_waiters();
    }
}
