//! At-most-once delivery: a take in a transaction of its own.

use crate::{
    error::Result,
    queue::{
        batch::dequeues::DequeueMode,
        handle::Queue,
        message::{Message, dequeue::Dequeue, payload::Payload},
    },
};

impl<T: Payload> Queue<T> {
    /// Takes up to `n` messages, oldest first. Returns no messages if none are due. The messages
    /// have left the queue when the call returns: if the consumer crashes before it has processed
    /// them, they are lost. If the call is dropped before it returns, they are put back. For
    /// messages that need not be stored at all, see [`Queue::send_direct`].
    ///
    /// A message that cannot be read as `T` is put back and fails an attempt with that error; the
    /// other messages are returned.
    ///
    /// # Errors
    /// [`Error::is_outcome_unknown`](crate::Error): the connection broke before the answer, and the
    /// messages may be lost. The request has a lease time, or a maximum wait: only a
    /// [`Consumer`](crate::Consumer) waits.
    pub async fn take(&self, request: impl Into<Dequeue>) -> Result<Vec<Message<T>>> {
        let request = request.into().without_wait()?.without_lease()?;
        self.dequeue(request.n(), DequeueMode::Take).await
    }
}
