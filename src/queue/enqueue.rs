//! `enqueue`: into a coalesced batch; many at once; and in the caller's own transaction.

mod cut;
mod write;

use std::{
    borrow::Borrow,
    cell::RefCell,
    time::{Duration, Instant},
};

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
        handle::Queue,
        metadata::{Metadata, Stamped},
        payload::Payload,
        span,
        trace::{self, TraceContext},
    },
};

/// What most messages have.
static NONE: Metadata = Metadata::new();

/// Ids of rows that are inserted, and so of their first messages, are multiples of this.
const FIRST: i64 = 1024;

thread_local! {
    static SCRATCH: RefCell<BytesMut> = RefCell::default();
}

/// A scratch buffer that grew beyond this is not kept.
const SCRATCH_KEPT: usize = 1 << 20;

impl<T: Payload> Queue<T> {
    /// Enqueues a message and returns its id once it is committed, as durable as the server's settings make a commit.
    ///
    /// Concurrent calls share one row and one commit. If the call is dropped while it waits, the message may be
    /// enqueued all the same. For a message that need not survive and should be fast, see [`Queue::hand_over`].
    ///
    /// # Errors
    /// A payload that cannot be stored fails its own caller only. [`Error::is_outcome_unknown`](crate::Error): the
    /// connection broke before the answer, and the message may or may not be in the queue.
    pub async fn enqueue(&self, payload: impl Borrow<T>) -> Result<i64> {
        self.enqueue_with(payload, &NONE, Duration::ZERO).await
    }

    /// Enqueues a message that is due after a delay, by the server's clock.
    pub async fn enqueue_after(&self, payload: impl Borrow<T>, delay: Duration) -> Result<i64> {
        self.enqueue_with(payload, &NONE, delay).await
    }

    /// Enqueues a message with [`Metadata`], due after a delay. It shares rows and commits with messages that have none.
    ///
    /// # Errors
    /// As [`Queue::enqueue`], or the metadata is larger than [`MAX_METADATA`](crate::MAX_METADATA).
    pub async fn enqueue_with(&self, payload: impl Borrow<T>, metadata: &Metadata, delay: Duration) -> Result<i64> {
        let delay = bounded(delay)?;
        let mut element = SCRATCH.take();
        element.clear();
        self.shared.column.encode(payload.borrow(), &mut element)?;
        drop(payload);
        let end = element.len();
        let span = {
            let trace = trace::for_message(metadata);
            if !metadata.is_empty() || trace.is_some() {
                trace::stamped(metadata, trace.as_ref()).encode(&mut element)?;
            }
            // Boxed if there is one: the future of a call that nobody watches stays small.
            let span = span::enqueue(self.shared.name(), 1, trace.as_ref());
            (!span.is_disabled()).then(|| Box::new(span))
        };
        let joined = self.shared.coalescer.join(delay, &element[..end], &element[end..]).await;
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

    /// Enqueues all messages in one transaction, in order, and returns their ids in that order.
    ///
    /// # Errors
    /// As [`Queue::enqueue`]; one bad payload fails the whole call, and then none is stored.
    pub async fn enqueue_many(&self, payloads: &[impl Borrow<T>]) -> Result<Vec<i64>> {
        self.enqueue_many_after(payloads, Duration::ZERO).await
    }

    /// As [`Queue::enqueue_many`], due after a delay.
    pub async fn enqueue_many_after(&self, payloads: &[impl Borrow<T>], delay: Duration) -> Result<Vec<i64>> {
        self.enqueue_all(payloads.iter().map(|payload| (payload.borrow(), &NONE)), delay).await
    }

    /// As [`Queue::enqueue_many_after`], each message with its [`Metadata`].
    pub async fn enqueue_many_with(
        &self,
        messages: &[(impl Borrow<T>, Metadata)],
        delay: Duration,
    ) -> Result<Vec<i64>> {
        self.enqueue_all(messages.iter().map(|(payload, metadata)| (payload.borrow(), metadata)), delay).await
    }

    async fn enqueue_all<'a>(
        &'a self,
        messages: impl ExactSizeIterator<Item = (&'a T, &'a Metadata)>,
        delay: Duration,
    ) -> Result<Vec<i64>> {
        let (delay, trace) = (bounded(delay)?, trace::next());
        let span = span::enqueue(self.shared.name(), messages.len(), trace.as_ref());
        self.enqueue_cut(Cut::new(&self.shared, messages, trace), delay).instrument(span).await
    }

    async fn enqueue_cut<'a>(
        &'a self,
        mut cut: Cut<'a, impl ExactSizeIterator<Item = (&'a T, &'a Metadata)>>,
        delay: f64,
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
                shared.insert(&session, &rows, delay, Woken::WithIt, &mut ids).await?;
                Ok(ids)
            })
            .await;
        }
        let session = shared.db.own_session().await?;
        session.batch("enqueue", "begin").await?;
        while !rows.is_empty() {
            shared.insert(&session, &rows, delay, Woken::Later, &mut ids).await?; // dropping the session rolls back
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
    pub async fn enqueue_in(&self, transaction: &impl InTransaction, payload: impl Borrow<T>) -> Result<i64> {
        let ids = self.enqueue_many_in(transaction, &[payload], Duration::ZERO).await?;
        ids.first().copied().ok_or_else(|| self.shared.not_stored(1, 0))
    }

    /// Enqueues messages, due after a delay, in the caller's transaction.
    pub async fn enqueue_many_in(
        &self,
        transaction: &impl InTransaction,
        payloads: &[impl Borrow<T>],
        delay: Duration,
    ) -> Result<Vec<i64>> {
        self.enqueue_all_in(
            transaction,
            self.together(payloads.iter().map(|payload| (payload.borrow(), &NONE)))?,
            delay,
        )
        .await
    }

    /// As [`Queue::enqueue_many_in`], each message with its [`Metadata`].
    pub async fn enqueue_many_with_in(
        &self,
        transaction: &impl InTransaction,
        messages: &[(impl Borrow<T>, Metadata)],
        delay: Duration,
    ) -> Result<Vec<i64>> {
        let messages = messages.iter().map(|(payload, metadata)| (payload.borrow(), metadata));
        self.enqueue_all_in(transaction, self.together(messages)?, delay).await
    }

    async fn enqueue_all_in(
        &self,
        transaction: &impl InTransaction,
        Together { count, elements, mut metadata, trace }: Together,
        delay: Duration,
    ) -> Result<Vec<i64>> {
        let (sql, column, delay) = (&self.shared.sql.enqueue_in, &self.shared.column, bounded(delay)?);
        let (payloads, metadata) = (column.array(count, &elements), metadata.whole(count));
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&payloads, column.array.clone()), (&delay, Type::FLOAT8), (&metadata, Type::JSONB_ARRAY)];
        let (began, span) = (Instant::now(), span::enqueue(self.shared.name(), count, trace.as_ref()));
        let rows = transaction.fetch(&sql.text, &params).instrument(span).await;
        let rows = rows.map_err(|error| error.or_no_queue(self.shared.name()))?;
        let ids = rows.iter().map(|row| row.read(0)).collect::<Result<Vec<i64>>>()?;
        if ids.len() != count {
            return Err(self.shared.not_stored(count, ids.len()));
        }
        let batches = ids.iter().filter(|id| **id % FIRST == 0).count();
        self.shared.metrics.enqueued(count, batches, began);
        Ok(ids)
    }

    /// As [`Queue::enqueue_many_in`], without waiting: the messages leave with the transaction's next statements, and what is
    /// returned waits for their ids.
    ///
    /// # Errors
    /// As [`Transaction::send`]; what is returned errs as [`Queue::enqueue_many_in`].
    pub async fn send_enqueue(
        &self,
        transaction: &Transaction,
        payloads: &[impl Borrow<T>],
        delay: Duration,
    ) -> Result<BoxFuture<'static, Result<Vec<i64>>>> {
        let messages = payloads.iter().map(|payload| (payload.borrow(), &NONE));
        let (delay, Together { count, elements, mut metadata, trace }) = (bounded(delay)?, self.together(messages)?);
        let (payloads, metadata) = (self.shared.column.array(count, &elements), metadata.whole(count));
        let span = span::enqueue(self.shared.name(), count, trace.as_ref());
        let sql = &self.shared.sql.enqueue_in;
        let params: [&(dyn ToSql + Sync); 3] = [&payloads, &delay, &metadata];
        let sent = transaction.send_text::<Vec<(i64,)>>(&sql.text, &params).instrument(span).await;
        let (pending, shared) = (sent.map_err(|error| error.or_no_queue(self.shared.name()))?, self.shared.clone());
        shared.metrics.sent(count);
        Ok(Box::pin(async move {
            let ids: Vec<i64> = pending.await?.into_iter().map(|(id,)| id).collect();
            if ids.len() == count { Ok(ids) } else { Err(shared.not_stored(count, ids.len())) }
        }))
    }

    fn together<'a>(&self, messages: impl Iterator<Item = (&'a T, &'a Metadata)>) -> Result<Together> {
        let mut all = Together { trace: trace::next(), ..Together::default() };
        let mut stamp = BytesMut::new();
        for (payload, metadata) in messages {
            self.shared.column.encode(payload, &mut all.elements)?;
            if !metadata.is_empty() || all.trace.is_some() {
                stamp.clear();
                trace::stamped(metadata, all.trace.as_ref()).encode(&mut stamp)?;
                all.metadata.push(all.count, &stamp);
            }
            all.count += 1;
        }
        Ok(all)
    }
}

/// Messages for one statement that cuts them into rows itself.
#[derive(Default)]
struct Together {
    count: usize,
    elements: BytesMut,
    metadata: Stamped,
    trace: Option<TraceContext>,
}

/// Runs to its end, whether or not the caller stays.
async fn finish(work: impl Future<Output = Result<Vec<i64>>> + Send + 'static) -> Result<Vec<i64>> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(Error::ended("an enqueue", true)))
}

/// A delay in seconds that Postgres can add to a time.
pub(crate) fn bounded(delay: Duration) -> Result<f64> {
    if delay > MAX_DELAY {
        return Err(Error::invalid(format!(
            "a delay of {} days is out of bounds: at most 36,500",
            delay.as_secs() / 86_400
        )));
    }
    Ok(delay.as_secs_f64())
}

const MAX_DELAY: Duration = Duration::from_secs(36_500 * 86_400);
