//! Between the statement and the caller: a dequeue runs in a task of its own, and what it brought is given back if the
//! caller went away meanwhile. So a dropped future neither loses messages nor holds them until their lease ends.

use std::{sync::Arc, time::Instant};

use tokio::{runtime::Handle, sync::oneshot};
use tokio_postgres::types::ToSql;
use tracing::{Instrument, Span, debug};

use crate::{
    db::Lane,
    error::{Error, Result},
    floor::Time,
    in_transaction::Fetched,
    message::{Lease, Message, Ranges, Settled},
    metadata::Carried,
    metric::End,
    payload::{Payload, Received},
    queue::Shared,
    span,
    sql::Sql,
    wire::Row,
};

/// How messages leave the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Dequeue {
    Take,
    /// For that many seconds, or the queue's lease time.
    Lease(Option<f64>),
    /// As `Lease`, but what ran out comes alone.
    LeaseApart(Option<f64>),
}

impl Dequeue {
    fn span(self, queue: &str, n: i32) -> Span {
        match self {
            Self::Take => span::take(queue, n as usize),
            Self::Lease(_) | Self::LeaseApart(_) => span::lease(queue, n as usize),
        }
    }
}

/// Rows that were dequeued and belong to nobody yet.
struct Batches {
    rows: Vec<Row>,
    /// Messages in them.
    size: usize,
    how: Dequeue,
    shared: Arc<Shared>,
}

impl Batches {
    /// What a statement brought that was sent when it was `began`.
    fn of(rows: Vec<Row>, how: Dequeue, shared: Arc<Shared>, began: Instant, span: &Span) -> Self {
        let size = rows.iter().map(|row| row.read::<i32>(2).unwrap_or_default().unsigned_abs() as usize).sum();
        span.record("got", size);
        match how {
            Dequeue::Take => shared.metrics.taken(size, began),
            Dequeue::Lease(_) | Dequeue::LeaseApart(_) => shared.metrics.leased(size, began),
        }
        shared.saw_batches(size, rows.len());
        Self { rows, size, how, shared }
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        let (rows, shared, how) = (std::mem::take(&mut self.rows), self.shared.clone(), self.how);
        if !rows.is_empty()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move {
                if let Err(error) = shared.give_back(&rows, how).await {
                    debug!(queue = shared.name(), %error, "dequeued messages could not be given back");
                }
            });
        }
    }
}

/// Messages that one statement takes or leases at most; larger wishes take several.
pub(crate) const PAGE: usize = 1 << 15;

impl Shared {
    /// Dequeues up to `n` messages, each statement in a transaction of its own.
    pub async fn dequeue<T: Payload>(self: &Arc<Self>, n: usize, how: Dequeue) -> Result<Dequeued<T>> {
        let mut pages = Vec::new();
        let mut got = 0;
        while got < n {
            let wanted = (n - got).min(PAGE);
            let page = match self.dequeue_page(wanted as i32, how).await {
                Err(_) if got > 0 => break, // what was dequeued before is the caller's
                outcome => outcome?,
            };
            let size = page.size;
            pages.push(page);
            got += size;
            if size < wanted {
                break;
            }
        }
        self.open(pages, got)
    }

    /// Ends leases and begins others, both in one transaction.
    pub async fn dequeue_and_ack<T: Payload>(
        self: &Arc<Self>,
        n: usize,
        time: Option<f64>,
        done: Ranges,
    ) -> Result<(Dequeued<T>, Vec<Settled>)> {
        let (shared, n, (answer, answered)) = (self.clone(), n.min(PAGE) as i32, oneshot::channel());
        let asked = done.messages();
        let settle = span::settle(self.name(), End::Done.name(), asked);
        let span = settle.in_scope(|| span::lease(self.name(), n as usize));
        let noted = span.clone();
        let work = async move {
            let began = Instant::now();
            let (floor, rows) = (shared.floor(), shared.rows_for(n as usize));
            let ack: [&(dyn ToSql + Sync); 3] = [&done.ids, &done.sizes, &done.attempts];
            let lease: [&(dyn ToSql + Sync); 4] = [&n, &time, &floor, &rows];
            let both: [(&Sql, &[&(dyn ToSql + Sync)]); 2] =
                [(&shared.sql.ack, &ack), (&shared.sql.lease_apart, &lease)];
            let session = shared.db.session(Lane::Dequeue).await;
            let outcome = match session {
                Ok(session) => session.query_together(&both).await,
                Err(error) => Err(error),
            };
            let outcome = outcome.map_err(|error| error.or_no_queue(shared.name())).map(|mut answers| {
                let (leased, ended) = (answers.pop().unwrap_or_default(), answers.pop().unwrap_or_default());
                let ended: Vec<Settled> = ended.iter().map(Settled::of).collect();
                let lost = asked - Settled::messages(ended.iter().copied());
                shared.metrics.settled(End::Done, asked, lost, began);
                (Batches::of(leased, Dequeue::LeaseApart(time), shared, began, &noted), ended)
            });
            let _ = answer.send(outcome); // dropped there, given back
        };
        tokio::spawn(work.instrument(span).instrument(settle));
        let broken = || Err(Error::invalid("the runtime shut down during a dequeue"));
        let (page, ended) = answered.await.unwrap_or_else(|_| broken())?;
        let size = page.size;
        Ok((self.open(vec![page], size)?, ended))
    }

    async fn dequeue_page(self: &Arc<Self>, n: i32, how: Dequeue) -> Result<Batches> {
        let (shared, (answer, answered)) = (self.clone(), oneshot::channel());
        let span = how.span(self.name(), n);
        let noted = span.clone();
        let work = async move {
            let began = Instant::now();
            let (floor, rows) = (shared.floor(), shared.rows_for(n as usize));
            let outcome = match how {
                Dequeue::Take => shared.query(&shared.sql.take, &[&n, &floor, &rows, &true]).await,
                Dequeue::Lease(time) => shared.query(&shared.sql.lease, &[&n, &time, &floor, &rows]).await,
                Dequeue::LeaseApart(time) => shared.query(&shared.sql.lease_apart, &[&n, &time, &floor, &rows]).await,
            };
            let outcome = outcome.map(|rows| Batches::of(rows, how, shared, began, &noted));
            let _ = answer.send(outcome); // dropped there, given back
        };
        tokio::spawn(work.instrument(span));
        answered.await.unwrap_or_else(|_| Err(Error::invalid("the runtime shut down during a dequeue")))
    }

    /// Decodes. From here to the caller nothing waits, so nothing can be dropped in between.
    fn open<T: Payload>(&self, pages: Vec<Batches>, count: usize) -> Result<Dequeued<T>> {
        let apart = pages.iter().any(|page| matches!(page.how, Dequeue::LeaseApart(_)));
        let mut dequeued = Dequeued { messages: Vec::with_capacity(count), unreadable: Vec::new() };
        for row in pages.iter().flat_map(|page| &page.rows) {
            let (attempt, enqueued_at) = (row.read(1)?, row.read(3)?);
            let ran_out = apart && row.read(6)?;
            let batch: Received<'_> = row.read(4)?;
            let mut carried = Carried::of(row.read(5)?);
            self.column.decode(self.name(), row.read(0)?, &batch, |id, payload| {
                let metadata = carried.next();
                match payload {
                    Ok(payload) => {
                        dequeued.messages.push(Message { id, attempt, enqueued_at, payload, metadata, ran_out });
                    }
                    Err(error) => dequeued.unreadable.push((Lease { id, attempt }, error)),
                }
            })?;
        }
        let leased = pages.iter().all(|page| page.how != Dequeue::Take);
        if !leased && let Some((_, error)) = dequeued.unreadable.first() {
            return Err(error.clone()); // and what was taken goes back
        }
        for mut page in pages {
            page.rows.clear(); // it is the caller's now
        }
        Ok(dequeued)
    }

    /// Decodes what a statement in the caller's transaction brought; the first message that is no `T` is an error.
    pub fn read_fetched<T: Payload>(&self, rows: &[Fetched], messages: &mut Vec<Message<T>>) -> Result<()> {
        for row in rows {
            let (attempt, enqueued_at) = (row.read(1)?, row.read(3)?);
            let batch: Received<'_> = row.read(4)?;
            let mut carried = Carried::of(row.read(5)?);
            for (id, payload) in self.column.decode_all(self.name(), row.read(0)?, &batch)? {
                let metadata = carried.next();
                messages.push(Message { id, attempt, enqueued_at, payload, metadata, ran_out: false });
            }
        }
        Ok(())
    }

    async fn give_back(&self, rows: &[Row], how: Dequeue) -> Result<()> {
        match how {
            Dequeue::Take => {
                for row in rows {
                    let (id, attempt, size): (i64, i32, i32) = (row.read(0)?, row.read(1)?, row.read(2)?);
                    let (enqueued_at, payload): (Time, Received<'_>) = (row.read(3)?, row.read(4)?);
                    let metadata: Option<Received<'_>> = row.read(5)?;
                    let (released, error): (i32, Option<&str>) = (row.read(6)?, row.read(7)?);
                    let row: [&(dyn ToSql + Sync); 8] =
                        [&id, &enqueued_at, &attempt, &released, &error, &size, &payload, &metadata];
                    self.query(&self.sql.put_back, &row).await?;
                }
            }
            Dequeue::Lease(_) | Dequeue::LeaseApart(_) => {
                let mut ranges = Ranges::default();
                for row in rows {
                    ranges.ids.push(row.read(0)?);
                    ranges.attempts.push(row.read(1)?);
                    ranges.sizes.push(row.read(2)?);
                }
                let (began, asked) = (Instant::now(), ranges.messages());
                let released = self.query(&self.sql.release, &[&ranges.ids, &ranges.sizes, &ranges.attempts]).await?;
                let lost = asked - Settled::messages(released.iter().map(Settled::of));
                self.metrics.settled(End::Released, asked, lost, began);
            }
        }
        self.db.wake(&self.channel);
        Ok(())
    }
}

/// What a dequeue brought.
pub(crate) struct Dequeued<T> {
    pub messages: Vec<Message<T>>,
    /// Leased messages that are no `T`s. Taken ones are an error instead, and stay where they were.
    pub unreadable: Vec<(Lease, Error)>,
}
