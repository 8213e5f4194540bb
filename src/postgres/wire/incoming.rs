//! The reply to a group that was sent, for the callers that wait for it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::{
    Reply, WireError,
    answer::Reading,
    group::Places,
    inbox::{Inbox, WaitingPlace},
};

/// The reply to a group that was sent. If this is dropped, the statements run all the same.
#[derive(Debug)]
pub(crate) struct Incoming {
    inbox: Arc<Inbox>,
    place: WaitingPlace,
    /// Present until the reply is complete.
    reading: Option<Reading>,
}

impl Incoming {
    pub(super) fn new(inbox: Arc<Inbox>, places: Places, script: bool) -> Self {
        Self { inbox, place: None, reading: Some(Reading::new(places, script)) }
    }

    /// Returns the whole reply, once, if it has arrived.
    pub fn come(&mut self) -> Option<Result<Reply, WireError>> {
        let came = self.inbox.ended()?;
        Some(self.read(came))
    }

    /// Waits for the whole reply, as one of several waiting callers. Returns the reply once.
    pub fn poll_whole(&mut self, place: &mut WaitingPlace, context: &Context<'_>) -> Poll<Result<Reply, WireError>> {
        let came = ready!(self.inbox.poll_ended(place, context));
        Poll::Ready(self.read(came))
    }

    fn read(&mut self, came: Result<super::inbox::Came, WireError>) -> Result<Reply, WireError> {
        let came = came?;
        let mut reading = self.reading.take().ok_or(WireError::Lost(None))?;
        reading.take(came);
        reading.end()
    }

    /// Reads the replies to single statements while the server still works on the next ones. `read`
    /// receives a reply, the statement's place in the reply, and its place in the group. These
    /// statements may still be rolled back: only the end of this call confirms them. Returns the
    /// rest of the reply, which is empty.
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
