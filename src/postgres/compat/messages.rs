//! The messages of a reply, returned as they arrive.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;

use super::{failure::Error, session::ClientSession};
use crate::postgres::wire::{Arrived, Columns, Incoming, frames_at};

/// The messages of a streamed reply. If this value is dropped, the rest of the reply is skipped.
pub(super) struct ReplyMessages {
    client: Arc<ClientSession>,
    incoming: Option<Incoming>,
    waiting: Option<usize>,
    chunks: VecDeque<Bytes>,
    at: usize,
    /// The columns of the rows, if they differ from the columns of the statement.
    columns: Option<Arc<Columns>>,
    failure: Option<Error>,
}

impl ReplyMessages {
    pub fn new(client: Arc<ClientSession>, incoming: Incoming) -> Self {
        let mut messages = Self::arrived(client, &[]);
        messages.incoming = Some(incoming);
        messages
    }

    /// Creates this value for a reply that has already arrived.
    pub fn arrived(client: Arc<ClientSession>, chunks: &[Bytes]) -> Self {
        let chunks = chunks.iter().cloned().collect();
        Self { client, incoming: None, waiting: None, chunks, at: 0, columns: None, failure: None }
    }

    /// Returns the type and the body of the next message, or `None` at the end. If the reply ends
    /// with an error, all messages before the error are returned first.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(u8, Bytes), Error>>> {
        loop {
            while let Some(chunk) = self.chunks.front() {
                let next = frames_at(chunk, self.at).next();
                if let Some((kind, body)) = next {
                    self.at = body.end;
                    return Poll::Ready(Some(Ok((kind, chunk.slice(body)))));
                }
                self.chunks.pop_front();
                self.at = 0;
            }
            let Some(incoming) = &mut self.incoming else { return Poll::Ready(self.failure.take().map(Err)) };
            let polled = incoming.poll_rows(&mut self.waiting, context);
            self.client.connection.read_on();
            let Arrived { messages, end } = ready!(polled);
            self.chunks.extend(messages.chunks);
            self.columns = messages.columns;
            if let Some(end) = end {
                self.incoming = None;
                let failure = end.inspect_err(|failure| self.client.connection.forget_outdated(failure)).err();
                self.failure = failure.map(Error::from);
            }
        }
    }

    pub async fn next(&mut self) -> Option<Result<(u8, Bytes), Error>> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Returns the columns of the next rows, if they differ from the columns of the statement. Only
    /// the first call after their arrival returns them.
    pub fn changed(&mut self) -> Option<Arc<Columns>> {
        self.columns.take()
    }

    pub fn client(&self) -> &Arc<ClientSession> {
        &self.client
    }
}

impl Drop for ReplyMessages {
    fn drop(&mut self) {
        if let Some(incoming) = &self.incoming {
            incoming.skip_rows();
            self.client.connection.read_on();
        }
    }
}

/// Returns the number of rows at the end of a command tag.
pub(super) fn affected(tag: &[u8]) -> u64 {
    let words = std::str::from_utf8(tag).unwrap_or_default().trim_end_matches('\0');
    words.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}
