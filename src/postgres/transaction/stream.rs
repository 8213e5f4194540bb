//! Rows that a transaction reads as they arrive, through a portal.

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

/// Rows that are read while the server is still sending. They are requested far ahead, so the
/// number of rows in a chunk does not change the number of round trips.
///
/// About 4 MiB of rows are requested ahead, but at least a whole chunk. At most 2 MiB of them and
/// the current chunk are in memory: if the caller reads slowly, the driver stops reading from the
/// socket, and the server waits. Only this transaction's connection is affected. The server keeps
/// the transaction open, with its snapshot and its locks, until the caller continues.
///
/// Other statements may be sent between two chunks. Their replies follow the rows that were
/// requested before them. If such a reply is awaited, these rows are kept in memory, up to
/// `max_answer` bytes.
///
/// If the stream is dropped, the requested rows are skipped, and the transaction remains usable.
#[derive(Debug)]
pub struct RowStream<T> {
    pipeline: Arc<super::Pipeline>,
    portal: String,
    text: Arc<str>,
    columns: Arc<Columns>,
    chunk: usize,
    window: Window,
    /// The requests whose rows have not all been read, oldest first.
    requests: VecDeque<Request>,
    /// The received messages that have not been decoded.
    chunks: VecDeque<Bytes>,
    /// The position in the first of the received messages.
    at: usize,
    /// The decoded rows of the current chunk, which is not complete yet.
    rows: VecDeque<T>,
    /// True if the server has sent the last row, or cannot send more rows.
    is_over: bool,
    /// The error because of which there are no more rows, if any.
    broken: Option<Error>,
    shape: PhantomData<fn() -> T>,
}

/// A request for rows.
#[derive(Debug)]
struct Request {
    sent: Arc<Sent>,
    place: usize,
    waiting: WaitingPlace,
}

impl Transaction {
    /// Runs a statement whose rows are read in chunks of at least one row.
    ///
    /// # Errors
    /// The errors of [`Transaction::send`]. The statement's own error is returned when its rows are
    /// read.
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
    /// at the end or before an error. The call may be dropped while it waits; no row is lost.
    ///
    /// # Errors
    /// The errors of the statement and of earlier statements, returned after the rows before the
    /// error. If the transaction has ended, the rows that have arrived are returned first, and then
    /// an error.
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

    /// Returns the next row as soon as it has arrived, or `None` at the end.
    ///
    /// # Errors
    /// The errors of [`RowStream::next_chunk`].
    pub async fn next(&mut self) -> Result<Option<T>> {
        match self.rows.pop_front() {
            Some(row) => Ok(Some(row)), // left by a call of `next_chunk` that was dropped
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

    /// Receives messages, and requests more rows if few requested rows are still to arrive.
    fn poll_arrived(&mut self, context: &Context<'_>) -> Poll<()> {
        let connection = self.pipeline.session.connection();
        let Some(Request { sent, place, waiting }) = self.requests.front_mut() else {
            self.is_over = true; // the next rows could not be requested
            return Poll::Ready(());
        };
        let polled = sent.poll_rows(waiting, context);
        connection.read_on();
        let (chunks, end) = ready!(polled);
        let place = *place;
        self.window.received(&self.columns, &chunks);
        self.chunks.extend(chunks);
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
                self.broken = None; // the rows that could not be requested do not exist
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
    /// Ends the stream with an error, and drops all rows that have not been decoded.
    fn fail(&mut self, error: Error) {
        self.chunks.clear();
        self.at = 0;
        self.broken = Some(error);
        self.leave();
    }

    /// Skips the requested rows.
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
