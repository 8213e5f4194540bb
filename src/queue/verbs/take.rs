//! At-most-once delivery: messages are taken in a separate transaction.

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
    /// If a message cannot be read as `T`, it is put back, and its attempt fails with that error.
    /// The other messages are returned.
    ///
    /// # Errors
    /// [`Error::is_outcome_unknown`](crate::Error): the connection broke before the reply, and the
    /// messages may be lost. The call also fails if the request has a lease time or a maximum wait:
    /// only a [`Consumer`](crate::Consumer) waits.
    pub async fn take(&self, request: impl Into<Dequeue>) -> Result<Vec<Message<T>>> {
        let request = request.into().without_wait()?.without_lease()?;
        Ok(self.dequeue(request.n(), DequeueMode::Take, None).await?.messages)
    }
}
