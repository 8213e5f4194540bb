//! `enqueue_in` and `send_enqueue`: in the caller's transaction, by a statement that cuts messages into rows itself.

use std::{collections::HashMap, time::Instant};

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use tokio_postgres::types::{ToSql, Type};
use tracing::Instrument;

use crate::{
    error::Result,
    postgres::{in_transaction::InTransaction, transaction::Transaction},
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

impl<T: Payload> Queue<T> {
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
