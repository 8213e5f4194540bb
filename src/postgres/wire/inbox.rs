//! The messages of a reply, which the driver passes to the callers of its group.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::{BufMut, Bytes, BytesMut};

use super::{WireError, frame::frames, reply_limit::Over};

/// A reply that is arriving. The driver adds messages, and the callers of the group take them.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    came: Came,
    ended: Option<Result<(), WireError>>,
    /// One entry per waiting caller. Each waker is used once, because a needless wake-up costs a
    /// thread switch.
    waiting: Vec<Option<Waker>>,
    /// The number of bytes that the reader of a stream has not taken yet.
    unread: usize,
    /// True if the remaining rows of a stream are discarded.
    skips_rows: bool,
}

/// A reply or a part of a reply, as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Came {
    pub chunks: Vec<Bytes>,
    /// The limit that the reply exceeds, if any. The rows of such a reply are discarded.
    pub over: Option<Over>,
}

/// The index of a caller's entry in an inbox, or `None` if the caller has not waited yet.
pub(crate) type WaitingPlace = Option<usize>;

/// The driver's end of an inbox. If it is dropped before the end of the reply, the callers receive
/// the error for a lost connection.
#[derive(Debug)]
pub(super) struct Delivery(Arc<Inbox>);

impl Inbox {
    pub fn new() -> (Arc<Self>, Delivery) {
        let inbox = Arc::new(Self::default());
        (inbox.clone(), Delivery(inbox))
    }

    /// Creates the inbox for a group that could not be sent.
    pub fn refused(failure: WireError) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inside { ended: Some(Err(failure)), ..Inside::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, came: Came) {
        let mut inside = self.lock();
        inside.put(came);
        inside.waiting.iter_mut().filter_map(Option::take).for_each(Waker::wake);
    }

    /// Adds a part of a stream. If more than `limit` bytes would be unread, discards the rows.
    fn put_streamed(&self, chunk: Bytes, limit: usize) {
        let mut inside = self.lock();
        if !inside.skips_rows && inside.unread.saturating_add(chunk.len()) > limit {
            inside.came.over = Some(Over::Bytes(limit));
            inside.skips_rows = true;
        }
        let kept = if inside.skips_rows { ends(&[chunk]) } else { chunk };
        if !kept.is_empty() {
            inside.unread += kept.len();
            inside.came.chunks.push(kept);
            inside.waiting.iter_mut().filter_map(Option::take).for_each(Waker::wake);
        }
    }

    /// Discards the rows of a stream, including rows that have not arrived yet.
    pub fn skip_rows(&self) {
        let mut inside = self.lock();
        inside.skips_rows = true;
        let kept = ends(&inside.came.chunks);
        inside.unread = kept.len();
        inside.came.chunks = vec![kept];
    }

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

    /// Returns the outcome of the reply, if it has ended, and the messages that were not taken yet.
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

    /// Waits for new messages or for the end. Returns the messages, and true if they are the last.
    pub fn poll_part(&self, place: &mut WaitingPlace, context: &Context<'_>) -> Poll<Result<(Came, bool), WireError>> {
        let mut inside = self.lock();
        match inside.ended.clone() {
            Some(ended) => Poll::Ready(ended.map(|()| (std::mem::take(&mut inside.came), true))),
            None if !inside.came.chunks.is_empty() => {
                inside.unread = 0;
                Poll::Ready(Ok((std::mem::take(&mut inside.came), false)))
            }
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
            None => {} // the entry belongs to another inbox
        }
        Poll::Pending
    }
}

impl Delivery {
    pub fn part(&self, came: Came) {
        if !self.is_abandoned() {
            self.0.put(came);
        }
    }

    /// Returns true if no caller can take the reply.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub fn streamed(&self, chunk: Bytes, limit: usize) {
        self.0.put_streamed(chunk, limit);
    }

    /// Returns the number of bytes that the reader of a stream has not taken yet.
    pub fn unread(&self) -> usize {
        self.0.lock().unread
    }

    pub fn is_awaited(&self) -> bool {
        self.0.lock().waiting.iter().any(Option::is_some)
    }

    /// Delivers the rest of the reply, or the error.
    pub fn end(self, ended: Result<Came, WireError>) {
        self.0.end(ended);
    }
}

/// The types of the messages that begin and end the run of a statement.
const ENDS: &[u8] = b"2CEIs";

/// Returns only the messages that begin and end the run of a statement, without the rows.
pub(super) fn ends(chunks: &[Bytes]) -> Bytes {
    let mut ends = BytesMut::new();
    for (kind, body) in chunks.iter().flat_map(|chunk| frames(chunk)).filter(|(kind, _)| ENDS.contains(kind)) {
        ends.put_u8(kind);
        ends.put_u32(body.len() as u32 + 4);
        ends.extend_from_slice(body);
    }
    ends.freeze()
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.0.end(Err(WireError::Lost(None))); // does nothing if the reply has ended
    }
}
