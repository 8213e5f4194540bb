//! At most once: the same take, in a transaction of its own.

use crate::{dequeue::Dequeue, error::Result, message::Message, payload::Payload, queue::Queue};

impl<T: Payload> Queue<T> {
    /// Takes up to `n` messages, oldest first; none where none is due. They are gone when this returns: if the
    /// consumer dies before it is done with them, they are lost. If the call is dropped before it returns, they are
    /// put back.
    ///
    /// # Errors
    /// [`Error::is_outcome_unknown`](crate::Error): the connection broke before the answer; the messages may be lost.
    /// A message that cannot be read as `T` is an error that names it, and everything is put back.
    pub async fn at_most_once(&self, n: usize) -> Result<Vec<Message<T>>> {
        Ok(self.shared.dequeue(n, Dequeue::Take).await?.messages)
    }
}
