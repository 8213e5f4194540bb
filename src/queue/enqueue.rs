//! `enqueue`: into a coalesced batch; many at once; and in the caller's own transaction.

mod cut;
mod write;

use std::{cell::RefCell, collections::HashMap, time::Instant};

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use tokio_postgres::types::{ToSql, Type};
use tracing::Instrument;

use self::{
    cut::Cut,
    write::{Woken, write},
};
use crate::{
    error::{Error, Result},
    postgres::{db::Lane, in_transaction::InTransaction, transaction::Transaction},
    queue::{
        draft::IntoDraft,
        handle::Queue,
        metadata::Stamped,
        payload::Payload,
        span,
        trace::{self, TraceContext},
    },
};

/// Ids of rows that are inserted, and so of their first messages, are multiples of this.
const FIRST: i64 = 1024;

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
            return finish(async move {
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
        finish(async move {
            session.batch("enqueue", "commit").await?;
            shared.db.give_back(session);
            shared.db.wake(&shared.channel);
            Ok(ids)
        })
        .await
    }

    /// Enqueues a message in the caller's transaction: it is there if and when that commits, and then wakes consumers.
    ///
    /// The notification is part of the transaction, which therefore takes a database-wide lock for the time of its
    /// commit, as every `NOTIFY` does.
    pub async fn enqueue_in(&self, transaction: &impl InTransaction, message: impl IntoDraft<T>) -> Result<i64> {
        let together = self.together(&[message])?;
        let ids = self.enqueue_all_in(transaction, together).await?;
        ids.first().copied().ok_or_else(|| self.shared.not_stored(1, 0))
    }

    /// Enqueues messages in the caller's transaction, by a statement for each due time that they have.
    pub async fn enqueue_many_in<M: IntoDraft<T>>(
        &self,
        transaction: &impl InTransaction,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<i64>> {
        let together = self.together(&messages.into_iter().collect::<Vec<_>>())?;
        self.enqueue_all_in(transaction, together).await
    }

    async fn enqueue_all_in(&self, transaction: &impl InTransaction, together: Vec<Together>) -> Result<Vec<i64>> {
        let (sql, column) = (&self.shared.sql.enqueue_in, &self.shared.column);
        let mut all = Vec::new();
        for Together { due, places, elements, mut metadata, trace } in together {
            let count = places.len();
            let (payloads, metadata) = (column.array(count, &elements), metadata.whole(count));
            let params: [(&(dyn ToSql + Sync), Type); 3] =
                [(&payloads, column.array.clone()), (&due, Type::FLOAT8), (&metadata, Type::JSONB_ARRAY)];
            let (began, span) = (Instant::now(), span::enqueue(self.shared.name(), count, trace.as_ref()));
            let rows = transaction.fetch(&sql.text, &params).instrument(span).await;
            let rows = rows.map_err(|error| error.or_no_queue(self.shared.name()))?;
            let ids = rows.iter().map(|row| row.read(0)).collect::<Result<Vec<i64>>>()?;
            if ids.len() != count {
                return Err(self.shared.not_stored(count, ids.len()));
            }
            let batches = ids.iter().filter(|id| **id % FIRST == 0).count();
            self.shared.metrics.enqueued(count, batches, began);
            all.extend(places.into_iter().zip(ids));
        }
        Ok(in_order(all))
    }

    /// As [`Queue::enqueue_in`], without waiting: the message leaves with the transaction's next statements, and what is returned
    /// waits for its id.
    ///
    /// # Errors
    /// As [`Transaction::send`]; what is returned errs as [`Queue::enqueue_in`].
    pub async fn send_enqueue(
        &self,
        transaction: &Transaction,
        message: impl IntoDraft<T>,
    ) -> Result<BoxFuture<'static, Result<i64>>> {
        let together = self.together(&[message])?;
        let (ids, shared) = (self.send_all(transaction, together).await?, self.shared.clone());
        Ok(Box::pin(async move { ids.await?.first().copied().ok_or_else(|| shared.not_stored(1, 0)) }))
    }

    /// As [`Queue::enqueue_many_in`], without waiting, as [`Queue::send_enqueue`].
    ///
    /// # Errors
    /// As [`Queue::send_enqueue`].
    pub async fn send_enqueue_many<M: IntoDraft<T>>(
        &self,
        transaction: &Transaction,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<BoxFuture<'static, Result<Vec<i64>>>> {
        let together = self.together(&messages.into_iter().collect::<Vec<_>>())?;
        self.send_all(transaction, together).await
    }

    async fn send_all(
        &self,
        transaction: &Transaction,
        together: Vec<Together>,
    ) -> Result<BoxFuture<'static, Result<Vec<i64>>>> {
        let mut sent = Vec::with_capacity(together.len());
        for Together { due, places, elements, mut metadata, trace } in together {
            let count = places.len();
            let (payloads, metadata) = (self.shared.column.array(count, &elements), metadata.whole(count));
            let span = span::enqueue(self.shared.name(), count, trace.as_ref());
            let params: [&(dyn ToSql + Sync); 3] = [&payloads, &due, &metadata];
            let pending = transaction.send_text::<Vec<(i64,)>>(&self.shared.sql.enqueue_in.text, &params);
            let pending = pending.instrument(span).await.map_err(|error| error.or_no_queue(self.shared.name()))?;
            self.shared.metrics.sent(count);
            sent.push((places, pending));
        }
        let shared = self.shared.clone();
        Ok(Box::pin(async move {
            let mut all = Vec::new();
            for (places, pending) in sent {
                let ids = pending.await?;
                if ids.len() != places.len() {
                    return Err(shared.not_stored(places.len(), ids.len()));
                }
                all.extend(places.into_iter().zip(ids.into_iter().map(|(id,)| id)));
            }
            Ok(in_order(all))
        }))
    }

    /// Those that are due together, a statement each.
    fn together<M: IntoDraft<T>>(&self, messages: &[M]) -> Result<Vec<Together>> {
        let (trace, mut stamp) = (trace::next(), BytesMut::new());
        let (mut all, mut by_due): (Vec<Together>, HashMap<u64, usize>) = (Vec::new(), HashMap::new());
        for (place, message) in messages.iter().enumerate() {
            let due = message.due().number()?;
            let at = *by_due.entry(due.to_bits()).or_insert_with(|| {
                all.push(Together { due, trace: trace.clone(), ..Together::default() });
                all.len() - 1
            });
            let (group, metadata) = (&mut all[at], message.metadata());
            self.shared.column.encode(message.payload(), &mut group.elements)?;
            if !metadata.is_empty() || trace.is_some() {
                stamp.clear();
                trace::stamped(metadata, trace.as_ref()).encode(&mut stamp)?;
                group.metadata.push(group.places.len(), &stamp);
            }
            group.places.push(place);
        }
        Ok(all)
    }
}

/// Messages for one statement that cuts them into rows itself.
#[derive(Default)]
struct Together {
    due: f64,
    /// Where they stand among the caller's messages.
    places: Vec<usize>,
    elements: BytesMut,
    metadata: Stamped,
    trace: Option<TraceContext>,
}

/// The ids as the caller's messages stood.
fn in_order(mut ids: Vec<(usize, i64)>) -> Vec<i64> {
    ids.sort_unstable();
    ids.into_iter().map(|(_, id)| id).collect()
}

/// Runs to its end, whether or not the caller stays.
async fn finish(work: impl Future<Output = Result<Vec<i64>>> + Send + 'static) -> Result<Vec<i64>> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(Error::ended("an enqueue", true)))
}
