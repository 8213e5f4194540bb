//! At most once: the same take, in a transaction of its own.

use crate::{error::Result, message::Message, payload::Payload, queue::Queue};

/// Messages that one statement takes or leases at most; larger wishes take several.
pub(crate) const PAGE: usize = 1 << 15;

impl<T: Payload> Queue<T> {
    /// Takes up to `n` messages, oldest first; none where none is due. They are gone when this returns: if the
    /// consumer dies before it is done with them, they are lost.
    ///
    /// # Errors
    /// [`Error::is_outcome_unknown`](crate::Error): the connection broke before the answer; the messages may be lost.
    pub async fn at_most_once(&self, n: usize) -> Result<Vec<Message<T>>> {
        let mut messages = Vec::new();
        while messages.len() < n {
            let wanted = (n - messages.len()).min(PAGE);
            let (shared, before) = (&self.shared, messages.len());
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&(wanted as i32), &shared.floor(), &shared.rows_for(wanted), &true];
            let taken = match shared.query(&shared.sql.take, &params).await {
                Err(_) if before > 0 => break, // what was taken before is the caller's
                outcome => outcome?,
            };
            shared.receive(&taken, &mut messages)?;
            if messages.len() - before < wanted {
                break;
            }
        }
        Ok(messages)
    }
}
