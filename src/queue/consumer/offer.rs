//! Dequeued messages for a caller that may be gone when the answer arrives, for example a program
//! in another language.

use std::mem;

use tokio::time::{Instant, timeout_at};

use crate::{
    error::Result,
    queue::{
        batch::dequeues::{Batches, DequeueMode},
        consumer::Consumer,
        handle::Queue,
        message::{Message, dequeue::Dequeue, payload::Payload},
        verbs::{dequeue::Read, direct::Letter},
    },
};

/// Messages that were taken or leased but have no owner yet. They belong to the caller once it
/// accepts them. **If the offer is dropped, they go back** to the queue, and no attempt is counted.
///
/// Use an offer in programs that pass messages to a receiver that may have stopped waiting: a
/// thread, an event loop, another language. Rust code that awaits a call does not need an offer:
/// see [`Queue::take`].
///
/// Drop the offer within a tokio runtime. Otherwise its messages go back only with the next
/// dequeue.
#[doc(hidden)]
#[derive(Debug)]
pub struct Offer<T> {
    queue: Queue<T>,
    pages: Vec<Batches>,
    /// The message from a notification, if there is one.
    letter: Option<Letter>,
    count: usize,
}

impl<T: Payload> Offer<T> {
    /// Offers a message from a notification.
    pub(super) fn direct(queue: &Queue<T>, letter: Letter) -> Self {
        Self { queue: queue.clone(), pages: Vec::new(), letter: Some(letter), count: 1 }
    }

    /// Returns the number of messages, including unreadable ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the time before the first statement was sent, if one was sent. A lease of the
    /// messages ends no earlier than its time after it.
    #[doc(hidden)]
    #[must_use]
    pub fn asked(&self) -> Option<Instant> {
        self.pages.first().map(|page| page.asked)
    }

    /// Returns true if the only message has an expired lease, and was therefore returned alone.
    pub(crate) fn is_apart(&self) -> bool {
        self.pages.first().is_some_and(Batches::is_apart)
    }

    /// Returns true if no other message is due after a dequeue of up to `n` messages.
    pub(crate) fn is_short_of(&self, n: usize) -> bool {
        self.count < n && !self.is_apart() && !self.has_stopped()
    }

    /// Returns true if the last statement stopped because it had buried many messages. Others may
    /// be due.
    pub(crate) fn has_stopped(&self) -> bool {
        self.pages.last().is_some_and(|page| page.has_stopped)
    }

    /// Returns true if there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Hands the messages over to the caller. `read` converts each payload. If `read` refuses a
    /// payload, the message's attempt fails with that reason, as it does for a payload that is not
    /// a `T` ([`Queue::take`], [`Queue::lease`]). The other messages are returned.
    ///
    /// # Errors
    /// The server's rows do not have the form that this library expects.
    pub fn accept<U>(self, read: impl FnMut(T) -> Read<U>) -> Result<Vec<Message<U>>> {
        Ok(self.accept_if(read, Some)?.unwrap_or_default())
    }

    /// Accepts messages like [`accept`](Self::accept), if `confirm` agrees. `confirm` converts all
    /// messages together. If it returns `None`, nothing is accepted: no attempt fails, and all
    /// messages go back. Programs in other languages use this method, because an interrupt may stop
    /// them while they read the messages.
    ///
    /// # Errors
    /// The errors of [`accept`](Self::accept).
    pub fn accept_if<U, R>(
        self,
        mut read: impl FnMut(T) -> Read<U>,
        confirm: impl FnOnce(Vec<Message<U>>) -> Option<R>,
    ) -> Result<Option<R>> {
        let Self { queue, pages, letter, count } = self;
        if let Some(letter) = letter {
            let (messages, unreadable) = match letter.open(&mut read) {
                Ok(message) => (vec![message], None),
                Err(error) => (Vec::new(), Some(error)),
            };
            let made = confirm(messages);
            if made.is_some() {
                letter.arrived(unreadable.as_ref());
            } // otherwise the notification is dropped, which puts its message back
            return Ok(made);
        }
        let mut opened = queue.shared.open_rows(&pages, count, read)?;
        let made = confirm(mem::take(&mut opened.messages));
        if made.is_some() {
            queue.readable(queue.shared.keep(pages, opened));
        } // otherwise the pages are dropped, which puts their messages back
        Ok(made)
    }
}

impl<T: Payload> Queue<T> {
    /// Takes messages like [`Queue::take`], for a receiver that may be gone when the answer
    /// arrives.
    #[doc(hidden)]
    pub async fn offer_take(&self, request: impl Into<Dequeue>) -> Result<Offer<T>> {
        let request = request.into().without_wait()?.without_lease()?;
        self.offer_some(request.n(), DequeueMode::Take).await
    }

    /// Leases messages like [`Queue::lease`], for a receiver that may be gone when the answer
    /// arrives.
    #[doc(hidden)]
    pub async fn offer_lease(&self, request: impl Into<Dequeue>) -> Result<Offer<T>> {
        let request = request.into().without_wait()?;
        self.offer_some(request.n(), DequeueMode::Lease(request.lease())).await
    }

    /// Dequeues again while statements only bury messages.
    async fn offer_some(&self, n: usize, how: DequeueMode) -> Result<Offer<T>> {
        loop {
            let offer = self.offer(n, how).await?;
            if !offer.is_empty() || !offer.has_stopped() {
                return Ok(offer);
            }
        }
    }

    /// Dequeues messages that go back if the offer is dropped.
    pub(crate) async fn offer(&self, n: usize, how: DequeueMode) -> Result<Offer<T>> {
        let (pages, count) = self.shared.dequeue_pages(n, how).await?;
        Ok(Offer { queue: self.clone(), pages, letter: None, count })
    }
}

impl<T: Payload> Consumer<T> {
    /// Takes messages like [`Consumer::take`], for a receiver that may be gone when the answer
    /// arrives.
    #[doc(hidden)]
    pub async fn offer_take(&mut self, request: impl Into<Dequeue>) -> Result<Offer<T>> {
        self.offer(request.into().without_lease()?, DequeueMode::Take).await
    }

    /// Leases messages like [`Consumer::lease`], for a receiver that may be gone when the answer
    /// arrives.
    #[doc(hidden)]
    pub async fn offer_lease(&mut self, request: impl Into<Dequeue>) -> Result<Offer<T>> {
        let request = request.into();
        self.offer(request, DequeueMode::Lease(request.lease())).await
    }

    async fn offer(&mut self, request: Dequeue, how: DequeueMode) -> Result<Offer<T>> {
        let (n, until) = (request.n(), request.until());
        loop {
            let rings = self.heard();
            let outcome = self.queue().offer(n, how).await;
            let waited = match outcome {
                Ok(offer) if offer.is_empty() && n > 0 => {
                    if until.is_some_and(|until| Instant::now() >= until) {
                        return Ok(offer);
                    }
                    if offer.has_stopped() {
                        continue;
                    }
                    match until {
                        None => self.idle(rings).await,
                        // Lets the time limit interrupt only this call, which waits and takes no
                        // messages.
                        Some(until) => timeout_at(until, self.idle(rings)).await.unwrap_or(Ok(())),
                    }
                }
                Ok(offer) => {
                    self.dequeued(rings, None, offer.is_short_of(n));
                    self.found();
                    return Ok(offer);
                }
                Err(error) => Err(error),
            };
            match waited {
                Ok(()) => {}
                // No time is left to try again, so the caller receives the error.
                Err(error) if until.is_some_and(|until| Instant::now() >= until) => return Err(error),
                Err(error) => self.try_again(error)?,
            }
        }
    }
}
