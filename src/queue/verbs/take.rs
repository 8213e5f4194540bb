//! At most once: a take in a transaction of its own.

use crate::{
    error::Result,
    queue::{
        batch::dequeues::Dequeue,
        handle::Queue,
        message::{Message, payload::Payload},
    },
};

impl<T: Payload> Queue<T> {
    /// Takes up to `n` messages, oldest first; none if none is due. They are deleted when this
    /// returns: if the consumer dies before it is done with them, they are lost. If the call is
    /// dropped before it returns, they are put back. For messages that need not be stored at all,
    /// see [`Queue::hand_over`].
    ///
    /// # Errors
    /// [`Error::is_outcome_unknown`](crate::Error): the connection broke before the answer; the
    /// messages may be lost.
    ///
    /// A message that cannot be read as `T` is put back and fails an attempt with that error; the
    /// other messages are returned.
    pub async fn take(&self, n: usize) -> Result<Vec<Message<T>>> {
        self.dequeue(n, Dequeue::Take).await
    }
}
