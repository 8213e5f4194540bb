//! A reply to one statement of a transaction. The caller may await it or drop it.

use std::{
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::{
    Pipeline,
    sent::{GroupReply, Sent},
};
use crate::{
    error::{Error, Result},
    postgres::{
        rows::Rows,
        wire::{Columns, WaitingPlace},
    },
};

/// A reply to a queued statement. Awaiting it sends the queued statements if they have not been
/// sent yet. Replies may be awaited in any order, or not at all.
pub struct Pending<R> {
    pipeline: Arc<Pipeline>,
    sent: Arc<Sent>,
    waiting: WaitingPlace,
    place: usize,
    text: Arc<str>,
    columns: Arc<Columns>,
    shape: PhantomData<fn() -> R>,
}

impl<R> Pending<R> {
    pub(super) fn new(
        pipeline: Arc<Pipeline>,
        sent: Arc<Sent>,
        place: usize,
        text: Arc<str>,
        columns: Arc<Columns>,
    ) -> Self {
        Self { pipeline, sent, waiting: None, place, text, columns, shape: PhantomData }
    }

    fn poll_outcome(&mut self, context: &mut Context<'_>) -> Poll<Result<GroupReply>> {
        if self.waiting.is_none() {
            if !self.sent.is_sent() {
                self.pipeline.flush();
            }
            if !self.sent.is_sent() {
                if let Some(error) = self.pipeline.failure() {
                    return Poll::Ready(Err(error));
                }
                let text =
                    "the transaction ended before this statement was sent; commit it, or await the answer before";
                return Poll::Ready(Err(Error::invalid(text)));
            }
        }
        self.sent.poll(&mut self.waiting, context).map(Ok)
    }
}

impl<R: Rows> Future for Pending<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R>> {
        let outcome = ready!(self.poll_outcome(context))?;
        let Self { pipeline, sent, place, text, columns, .. } = &*self;
        Poll::Ready(pipeline.outcome(sent, &outcome, *place, text, columns))
    }
}

impl<R> std::fmt::Debug for Pending<R> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Pending").field("statement", &self.text).finish_non_exhaustive()
    }
}
