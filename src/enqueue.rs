//! `enqueue`: into a coalesced batch; many at once; and in the caller's own transaction.

use std::{borrow::Borrow, cell::RefCell, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio_postgres::types::{ToSql, Type};

use crate::{
    coalesce::{BATCH_BYTES, Batch, Joined, Outcome},
    db::{Lane, Session},
    error::{Error, Result},
    in_transaction::InTransaction,
    payload::{Column, Payload},
    queue::{Queue, Shared},
    sql::Statements,
    transaction::{Pending, Transaction},
};

thread_local! {
    static SCRATCH: RefCell<BytesMut> = RefCell::default();
}

/// A scratch buffer that grew beyond this is not kept.
const SCRATCH_KEPT: usize = 1 << 20;

impl<T: Payload> Queue<T> {
    /// Enqueues a message and returns its id once it is committed, as durable as the server's settings make a commit.
    ///
    /// Concurrent calls share one row and one commit. If the call is dropped while it waits, the message may be
    /// enqueued all the same.
    ///
    /// # Errors
    /// A payload that cannot be stored fails its own caller only. [`Error::is_outcome_unknown`](crate::Error): the
    /// connection broke before the answer, and the message may or may not be in the queue.
    pub async fn enqueue(&self, payload: impl Borrow<T>) -> Result<i64> {
        self.enqueue_after(payload, Duration::ZERO).await
    }

    /// Enqueues a message that is due after a delay, by the server's clock.
    pub async fn enqueue_after(&self, payload: impl Borrow<T>, delay: Duration) -> Result<i64> {
        let delay = bounded(delay)?;
        let mut element = SCRATCH.take();
        element.clear();
        self.shared.column.encode(payload.borrow(), &mut element)?;
        drop(payload);
        let joined = self.shared.coalescer.join(delay, &element).await;
        if element.capacity() <= SCRATCH_KEPT {
            SCRATCH.set(element);
        }
        match joined {
            Joined::Writing(place) => place.id().await,
            Joined::StartWriter(place) => {
                tokio::spawn(write(self.shared.clone()));
                place.id().await
            }
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
        let delay = bounded(delay)?;
        let mut cut = Cut::new(&self.shared, payloads);
        let mut ids = Vec::with_capacity(payloads.len());
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
        self.enqueue_many_in(transaction, &[payload], Duration::ZERO).await.map(|ids| ids[0])
    }

    /// Enqueues messages, due after a delay, in the caller's transaction.
    pub async fn enqueue_many_in(
        &self,
        transaction: &impl InTransaction,
        payloads: &[impl Borrow<T>],
        delay: Duration,
    ) -> Result<Vec<i64>> {
        let (delay, elements) = (bounded(delay)?, self.elements(payloads)?);
        let (sql, column) = (&self.shared.sql.enqueue_in, &self.shared.column);
        let payloads = column.array(payloads.len(), &elements);
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(&payloads, column.array.clone()), (&delay, Type::FLOAT8)];
        let rows = transaction.fetch(&sql.text, &params).await;
        let rows = rows.map_err(|error| error.or_no_queue(self.shared.name()))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// As [`Queue::enqueue_many_in`], without waiting: the messages leave with the transaction's next statements, and what is
    /// returned waits for their ids.
    ///
    /// # Errors
    /// As [`Transaction::send`].
    pub async fn send_enqueue(
        &self,
        transaction: &Transaction,
        payloads: &[impl Borrow<T>],
        delay: Duration,
    ) -> Result<Pending<Vec<(i64,)>>> {
        let (delay, elements) = (bounded(delay)?, self.elements(payloads)?);
        let payloads = self.shared.column.array(payloads.len(), &elements);
        let sent = transaction.send_text(&self.shared.sql.enqueue_in.text, &[&payloads, &delay]).await;
        sent.map_err(|error| error.or_no_queue(self.shared.name()))
    }

    fn elements(&self, payloads: &[impl Borrow<T>]) -> Result<BytesMut> {
        let mut elements = BytesMut::new();
        for payload in payloads {
            self.shared.column.encode(payload.borrow(), &mut elements)?;
        }
        Ok(elements)
    }
}

/// Runs to its end, whether or not the caller stays.
async fn finish(work: impl Future<Output = Result<Vec<i64>>> + Send + 'static) -> Result<Vec<i64>> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(Error::invalid("the runtime shut down during an enqueue")))
}

/// A delay in seconds that Postgres can add to a time.
fn bounded(delay: Duration) -> Result<f64> {
    if delay > MAX_DELAY {
        return Err(Error::invalid(format!(
            "a delay of {} days is out of bounds: at most 36,500",
            delay.as_secs() / 86_400
        )));
    }
    Ok(delay.as_secs_f64())
}

const MAX_DELAY: Duration = Duration::from_secs(36_500 * 86_400);

/// When an insert wakes consumers: as it commits, or later, because its transaction goes on.
#[derive(Clone, Copy)]
enum Woken {
    WithIt,
    Later,
}

/// Rows for an insert: how many messages, and their elements.
type Rows = Vec<(usize, BytesMut)>;

/// Cuts a long list into rows as it is encoded, a statement's worth at a time.
struct Cut<'a, P, T> {
    column: &'a Column,
    max_batch: usize,
    rest: std::slice::Iter<'a, P>,
    /// An element that did not fit into the row before.
    carried: Option<BytesMut>,
    payload: std::marker::PhantomData<T>,
}

impl<'a, P: Borrow<T>, T: Payload> Cut<'a, P, T> {
    fn new(shared: &'a Shared, payloads: &'a [P]) -> Self {
        let max_batch = shared.description.max_batch as usize;
        Self {
            column: &shared.column,
            max_batch,
            rest: payloads.iter(),
            carried: None,
            payload: std::marker::PhantomData,
        }
    }

    fn is_done(&self) -> bool {
        self.carried.is_none() && self.rest.len() == 0
    }

    fn next_rows(&mut self) -> Result<Rows> {
        let mut rows = Rows::new();
        let mut bytes = 0;
        while rows.len() < Statements::ROWS && bytes < 4 * BATCH_BYTES && !self.is_done() {
            let row = self.next_row()?;
            bytes += row.1.len();
            rows.push(row);
        }
        Ok(rows)
    }

    fn next_row(&mut self) -> Result<(usize, BytesMut)> {
        let mut elements = self.carried.take().unwrap_or_default();
        let mut count = usize::from(!elements.is_empty());
        while count < self.max_batch {
            let Some(payload) = self.rest.next() else { break };
            let before = elements.len();
            self.column.encode::<T>(payload.borrow(), &mut elements)?;
            if count > 0 && elements.len() > BATCH_BYTES {
                self.carried = Some(elements.split_off(before));
                break;
            }
            count += 1;
        }
        Ok((count, elements))
    }
}

/// Writes what has gathered, insert after insert, until nothing waits.
async fn write(shared: Arc<Shared>) {
    loop {
        let batches = shared.coalescer.next(Statements::ROWS);
        if batches.is_empty() {
            return;
        }
        shared.write(&batches).await;
        // The callers who were just answered come first: what they enqueue next shares the next row.
        tokio::task::yield_now().await;
    }
}

impl Shared {
    /// Inserts rows by one statement and adds the ids of all their messages.
    async fn insert(&self, session: &Session, rows: &Rows, delay: f64, woken: Woken, ids: &mut Vec<i64>) -> Result<()> {
        let rows: Vec<Row<'_>> = rows.iter().map(|(count, elements)| Row { delay, count: *count, elements }).collect();
        for (first, row) in self.insert_rows(session, &rows, woken).await?.into_iter().zip(&rows) {
            ids.extend(first..first + row.count as i64);
        }
        Ok(())
    }

    async fn insert_rows(&self, session: &Session, rows: &[Row<'_>], woken: Woken) -> Result<Vec<i64>> {
        let sizes: Vec<i32> = rows.iter().map(|row| row.count as i32).collect();
        let arrays: Vec<_> = rows.iter().map(|row| self.column.array(row.count, row.elements)).collect();
        let mut params: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(3 * rows.len());
        for (at, row) in rows.iter().enumerate() {
            params.extend([&row.delay as &(dyn ToSql + Sync), &sizes[at], &arrays[at]]);
        }
        let sql = &self.sql.enqueue[rows.len() - 1];
        let inserted = match woken {
            Woken::WithIt => self.db.query_and_wake(session, sql, &params, &self.channel).await,
            Woken::Later => session.query(sql, &params).await,
        };
        let inserted = inserted.map_err(|error| error.or_no_queue(self.name()))?;
        Ok(inserted.iter().map(|row| row.get(0)).collect())
    }

    /// Writes batches in one transaction and tells their callers.
    async fn write(&self, batches: &[Batch]) {
        let rows: Vec<Row<'_>> = batches.iter().map(Row::of).collect();
        match self.try_write(&rows).await {
            Ok(ids) => {
                for (batch, id) in batches.iter().zip(ids) {
                    let _ = batch.outcome.set(Outcome::Stored(id)); // set once: here or below
                }
            }
            Err(error) => {
                for batch in batches {
                    let outcome = if error.is_bad_payload() {
                        Outcome::Each(self.write_apart(Row::of(batch)).await)
                    } else {
                        Outcome::Failed(error.clone())
                    };
                    let _ = batch.outcome.set(outcome);
                }
            }
        }
    }

    async fn try_write(&self, rows: &[Row<'_>]) -> Result<Vec<i64>> {
        self.insert_rows(&*self.db.session(Lane::Enqueue).await?, rows, Woken::WithIt).await
    }

    /// Finds the payloads that the server refuses, by halves, and stores the others.
    async fn write_apart(&self, row: Row<'_>) -> Vec<Result<i64>> {
        let mut parts = vec![row];
        let mut each = Vec::with_capacity(row.count);
        while let Some(part) = parts.pop() {
            match self.try_write(&[part]).await {
                Ok(ids) => each.extend((ids[0]..).take(part.count).map(Ok)),
                Err(error) if part.count == 1 || !error.is_bad_payload() => {
                    each.extend((0..part.count).map(|_| Err(error.clone())));
                }
                Err(_) => {
                    let (left, right) = part.halves();
                    parts.extend([right, left]);
                }
            }
        }
        each
    }
}

/// A row of an insert.
#[derive(Clone, Copy)]
struct Row<'a> {
    delay: f64,
    count: usize,
    elements: &'a [u8],
}

impl<'a> Row<'a> {
    fn of(batch: &'a Batch) -> Self {
        Self { delay: batch.delay, count: batch.count, elements: &batch.elements }
    }

    /// Between two of at least two elements.
    fn halves(self) -> (Self, Self) {
        let left = self.count / 2;
        let mut at = 0;
        for _ in 0..left {
            let length = &self.elements[at..at + 4];
            at += 4 + u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        }
        let (one, two) = self.elements.split_at(at);
        (Self { count: left, elements: one, ..self }, Self { count: self.count - left, elements: two, ..self })
    }
}
