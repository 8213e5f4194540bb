//! Runs dequeues for callers. A separate task sends the statement, and puts the messages back if
//! the caller has stopped waiting. A dropped future therefore neither loses messages nor keeps them
//! leased.

mod back;

use std::{sync::Arc, time::SystemTime};

use tokio::{sync::oneshot, time::Instant};
use tokio_postgres::types::ToSql;
use tracing::{Instrument, Span, warn};

use self::back::unanswered;
use crate::{
    error::{Error, Result, caught},
    postgres::{array::Received, db::Class, in_transaction::Fetched, time::Time},
    queue::{
        batch::{
            dequeues::{Batches, DequeueMode, DequeuePermit, DequeueRequest, PAGE},
            unclaimed::{Unclaimed, Unreadable},
        },
        handle::Shared,
        message::{
            Message,
            keys::{Rate, key_of},
            metadata::{Carried, Metadata},
            payload::{self, Payload},
        },
        observe::span,
    },
};

impl DequeueMode {
    fn span(self, queue: &str, n: i32) -> Span {
        match self {
            Self::Take => span::take(queue, n as usize),
            Self::Lease(_) | Self::LeaseTogether(_) | Self::Lanes(..) => span::lease(queue, n as usize),
        }
    }
}

impl Shared {
    /// Logs a warning if a failed take may have removed messages, because its caller receives no
    /// error.
    pub(crate) fn may_have_lost(&self, error: &Error, how: DequeueMode, wanted: usize) {
        if error.is_outcome_unknown() && matches!(how, DequeueMode::Take) {
            warn!(queue = self.name(), %error, "a take may have removed up to {wanted} messages that no caller receives");
        }
    }

    /// Dequeues up to `n` messages.
    pub async fn dequeue<T: Payload>(self: &Arc<Self>, n: usize, how: DequeueMode) -> Result<Dequeued<T>> {
        let (pages, got) = self.dequeue_pages(n, how).await?;
        self.open(pages, got)
    }

    /// Dequeues up to `n` messages that do not belong to the caller yet. Returns them with their
    /// number. Each statement runs in a separate transaction. A message that a statement returns
    /// apart, because its lease expired, is the only one.
    pub async fn dequeue_pages(self: &Arc<Self>, n: usize, how: DequeueMode) -> Result<(Vec<Batches>, usize)> {
        self.put_back_unclaimed();
        let (mut pages, mut got) = (Vec::new(), 0);
        while got < n {
            let wanted = self.fitting(n - got);
            let page = match self.dequeue_page(wanted, how).await {
                // Returns the earlier pages. In a queue with keys, the worker needs the error
                // instead, because it may hold leases whose messages it has not received.
                Err(error) if got > 0 && !(error.is_outcome_unknown() && matches!(how, DequeueMode::Lanes(..))) => {
                    self.may_have_lost(&error, how, wanted);
                    break;
                }
                outcome => outcome?,
            };
            let (size, is_apart) = (page.size, page.is_apart());
            if is_apart {
                // Dropping the earlier pages gives their messages back, at no attempt. If this
                // message were given back instead, the next call would return it with others.
                pages.clear();
                got = 0;
            }
            pages.push(page);
            got += size;
            if is_apart || size < wanted {
                break;
            }
        }
        Ok((pages, got))
    }

    /// Dequeues up to `n` messages with one statement.
    pub async fn dequeue_page(self: &Arc<Self>, n: usize, how: DequeueMode) -> Result<Batches> {
        let (answer, answered) = oneshot::channel();
        let request = DequeueRequest { n, most: self.fitting(PAGE), how, answer };
        if let Some(permit) = self.batchers.dequeue.join(|requests| requests.add(request)) {
            tokio::spawn(dequeue_all(self.clone(), permit));
        }
        answered.await.unwrap_or_else(|_| Err(unanswered()))
    }

    /// Runs one statement for requests with the same mode. If it returns one message apart, which
    /// the first request gets, runs another for the others.
    async fn dequeue_for(self: &Arc<Self>, mut requests: Vec<DequeueRequest>) {
        while !requests.is_empty() {
            let asks: Vec<usize> = requests.iter().map(|request| request.n).collect();
            let (n, how) = (asks.iter().sum::<usize>(), requests[0].how);
            match self.dequeue_now(n, how).await {
                Ok(all) => {
                    let others = if all.is_apart() { requests.split_off(1) } else { Vec::new() };
                    for (request, part) in requests.into_iter().zip(all.distribute(&asks)) {
                        let _ = request.answer.send(Ok(part)); // if the caller has left, the drop puts the messages back
                    }
                    requests = others;
                }
                Err(error) => {
                    for request in requests.drain(..) {
                        let _ = request.answer.send(Err(error.clone())); // the caller may have stopped waiting
                    }
                }
            }
        }
    }

    /// Dequeues up to `n` messages with one statement, which no other call shares.
    pub(super) async fn dequeue_now(self: &Arc<Self>, n: usize, how: DequeueMode) -> Result<Batches> {
        let n = n as i32;
        let span = how.span(self.name(), n);
        self.dequeue_in(n, how, &span).instrument(span.clone()).await
    }

    async fn dequeue_in(self: &Arc<Self>, n: i32, how: DequeueMode, span: &Span) -> Result<Batches> {
        let began = Instant::now();
        let (floor, rows) = (self.floor(), self.rows_for(n as usize));
        let (sql, params): (_, [&(dyn ToSql + Sync); 4]) = match &how {
            DequeueMode::Take => (&self.sql.take, [&n, &floor, &rows, &true]),
            DequeueMode::Lease(time) => (&self.sql.lease, [&n, time, &floor, &rows]),
            DequeueMode::LeaseTogether(time) => (&self.sql.lease_together, [&n, time, &floor, &rows]),
            DequeueMode::Lanes(holder, time) => (&self.sql.lanes, [&n, time, holder, &floor]),
        };
        let rows = self.db.query_together(Class::Main, &[(sql, &params)], Some(most_rows(n))).await;
        let mut rows = rows.map_err(|error| error.or_no_queue(self.name()))?;
        Ok(self.dequeued(rows.remove(0), how, began, span))
    }

    /// Decodes the messages. The caller receives them without another `await`, so none of them can
    /// be lost if the call is dropped.
    ///
    /// If a take returns unreadable messages, this method starts a task that puts them back and
    /// counts an attempt for each of them.
    pub fn open<T: Payload>(self: &Arc<Self>, pages: Vec<Batches>, count: usize) -> Result<Dequeued<T>> {
        let opened = self.open_rows(&pages, count, |payload: T| Ok(payload))?;
        Ok(self.keep(pages, opened))
    }

    /// Decodes messages that do not belong to the caller yet. A payload that `read` rejects also
    /// counts as unreadable.
    pub fn open_rows<T: Payload, U>(
        &self,
        pages: &[Batches],
        count: usize,
        mut read: impl FnMut(T) -> Read<U>,
    ) -> Result<Dequeued<U>> {
        let mut dequeued = Dequeued { messages: Vec::with_capacity(count.min(PAGE)), ..Dequeued::default() };
        for page in pages {
            let apart = matches!(page.how, DequeueMode::Lease(_) | DequeueMode::Lanes(..));
            let keyed = matches!(page.how, DequeueMode::Lanes(..));
            for row in &page.rows {
                let rate = if keyed { row.read::<Option<Vec<f64>>>(9)? } else { None };
                let rate = rate.and_then(|told| Rate::of(&told));
                let row = Opened {
                    id: row.read(0)?,
                    attempt: row.read(1)?,
                    size: row.read(2)?,
                    enqueued_at: (row.read(3)?, row.read(3)?),
                    batch: row.read(4)?,
                    metadata: row.read(5)?,
                    ran_out: apart && row.read(6)?,
                    released: row.read(7)?,
                    own: if page.how == DequeueMode::Take { row.read(8)? } else { None },
                    keys: if keyed { row.read(8)? } else { Vec::new() },
                };
                let message = |message: Message<U>| {
                    let (key, rate) = (key_of(&row.keys, message.id - row.id), rate.clone());
                    Message { key, rate, ..message }
                };
                self.open_row(&row, (message, &mut read), &mut dequeued)?;
            }
        }
        dequeued.unread = dequeued.unreadable.iter().map(Unreadable::count).sum();
        dequeued.asked = pages.first().map(|page| page.asked);
        dequeued.has_stopped = pages.last().is_some_and(|page| page.has_stopped);
        Ok(dequeued)
    }

    /// Transfers the decoded messages of these pages to the caller.
    pub fn keep<U>(self: &Arc<Self>, pages: Vec<Batches>, mut dequeued: Dequeued<U>) -> Dequeued<U> {
        for mut page in pages {
            page.rows.clear();
            if page.how == DequeueMode::Take {
                self.send_back(dequeued.unreadable.drain(..).map(Unclaimed::Unreadable).collect());
            }
        }
        dequeued
    }

    /// Decodes the rows of a statement in the caller's transaction.
    pub fn read_fetched<T: Payload>(&self, rows: &[Fetched], how: DequeueMode) -> Result<Dequeued<T>> {
        let mut dequeued = Dequeued::default();
        for row in rows {
            let Some(id) = row.read::<Option<i64>>(0)? else { continue }; // the statement stopped: see take.sql
            let row = Opened {
                id,
                attempt: row.read(1)?,
                size: row.read(2)?,
                enqueued_at: (row.read(3)?, row.read(3)?),
                batch: row.read(4)?,
                metadata: row.read(5)?,
                ran_out: false,
                released: row.read(7)?,
                own: if how == DequeueMode::Take { row.read(8)? } else { None },
                keys: Vec::new(),
            };
            self.open_row(&row, (|message| message, &mut |payload: T| Ok(payload)), &mut dequeued)?;
        }
        dequeued.unread = dequeued.unreadable.iter().map(Unreadable::count).sum();
        Ok(dequeued)
    }

    fn open_row<T: Payload, U>(
        &self,
        row: &Opened<'_>,
        (complete, read): (impl Fn(Message<U>) -> Message<U>, &mut impl FnMut(T) -> Read<U>),
        dequeued: &mut Dequeued<U>,
    ) -> Result<()> {
        let Opened { id: first, attempt, released, size, enqueued_at: (enqueued_at, time), .. } = row;
        let Opened { batch, metadata, ran_out, own, keys, .. } = row;
        let mut carried = Carried::of(metadata.as_ref().map(|metadata| Received::of(metadata.bytes())));
        let Dequeued { messages, unreadable, .. } = dequeued;
        let before = unreadable.len();
        let whole =
            self.column.decode(self.name(), (*first, size.unsigned_abs() as usize), batch, |id, raw, payload| {
                let raw_metadata = carried.next_raw();
                let metadata = raw_metadata.map(Metadata::read).unwrap_or_default();
                let refused = |cause| payload::refused(self.name(), id, cause);
                match payload.and_then(|payload: T| accepted(|| read(payload)).map_err(refused)) {
                    Ok(payload) => {
                        let (attempt, enqueued_at, ran_out, released) = (*attempt, *enqueued_at, *ran_out, *released);
                        messages.push(complete(Message {
                            id,
                            attempt,
                            enqueued_at,
                            payload,
                            metadata,
                            key: None,
                            rate: None,
                            ran_out,
                            released,
                        }));
                    }
                    Err(error) => {
                        let (message, element) = ((id, (*attempt, *released), *time), (self.column.element(), raw));
                        let mut one = Unreadable::of_message(message, element, raw_metadata, error.to_string());
                        one.readable_before = messages.len();
                        unreadable.push(one);
                    }
                }
            })?;
        if let Some(error) = whole {
            let row = (*first, *size, (*attempt, *released), *time);
            let mut all = Unreadable::of_row(row, batch, metadata.as_ref(), error.to_string());
            all.readable_before = messages.len();
            unreadable.push(all);
        }
        for one in &mut unreadable[before..] {
            let at = usize::try_from(one.id.wrapping_sub(*first)).unwrap_or_default();
            one.keys = keys.iter().skip(at).take(one.count()).map(|key| (*key).into()).collect();
            (one.own, one.ran_out) = (own.map(str::to_owned), *ran_out);
            let Unreadable { id, reason, .. } = &*one;
            warn!(queue = self.name(), id, reason, "message payload cannot be decoded");
        }
        Ok(())
    }
}

/// Runs dequeues for waiting requests, one statement after another.
async fn dequeue_all(shared: Arc<Shared>, mut permit: DequeuePermit) {
    while let Some(requests) = permit.next() {
        let answered = requests.len();
        shared.dequeue_for(requests).await;
        permit.give_way(answered).await;
    }
}

/// A payload converted by its reader, or the reason why the reader rejected it.
pub(crate) type Read<U> = std::result::Result<U, Box<dyn std::error::Error + Send + Sync>>;

/// Returns the maximum number of rows of a dequeue of `n` messages: one for each message, and one
/// that reports skipped messages.
pub(super) fn most_rows(n: i32) -> usize {
    n.unsigned_abs() as usize + 1
}

/// Runs the user's reader. A panic counts as a rejection.
pub(super) fn accepted<U>(read: impl FnOnce() -> Read<U>) -> Read<U> {
    caught(read).unwrap_or_else(|panic| Err(payload::panicked(&panic)))
}

/// A dequeued row, from either driver.
struct Opened<'a> {
    id: i64,
    attempt: i32,
    size: i32,
    /// The enqueue time, converted for the caller and as received from the server.
    enqueued_at: (SystemTime, Time),
    batch: Received<'a>,
    metadata: Option<Received<'a>>,
    /// True if the last lease expired, so that the message was leased alone.
    ran_out: bool,
    released: i32,
    /// The values of the user's own columns, if the row may have to be put back.
    own: Option<&'a str>,
    /// The keys of the messages, if they were leased from a partition.
    keys: Vec<&'a str>,
}

/// The messages of a dequeue.
pub(crate) struct Dequeued<T> {
    pub messages: Vec<Message<T>>,
    /// Messages whose payloads cannot be read as a `T`. After a take in a separate transaction, the
    /// library has already begun to put them back.
    pub unreadable: Vec<Unreadable>,
    /// The number of unreadable messages, including those that are being put back.
    pub unread: usize,
    /// The time before the first statement was sent.
    pub asked: Option<Instant>,
    /// True if the last statement stopped because it had buried many messages. Others may be due.
    pub has_stopped: bool,
}

impl<T> Default for Dequeued<T> {
    fn default() -> Self {
        Self { messages: Vec::new(), unreadable: Vec::new(), unread: 0, asked: None, has_stopped: false }
    }
}

impl<T> Dequeued<T> {
    /// Returns the number of messages, including unreadable ones.
    pub fn count(&self) -> usize {
        self.messages.len() + self.unread
    }

    /// Returns true if no other message is due after a dequeue of up to `n` messages. A message
    /// with an expired lease is returned alone, while others may be due.
    pub fn is_short_of(&self, n: usize) -> bool {
        let is_apart = self.messages.first().is_some_and(|message| message.ran_out)
            || self.unreadable.first().is_some_and(|message| message.ran_out);
        self.count() < n && !is_apart && !self.has_stopped
    }
}
