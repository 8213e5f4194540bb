//! The reply to a group that was sent, as its callers receive it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;

use super::{
    Columns, Reply, ReplyMode, WireError,
    answer::Reading,
    group::Places,
    inbox::{Inbox, WaitingPlace},
};

/// The reply to a group that was sent. If it is dropped, the group still runs.
#[derive(Debug)]
pub(crate) struct Incoming {
    inbox: Arc<Inbox>,
    place: WaitingPlace,
    /// The parser of the reply, or `None` if the reply has been returned.
    reading: Option<Reading>,
    /// True if the reply is read as it arrives.
    is_read_early: bool,
}

/// Messages that have arrived, including rows.
#[derive(Default)]
pub(crate) struct RowMessages {
    pub chunks: Vec<Bytes>,
    /// The columns of the rows, if they differ from the expected columns.
    pub columns: Option<Arc<Columns>>,
}

/// Messages that have arrived, and perhaps the end of the reply.
pub(crate) struct Arrived {
    pub messages: RowMessages,
    /// The outcome of the whole reply, if it has ended.
    pub end: Option<Result<Reply, WireError>>,
}

impl Incoming {
    pub(super) fn new(inbox: Arc<Inbox>, places: Places, script: bool, mode: ReplyMode) -> Self {
        let is_read_early = mode != ReplyMode::Whole;
        Self { inbox, place: None, reading: Some(Reading::new(places, script)), is_read_early }
    }

    /// Returns the whole reply if it has arrived. Only the first such call returns it. Also returns
    /// the messages that the reader of rows has not received yet.
    pub fn come(&mut self) -> Option<(Result<Reply, WireError>, RowMessages)> {
        let came = match self.inbox.ended()? {
            Ok(came) => came,
            Err(failure) => return Some((Err(failure), RowMessages::default())),
        };
        let Some(mut reading) = self.reading.take() else {
            return Some((Err(WireError::Lost(None)), RowMessages::default()));
        };
        let chunks = if self.is_read_early { came.chunks.clone() } else { Vec::new() };
        reading.take(came);
        let unread = RowMessages { chunks, columns: reading.changed() };
        Some((reading.end(), unread))
    }

    /// Waits for the whole reply. Several callers can wait, each with its own `place`. Only the
    /// first call after the end returns the reply.
    pub fn poll_whole(&mut self, place: &mut WaitingPlace, context: &Context<'_>) -> Poll<Result<Reply, WireError>> {
        let came = ready!(self.inbox.poll_ended(place, context));
        Poll::Ready(self.read(came))
    }

    /// Waits for rows of a reply that is read as it arrives, or for its end. The statement is
    /// confirmed only when the reply has ended.
    pub fn poll_rows(&mut self, place: &mut WaitingPlace, context: &Context<'_>) -> Poll<Arrived> {
        let (came, is_last) = match ready!(self.inbox.poll_part(place, context)) {
            Ok(part) => part,
            Err(failure) => return Poll::Ready(Arrived { messages: RowMessages::default(), end: Some(Err(failure)) }),
        };
        let mut messages = RowMessages { chunks: came.chunks.clone(), columns: None };
        if let Some(reading) = &mut self.reading {
            reading.take(came);
            reading.forget_rows();
            messages.columns = reading.changed();
        }
        let end = is_last.then(|| self.reading.take().ok_or(WireError::Lost(None)).and_then(Reading::end));
        Poll::Ready(Arrived { messages, end })
    }

    pub fn skip_rows(&self) {
        self.inbox.skip_rows();
    }

    fn read(&mut self, came: Result<super::inbox::Came, WireError>) -> Result<Reply, WireError> {
        let came = came?;
        let mut reading = self.reading.take().ok_or(WireError::Lost(None))?;
        reading.take(came);
        reading.end()
    }

    /// Reads the replies to single statements while the server works on later ones. `read` receives
    /// a reply, the index of the statement in this reply, and its index in the group.
    ///
    /// The group may still be rolled back. It is confirmed only when this method returns `Ok`.
    /// Returns the rest of the reply, which is empty.
    pub async fn parts(mut self, mut read: impl FnMut(&Reply, usize, usize)) -> Result<Reply, WireError> {
        let mut reading = self.reading.take().ok_or(WireError::Lost(None))?;
        loop {
            let part = std::future::poll_fn(|context| self.inbox.poll_part(&mut self.place, context));
            let (came, last) = part.await?;
            reading.take(came);
            for (at, place) in reading.ended().enumerate() {
                read(&reading.reply, at, place);
            }
            reading.forget();
            if last {
                return reading.end();
            }
        }
    }
}

impl Future for Incoming {
    type Output = Result<Reply, WireError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let came = ready!(this.inbox.poll_ended(&mut this.place, context));
        Poll::Ready(this.read(came))
    }
}
