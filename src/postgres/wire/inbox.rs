//! Passes the messages of a reply from the driver to the callers of its group.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

use super::{WireError, reply_limit::Over};

/// A reply that is arriving: the driver adds its messages, and the callers of its group take them.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    came: Came,
    ended: Option<Result<(), WireError>>,
    /// One place for each waiting caller. Waking a caller needlessly would cost a thread switch.
    waiting: Vec<Option<Waker>>,
}

/// A reply, or a part of one, as it arrived.
#[derive(Debug, Default)]
pub(super) struct Came {
    pub chunks: Vec<Bytes>,
    /// The limit that the reply exceeds, if any; its rows were not kept.
    pub over: Option<Over>,
}

/// A caller's place in an inbox, once the caller waits.
pub(crate) type WaitingPlace = Option<usize>;

/// The driver's end of an inbox. If it is dropped before the end of the reply, the callers find the
/// connection lost.
#[derive(Debug)]
pub(super) struct Delivery(Arc<Inbox>);

impl Inbox {
    /// Creates an inbox and the driver's end of it.
    pub fn new() -> (Arc<Self>, Delivery) {
        let inbox = Arc::new(Self::default());
        (inbox.clone(), Delivery(inbox))
    }

    /// Creates the inbox of a group that cannot be sent.
    pub fn refused(failure: WireError) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inside { ended: Some(Err(failure)), ..Inside::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a part of the reply, and wakes the callers.
    fn put(&self, came: Came) {
        let mut inside = self.lock();
        inside.put(came);
        inside.waiting.iter_mut().filter_map(Option::take).for_each(Waker::wake);
    }

    /// Ends the reply, unless it has already ended.
    fn end(&self, ended: Result<Came, WireError>) {
        let waiting = {
            let mut inside = self.lock();
            if inside.ended.is_some() {
                return;
            }
            let ended = ended.map(|last| inside.put(last));
            inside.ended = Some(ended);
            std::mem::take(&mut inside.waiting)
        };
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// Returns the end of the reply, if it has arrived, with all messages that were not taken yet.
    pub fn ended(&self) -> Option<Result<Came, WireError>> {
        let mut inside = self.lock();
        let ended = inside.ended.clone()?;
        Some(ended.map(|()| std::mem::take(&mut inside.came)))
    }

    pub fn poll_ended(&self, place: &mut WaitingPlace, context: &Context<'_>) -> Poll<Result<Came, WireError>> {
        let mut inside = self.lock();
        match inside.ended.clone() {
            Some(ended) => Poll::Ready(ended.map(|()| std::mem::take(&mut inside.came))),
            None => inside.wait(place, context),
        }
    }

    /// Waits for new messages or for the end. Also returns true if these messages are the last.
    pub fn poll_part(&self, place: &mut WaitingPlace, context: &Context<'_>) -> Poll<Result<(Came, bool), WireError>> {
        let mut inside = self.lock();
        match inside.ended.clone() {
            Some(ended) => Poll::Ready(ended.map(|()| (std::mem::take(&mut inside.came), true))),
            None if !inside.came.chunks.is_empty() => Poll::Ready(Ok((std::mem::take(&mut inside.came), false))),
            None => inside.wait(place, context),
        }
    }
}

impl Inside {
    fn put(&mut self, came: Came) {
        match self.came.chunks.is_empty() {
            true => self.came.chunks = came.chunks,
            false => self.came.chunks.extend(came.chunks),
        }
        self.came.over = came.over.or(self.came.over);
    }

    fn wait<T>(&mut self, place: &mut WaitingPlace, context: &Context<'_>) -> Poll<T> {
        let at = *place.get_or_insert_with(|| {
            self.waiting.push(None);
            self.waiting.len() - 1
        });
        match self.waiting.get_mut(at) {
            Some(Some(waker)) => waker.clone_from(context.waker()),
            Some(none) => *none = Some(context.waker().clone()),
            None => {} // the place belongs to another inbox
        }
        Poll::Pending
    }
}

impl Delivery {
    pub fn part(&self, came: Came) {
        if Arc::strong_count(&self.0) > 1 {
            self.0.put(came);
        }
    }

    /// Delivers the rest of the reply, or its failure.
    pub fn end(self, ended: Result<Came, WireError>) {
        self.0.end(ended);
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.0.end(Err(WireError::Lost(None))); // no effect if the reply has ended
    }
}
