//! `enqueue`: into a coalesced batch; and many at once.

mod cut;
mod write;

use std::cell::RefCell;

use bytes::BytesMut;
use tracing::Instrument;

use self::{
    cut::Cut,
    write::{Woken, write},
};
use crate::{
    error::Result,
    postgres::db::Lane,
    queue::{
        draft::IntoDraft,
        handle::{Queue, finish},
        payload::Payload,
        span, trace,
    },
};

/// For the error of a call whose task is gone.
const ENQUEUE: &str = "an enqueue";

thread_local! {
    static SCRATCH: RefCell<BytesMut> = RefCell::default();
}

/// A scratch buffer that grew beyond this is not kept.
const SCRATCH_KEPT: usize = 1 << 20;

impl<T: Payload> Queue<T> {
    /// Enqueues a message and returns its id once it is committed, as durable as the server's settings make a commit. A message is a
    /// payload, or a [`Draft`](crate::Draft) of one, which says when it is due and has metadata.
    ///
    /// Concurrent calls share one row and one commit. If the call is dropped while it waits, the message may be
    /// enqueued all the same. For a message that need not survive and should be fast, see [`Queue::hand_over`].
    ///
    /// # Errors
    /// A payload that cannot be stored fails its own caller only. [`Error::is_outcome_unknown`](crate::Error): the
    /// connection broke before the answer, and the message may or may not be in the queue. A delay or time is out of bounds, or the
    /// metadata is larger than [`MAX_METADATA`](crate::MAX_METADATA).
    pub async fn enqueue(&self, message: impl IntoDraft<T>) -> Result<i64> {
        let due = message.due().number()?;
        let mut element = SCRATCH.take();
        element.clear();
        self.shared.column.encode(message.payload(), &mut element)?;
        let end = element.len();
        let span = {
            let metadata = message.metadata();
            let trace = trace::for_message(metadata);
            if !metadata.is_empty() || trace.is_some() {
                trace::stamped(metadata, trace.as_ref()).encode(&mut element)?;
            }
            // Boxed if there is one: the future of a call that nobody watches stays small.
            let span = span::enqueue(self.shared.name(), 1, trace.as_ref());
            (!span.is_disabled()).then(|| Box::new(span))
        };
        drop(message);
        let joined = self.shared.coalescer.join(due, &element[..end], &element[end..]).await;
        if element.capacity() <= SCRATCH_KEPT {
            SCRATCH.set(element);
        }
        if let Some(writer) = joined.writer {
            tokio::spawn(write(self.shared.clone(), writer));
        }
        match span {
            None => joined.place.id().await,
            Some(span) => Box::pin(joined.place.id().instrument(*span)).await,
        }
    }

    /// Enqueues all messages in one transaction, and returns their ids in their order. Neighbours that are due together share rows.
    ///
    /// # Errors
    /// As [`Queue::enqueue`]; one bad payload fails the whole call, and then none is stored.
    pub async fn enqueue_many<M: IntoDraft<T> + Send + Sync>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<i64>> {
        let (messages, trace): (Vec<M>, _) = (messages.into_iter().collect(), trace::next());
        let span = span::enqueue(self.shared.name(), messages.len(), trace.as_ref());
        self.enqueue_cut(Cut::new(&self.shared, messages.iter(), trace)).instrument(span).await
    }

    async fn enqueue_cut<'a, M: IntoDraft<T> + 'a>(
        &'a self,
        mut cut: Cut<'a, impl ExactSizeIterator<Item = &'a M>, T>,
    ) -> Result<Vec<i64>> {
        let mut ids = Vec::with_capacity(cut.len());
        let mut rows = cut.next_rows()?;
        if rows.is_empty() {
            return Ok(ids);
        }
        let shared = self.shared.clone();
        // What commits runs in a task of its own: a caller who goes away must not leave consumers unwoken.
        if cut.is_done() {
            // The usual case: one statement is the transaction. On a connection of others, in one round trip.
            return finish(ENQUEUE, async move {
                let session = shared.db.session(Lane::Enqueue).await?;
                shared.insert(&session, &rows, Woken::WithIt, &mut ids).await?;
                Ok(ids)
            })
            .await;
        }
        let session = shared.db.own_session().await?;
        session.batch("enqueue", "begin").await?;
        while !rows.is_empty() {
            shared.insert(&session, &rows, Woken::Later, &mut ids).await?; // dropping the session rolls back
            rows = cut.next_rows()?;
        }
        finish(ENQUEUE, async move {
            session.batch("enqueue", "commit").await?;
            shared.db.give_back(session);
            shared.db.wake(&shared.channel);
            Ok(ids)
        })
        .await
    }
}
