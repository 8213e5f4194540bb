//! `enqueue_in` and `send_enqueue`, which enqueue in the caller's transaction. Their statement
//! splits the messages into rows on the server.

use std::{collections::HashMap, time::Instant};

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use tokio_postgres::types::{ToSql, Type};
use tracing::Instrument;

use crate::{
    error::Result,
    postgres::{array::Elements, in_transaction::InTransaction, sql::Sql, transaction::Transaction},
    queue::{
        handle::{Queue, Shared},
        message::{
            columns::of_message,
            draft::IntoDraft,
            keys,
            metadata::{Beside, Stamped},
            payload::Payload,
            trace::{self, TraceContext},
            unique::Enqueued,
        },
        observe::span,
        verbs::enqueue::unique::{FIRST, Parcel},
    },
};

impl<T: Payload> Queue<T> {
    /// Enqueues a message in the caller's transaction: if and when the transaction commits, the
    /// message is in the queue and wakes consumers.
    ///
    /// If another transaction has claimed the message's unique key ([`Unique`](crate::Unique)),
    /// this call waits for the end of that transaction. In the same way, other transactions wait
    /// for the end of yours. If two transactions wait for each other, Postgres ends the deadlock
    /// with an error for one of them. To avoid this, enqueue messages with unique keys in the order
    /// of their keys, or with one call of [`Queue::enqueue_many_in`]. A repeatable read or
    /// serializable transaction fails with `40001` if another transaction claimed the key, or if
    /// the queue was compacted, after its snapshot was taken.
    ///
    /// The notification is part of the transaction, so its commit takes a database-wide lock, like
    /// every `NOTIFY`.
    ///
    /// # Errors
    /// The payload cannot be stored. After a database error, the transaction can only be rolled
    /// back. `TL002`: partitions have been added to the queue since the handle last read their
    /// number (see [`Changes::partitions`](crate::Changes::partitions)); begin the transaction
    /// again.
    pub async fn enqueue_in(&self, transaction: &impl InTransaction, message: impl IntoDraft<T>) -> Result<Enqueued> {
        let all = self.enqueue_many_in(transaction, [message]).await?;
        all.first().copied().ok_or_else(|| self.shared.not_stored(1, 0))
    }

    /// Enqueues messages in the caller's transaction. Messages with the same due time, priority and
    /// column values share a statement. If some messages have unique keys, a single statement
    /// enqueues all of them.
    ///
    /// # Errors
    /// The errors of [`Queue::enqueue_in`].
    pub async fn enqueue_many_in<M: IntoDraft<T>>(
        &self,
        transaction: &impl InTransaction,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<Enqueued>> {
        let messages: Vec<M> = messages.into_iter().collect();
        if messages.iter().any(|message| message.unique().is_some()) {
            let trace = trace::next();
            return self.claim_in(transaction, self.shared.parcel(&messages, trace.as_ref())?, trace).await;
        }
        let together = self.together(&messages)?;
        self.enqueue_all_in(transaction, together).await
    }

    async fn claim_in(
        &self,
        transaction: &impl InTransaction,
        parcel: Parcel,
        trace: Option<TraceContext>,
    ) -> Result<Vec<Enqueued>> {
        let (shared, params, began) = (&self.shared, parcel.params(), Instant::now());
        let payloads = params.payloads(shared);
        let params = params.typed(&payloads, &shared.column.array);
        let span = span::enqueue(shared.name(), parcel.len(), trace.as_ref());
        let rows = transaction.fetch(&shared.sql.enqueue_in_unique.text, &params).instrument(span).await;
        let rows = rows.map_err(|error| error.or_no_queue(shared.name()))?;
        let all = rows.iter().map(|row| Ok(Enqueued::of(row.read(0)?, row.read(1)?))).collect::<Result<Vec<_>>>()?;
        shared.claimed(parcel.len(), &all, began)?;
        Ok(all)
    }

    async fn enqueue_all_in(&self, transaction: &impl InTransaction, together: Vec<Together>) -> Result<Vec<Enqueued>> {
        let mut all = Vec::new();
        for mut group in together {
            let (began, trace, count) = (Instant::now(), group.trace.take(), group.places.len());
            let span = span::enqueue(self.shared.name(), count, trace.as_ref());
            let encoded = group.encoded(&self.shared);
            let (sql, params) = encoded.statement(&self.shared);
            let rows = transaction.fetch(&sql.text, &params).instrument(span).await;
            let rows = rows.map_err(|error| error.or_no_queue(self.shared.name()))?;
            let ids = rows.iter().map(|row| row.read(0)).collect::<Result<Vec<i64>>>()?;
            if ids.len() != count {
                return Err(self.shared.not_stored(count, ids.len()));
            }
            let batches = ids.iter().filter(|id| **id % FIRST == 0).count();
            self.shared.metrics.enqueued(count, batches, began);
            all.extend(group.places.into_iter().zip(ids));
        }
        Ok(in_order(all))
    }

    /// Enqueues like [`Queue::enqueue_in`], without waiting: the statement is sent together with
    /// the transaction's next statements. The returned future waits for the id.
    ///
    /// # Errors
    /// The errors of [`Transaction::send`]; the returned future has those of [`Queue::enqueue_in`].
    pub async fn send_enqueue(
        &self,
        transaction: &Transaction,
        message: impl IntoDraft<T>,
    ) -> Result<BoxFuture<'static, Result<Enqueued>>> {
        let (sent, shared) = (self.send_enqueue_many(transaction, [message]).await?, self.shared.clone());
        Ok(Box::pin(async move { sent.await?.first().copied().ok_or_else(|| shared.not_stored(1, 0)) }))
    }

    /// Enqueues many messages like [`Queue::enqueue_many_in`], but without waiting, as
    /// [`Queue::send_enqueue`] does.
    ///
    /// # Errors
    /// The errors of [`Queue::send_enqueue`].
    pub async fn send_enqueue_many<M: IntoDraft<T>>(
        &self,
        transaction: &Transaction,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<BoxFuture<'static, Result<Vec<Enqueued>>>> {
        let messages: Vec<M> = messages.into_iter().collect();
        if messages.iter().any(|message| message.unique().is_some()) {
            return self.send_parcel(transaction, &messages).await;
        }
        self.send_all(transaction, self.together(&messages)?).await
    }

    /// Sends messages, some of which have unique keys.
    async fn send_parcel<M: IntoDraft<T>>(
        &self,
        transaction: &Transaction,
        messages: &[M],
    ) -> Result<BoxFuture<'static, Result<Vec<Enqueued>>>> {
        let (shared, trace) = (self.shared.clone(), trace::next());
        let parcel = shared.parcel(messages, trace.as_ref())?;
        let (params, count) = (parcel.params(), parcel.len());
        let payloads = params.payloads(&shared);
        let params = params.typed(&payloads, &shared.column.array).map(|(param, _)| param);
        let span = span::enqueue(shared.name(), count, trace.as_ref());
        let pending = transaction.send_text::<Vec<(i64, i32)>>(&shared.sql.enqueue_in_unique.text, &params);
        let pending = pending.instrument(span).await.map_err(|error| error.or_no_queue(shared.name()))?;
        shared.metrics.sent(count);
        Ok(Box::pin(async move {
            let all = pending.await?;
            if all.len() != count {
                return Err(shared.not_stored(count, all.len()));
            }
            Ok(all.into_iter().map(|(id, outcome)| Enqueued::of(id, outcome)).collect())
        }))
    }

    async fn send_all(
        &self,
        transaction: &Transaction,
        together: Vec<Together>,
    ) -> Result<BoxFuture<'static, Result<Vec<Enqueued>>>> {
        let mut sent = Vec::with_capacity(together.len());
        for mut group in together {
            let (trace, count) = (group.trace.take(), group.places.len());
            let span = span::enqueue(self.shared.name(), count, trace.as_ref());
            let encoded = group.encoded(&self.shared);
            let (sql, params) = encoded.statement(&self.shared);
            let params: Vec<_> = params.into_iter().map(|(param, _)| param).collect();
            let pending = transaction.send_text::<Vec<(i64,)>>(&sql.text, &params);
            let pending = pending.instrument(span).await.map_err(|error| error.or_no_queue(self.shared.name()))?;
            self.shared.metrics.sent(count);
            sent.push((group.places, pending));
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

    /// Groups messages by due time, priority and column values. Each group becomes one statement.
    /// Messages with keys must keep their order: if any of them has column values, only adjacent
    /// messages share a group.
    fn together<M: IntoDraft<T>>(&self, messages: &[M]) -> Result<Vec<Together>> {
        let (trace, mut stamp) = (trace::next(), BytesMut::new());
        let only_adjacent = self.shared.is_keyed() && messages.iter().any(|message| message.columns().is_some());
        let mut all: Vec<Together> = Vec::new();
        let mut places: HashMap<(u64, u16, Option<Box<str>>), usize> = HashMap::new();
        for (place, message) in messages.iter().enumerate() {
            let (due, lane) = (message.due().number()?, self.shared.lane_of(message.priority(), message.key())?);
            let lane = if self.shared.is_keyed() { 0 } else { lane }; // the statement computes the partition
            let columns = of_message(message)?;
            let alike = (due.to_bits(), lane, columns.clone());
            if only_adjacent && places.get(&alike).is_some_and(|at| at + 1 < all.len()) {
                places.remove(&alike);
            }
            let at = *places.entry(alike).or_insert_with(|| {
                all.push(Together { due, lane: lane.into(), columns, trace: trace.clone(), ..Together::default() });
                all.len() - 1
            });
            let (group, metadata) = (&mut all[at], message.metadata());
            if let Some(key) = message.key() {
                keys::write(key, &mut group.keys);
            }
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

/// Messages for one statement, which splits them into rows.
#[derive(Default)]
struct Together {
    due: f64,
    lane: i32,
    /// The messages' positions among the caller's messages.
    places: Vec<usize>,
    elements: BytesMut,
    metadata: Stamped,
    keys: BytesMut,
    /// The values of columns that users added.
    columns: Option<Box<str>>,
    trace: Option<TraceContext>,
}

/// A group of messages as parameters of its statement.
struct Encoded<'a> {
    due: &'a f64,
    lane: &'a i32,
    payloads: Elements<'a>,
    metadata: Beside<'a>,
    keys: Option<Elements<'a>>,
    columns: Option<&'a str>,
}

type Typed<'a> = (&'a (dyn ToSql + Sync), Type);

impl Together {
    fn encoded(&mut self, shared: &Shared) -> Encoded<'_> {
        let count = self.places.len();
        Encoded {
            due: &self.due,
            lane: &self.lane,
            payloads: shared.column.array(count, &self.elements),
            metadata: self.metadata.whole(count),
            keys: shared.is_keyed().then(|| keys::array(count, &self.keys)),
            columns: self.columns.as_deref(),
        }
    }
}

impl Encoded<'_> {
    /// Returns the statement that enqueues the group, with its parameters.
    fn statement<'a>(&'a self, shared: &'a Shared) -> (&'a Sql, Vec<Typed<'a>>) {
        let payloads: Typed<'_> = (&self.payloads, shared.column.array.clone());
        let (due, metadata): (Typed<'_>, Typed<'_>) = ((self.due, Type::FLOAT8), (&self.metadata, Type::JSONB_ARRAY));
        let (lane, keys): (Typed<'_>, Typed<'_>) = ((self.lane, Type::INT4), (&self.keys, Type::TEXT_ARRAY));
        if let Some(columns) = &self.columns {
            let name: Typed<'_> = (&shared.description.name, Type::TEXT);
            let params = vec![name, payloads, (columns, Type::TEXT), due, metadata, lane, keys];
            return (&shared.sql.enqueue_rows, params);
        }
        let mut params = vec![payloads, due, metadata];
        if shared.is_keyed() {
            params.push(keys);
        } else if shared.is_laned() {
            params.push(lane);
        }
        (&shared.sql.enqueue_in, params)
    }
}

/// Returns the ids in the order of the caller's messages.
fn in_order(mut ids: Vec<(usize, i64)>) -> Vec<Enqueued> {
    ids.sort_unstable();
    ids.into_iter().map(|(_, id)| Enqueued::New(id)).collect()
}
