//! Rows that a transaction reads through a portal as they arrive.

mod window;

use std::{
    collections::VecDeque,
    marker::PhantomData,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;

use self::window::Window;
use super::{
    Transaction,
    sent::{GroupReply, Sent},
};
use crate::{
    error::{Error, Kind, Result},
    postgres::{
        params::Params,
        rows::{FromRow, whole},
        statement::Statement,
        wire::{Columns, Portal, Values, WaitingPlace, frames_at},
    },
};

/// Rows that are read while the server is still sending. The stream requests rows far ahead, so the
/// size of a chunk does not affect the number of round trips.
///
/// The stream requests about 4 MiB of rows ahead, but at least one chunk. At most 2 MiB of these
/// rows are in memory, in addition to the current chunk. If the caller reads slowly, the driver
/// stops reading from the socket, and the server waits. Only the connection of this transaction is
/// affected. The server keeps the transaction open, with its snapshot and its locks, until the
/// caller continues.
///
/// Other statements may be sent between two chunks. Their replies arrive after the rows that were
/// requested earlier. If a caller awaits one of these replies, the rows before it are kept in
/// memory, up to `max_answer` bytes.
///
/// If the stream is dropped, the remaining rows are skipped, and the transaction remains usable.
#[derive(Debug)]
pub struct RowStream<T> {
    pipeline: Arc<super::Pipeline>,
    portal: String,
    text: Arc<str>,
    columns: Arc<Columns>,
    chunk: usize,
    window: Window,
    /// The requests for which not all rows have been read, oldest first.
    requests: VecDeque<Request>,
    /// The received messages that have not been decoded yet.
    chunks: VecDeque<Bytes>,
    /// The read position in the first of these messages.
    at: usize,
    /// The decoded rows of the current chunk, which is still incomplete.
    rows: VecDeque<T>,
    /// True if the server has sent the last row, or cannot send any more rows.
    is_over: bool,
    /// The error that ended the stream early, if there is one.
    broken: Option<Error>,
    shape: PhantomData<fn() -> T>,
}

#[derive(Debug)]
struct Request {
    sent: Arc<Sent>,
    place: usize,
    waiting: WaitingPlace,
}

impl Transaction {
    /// Runs a statement whose rows are read in chunks of `chunk` rows. A `chunk` of 0 counts as 1.
    ///
    /// # Errors
    /// The errors of [`Transaction::send`]. An error of the statement itself is returned when its
    /// rows are read.
    pub async fn stream<P: Params, T: FromRow>(
        &self,
        statement: &Statement<P, Vec<T>>,
        params: P,
        chunk: usize,
    ) -> Result<RowStream<T>> {
        let prepared = self.prepared(statement.text()).await?;
        let mut window = Window::new(&prepared.columns, chunk.max(1));
        let portal = self.pipeline.portal();
        let most = window.first();
        let (sent, place) = self.pipeline.push_streamed(statement.text(), |group| {
            params.with(|params| group.push_rows(&prepared, params, Portal { name: &portal, most }))
        })?;
        Ok(RowStream {
            pipeline: self.pipeline.clone(),
            portal,
            text: prepared.text,
            columns: prepared.columns,
            chunk: chunk.max(1),
            window,
            requests: VecDeque::from([Request { sent, place, waiting: None }]),
            chunks: VecDeque::new(),
            at: 0,
            rows: VecDeque::new(),
            is_over: false,
            broken: None,
            shape: PhantomData,
        })
    }
}

impl<T: FromRow> RowStream<T> {
    /// Returns the next chunk of rows, or `None` at the end. A chunk is shorter than requested only
    /// at the end or before an error. The future may be dropped before it completes, and no row is
    /// lost.
    ///
    /// # Errors
    /// The errors of this statement and of earlier statements. The rows before an error are
    /// returned first. If the transaction has ended, the rows that have already arrived are
    /// returned first, and then an error.
    pub async fn next_chunk(&mut self) -> Result<Option<Vec<T>>> {
        while self.rows.len() < self.chunk {
            match self.row().await {
                Ok(Some(row)) => self.rows.push_back(row),
                Ok(None) => break,
                Err(error) if self.rows.is_empty() => return Err(error),
                Err(error) => {
                    self.fail(error);
                    break;
                }
            }
        }
        let rows = std::mem::take(&mut self.rows);
        Ok((!rows.is_empty()).then(|| rows.into()))
    }

    /// Returns the next row, or `None` at the end.
    ///
    /// # Errors
    /// The errors of [`RowStream::next_chunk`].
    pub async fn next(&mut self) -> Result<Option<T>> {
        match self.rows.pop_front() {
            Some(row) => Ok(Some(row)), // a dropped call of `next_chunk` left this row
            None => self.row().await,
        }
    }

    async fn row(&mut self) -> Result<Option<T>> {
        loop {
            while let Some(chunk) = self.chunks.front() {
                let row = frames_at(chunk, self.at).find(|(kind, _)| *kind == b'D');
                let Some((_, body)) = row else {
                    self.chunks.pop_front();
                    self.at = 0;
                    continue;
                };
                self.at = body.end;
                let values = Values::new(&self.columns, chunk.get(body.start + 2..body.end).unwrap_or_default());
                let row = whole(values).map_err(|cause| Error::new(Kind::Rows { text: self.text.to_string(), cause }));
                return row.map(Some).inspect_err(|error| self.fail(error.clone()));
            }
            if self.is_over {
                return self.broken.clone().map_or(Ok(None), Err);
            }
            std::future::poll_fn(|context| self.poll_arrived(context)).await;
        }
    }

    /// Receives messages, and requests more rows if few of the requested rows are still to arrive.
    fn poll_arrived(&mut self, context: &Context<'_>) -> Poll<()> {
        let connection = self.pipeline.session.connection();
        let Some(Request { sent, place, waiting }) = self.requests.front_mut() else {
            self.is_over = true; // the next rows could not be requested
            return Poll::Ready(());
        };
        let polled = sent.poll_rows(waiting, context);
        connection.read_on();
        let (messages, end) = ready!(polled);
        let place = *place;
        if let Some(columns) = messages.columns {
            self.columns = columns;
        }
        self.window.received(&self.columns, &messages.chunks);
        self.chunks.extend(messages.chunks);
        if let Some(end) = end {
            self.ended(place, &end);
        }
        self.request();
        Poll::Ready(())
    }

    fn ended(&mut self, place: usize, end: &GroupReply) {
        let Some(Request { sent, .. }) = self.requests.pop_front() else { return };
        match &**end {
            Ok(reply) if reply.has_more(place) => {}
            Ok(_) => {
                self.is_over = true;
                self.broken = None; // there are no more rows to request
            }
            Err(failure) => {
                let error = self.pipeline.cause(&sent, failure);
                self.is_over = true;
                self.broken.get_or_insert(error);
            }
        }
    }

    fn request(&mut self) {
        if self.is_over || self.broken.is_some() {
            return;
        }
        let Some(most) = self.window.next() else { return };
        let portal = Portal { name: &self.portal, most };
        match self.pipeline.push_streamed(&self.text, |group| group.push_more(&self.text, portal)) {
            Ok((sent, place)) => self.requests.push_back(Request { sent, place, waiting: None }),
            Err(error) => self.broken = Some(error), // returned after the rows that still arrive
        }
    }
}

impl<T> RowStream<T> {
    /// Ends the stream with an error, and discards all rows that have not been decoded.
    fn fail(&mut self, error: Error) {
        self.chunks.clear();
        self.at = 0;
        self.broken = Some(error);
        self.leave();
    }

    /// Skips the rows that have been requested but not read.
    fn leave(&mut self) {
        for request in self.requests.drain(..) {
            request.sent.skip_rows();
        }
        self.pipeline.session.connection().read_on();
        if !std::mem::replace(&mut self.is_over, true) {
            self.pipeline.close(&self.portal);
        }
    }
}

impl<T> Drop for RowStream<T> {
    fn drop(&mut self) {
        self.leave();
    }
}
