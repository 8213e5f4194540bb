//! `enqueue`, which adds a message to a batch that a task inserts, and `enqueue_many`.

mod cut;
mod new_row;
mod columns;
mod apart;
pub(in crate::queue::verbs) mod unique;

use std::{cell::RefCell, sync::Arc, time::Instant};

use bytes::BytesMut;
use tokio_postgres::types::ToSql;
use tracing::{Instrument, debug};

use self::{
    cut::{Cut, Cuttings},
    new_row::NewRow,
    unique::ENQUEUE,
};
use crate::{
    error::{Error, Kind, Result, Search},
    postgres::{
        db::{Class, Session},
        sql::Sql,
        wire,
    },
    queue::{
        batch::{
            coalesce::{Batch, InsertPermit, Insertion, New},
            notify::may_have_committed,
        },
        handle::{Queue, Shared, finish},
        message::{
            columns::of_message,
            draft::IntoDraft,
            keys,
            payload::Payload,
            trace::{self, TraceContext},
            unique::Enqueued,
        },
        observe::span,
        statements::Inserts,
    },
};

thread_local! {
    static SCRATCH: RefCell<BytesMut> = RefCell::default();
}

/// The maximum size of a scratch buffer that is kept for the next call.
const SCRATCH_KEPT: usize = 1 << 20;

impl<T: Payload> Queue<T> {
    /// Enqueues a message, and returns its id once it is committed, as durably as the server's
    /// settings make a commit. A message is a payload, or a [`Draft`](crate::Draft) of a payload
    /// with options such as a due time or metadata. If the message has a unique key
    /// ([`Unique`](crate::Unique)), [`Enqueued`] also shows whether it is new or another message
    /// has the key.
    ///
    /// Concurrent calls share rows and commits. If the call is dropped while it waits, the message
    /// may still be enqueued. For a message that must be fast and need not survive a crash, see
    /// [`Queue::send_direct`].
    ///
    /// # Errors
    /// A payload that cannot be stored fails only its own call.
    /// [`Error::is_outcome_unknown`](crate::Error): the connection broke before the answer, and the
    /// message may or may not be in the queue. A delay or time is out of bounds, or the metadata is
    /// larger than [`MAX_METADATA`](crate::MAX_METADATA). A unique key is out of bounds, or the
    /// queue was created without [`Settings::uniqueness`](crate::Settings::uniqueness).
    pub async fn enqueue(&self, message: impl IntoDraft<T>) -> Result<Enqueued> {
        message.unique().map_or(Ok(()), |unique| self.shared.check_unique(unique))?;
        let (due, lane) = (message.due().number()?, self.shared.lane_of(message.priority(), message.key())?);
        let columns = of_message(&message)?;
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
            // The span is boxed, if it is recorded at all, so that this future stays small.
            let span = span::enqueue(self.shared.name(), 1, trace.as_ref());
            (!span.is_disabled()).then(|| Box::new(span))
        };
        // Boxed to keep this future small. The coalescer exists if the queue has uniqueness.
        let unique = message.unique().zip(self.shared.unique.as_ref());
        let unique = unique.map(|(unique, coalescer)| (Box::new(unique.clone()), coalescer));
        let (coalescer, claim) = match &unique {
            None => (&self.shared.coalescer, None),
            Some((unique, coalescer)) => (*coalescer, Some(&**unique)),
        };
        let joined = {
            let (key, (element, metadata)) = (message.key(), element.split_at(end));
            coalescer.join(New { due, lane, key, element, metadata, claim, columns: columns.as_deref() }).await
        };
        drop(message);
        if element.capacity() <= SCRATCH_KEPT {
            SCRATCH.set(element);
        }
        if let Some(permit) = joined.permit {
            match unique {
                None => tokio::spawn(insert_all(self.shared.clone(), permit)),
                Some(_) => tokio::spawn(unique::insert_all(self.shared.clone(), permit)),
            };
        }
        match span {
            None => joined.receipt.outcome().await,
            Some(span) => Box::pin(joined.receipt.outcome().instrument(*span)).await,
        }
    }

    /// Enqueues all messages in one transaction, and returns their ids in the same order. Adjacent
    /// messages with the same due time share rows.
    ///
    /// If any message has a unique key, one statement enqueues all messages: keep each such call
    /// below a few hundred MiB. If several messages have the same key, the first is enqueued, and
    /// the others are duplicates of it or replace it.
    ///
    /// # Errors
    /// The errors of [`Queue::enqueue`]. One invalid payload fails the whole call, and nothing is
    /// stored.
    pub async fn enqueue_many<M: IntoDraft<T> + Send + Sync>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<Enqueued>> {
        let (messages, trace): (Vec<M>, _) = (messages.into_iter().collect(), trace::next());
        if messages.iter().any(|message| message.unique().is_some()) {
            return self.claim_many(&messages, trace).await;
        }
        let span = span::enqueue(self.shared.name(), messages.len(), trace.as_ref());
        let has_columns = messages.iter().any(|message| message.columns().is_some());
        if !self.shared.is_laned() && !self.shared.is_keyed() && !has_columns {
            return self.enqueue_cut(Cut::new(&self.shared, messages.iter(), trace)).instrument(span).await;
        }
        let mut learned = 0;
        loop {
            match self.enqueue_laned(&messages, trace.clone()).instrument(span.clone()).await {
                // Tries up to eight times, because partitions may be added again before the next
                // try. Each change at least doubles their number, up to 256.
                Err(error) if error.is_of_other_lanes() && learned < 8 => {
                    self.shared.learn_lanes().await?;
                    learned += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Enqueues the messages sorted by lane, so that messages of the same lane share rows. Also
    /// sorts them by column values, except in a queue with keys, whose messages keep their order.
    async fn enqueue_laned<M: IntoDraft<T> + Send + Sync>(
        &self,
        messages: &[M],
        trace: Option<TraceContext>,
    ) -> Result<Vec<Enqueued>> {
        let lanes = messages
            .iter()
            .map(|message| self.shared.lane_of(message.priority(), message.key()))
            .collect::<Result<Vec<_>>>()?;
        let mut order: Vec<usize> = (0..messages.len()).collect();
        let columns = |at: usize| if self.shared.is_keyed() { None } else { messages[at].columns() };
        order.sort_by(|one, other| lanes[*one].cmp(&lanes[*other]).then_with(|| columns(*one).cmp(&columns(*other))));
        let sorted = order.iter().map(|at| &messages[*at]);
        let ids = self.enqueue_cut(Cut::new(&self.shared, sorted, trace)).await?;
        let mut placed: Vec<(usize, Enqueued)> = order.into_iter().zip(ids).collect();
        placed.sort_unstable_by_key(|(at, _)| *at);
        Ok(placed.into_iter().map(|(_, id)| id).collect())
    }

    async fn enqueue_cut<'a, M: IntoDraft<T> + 'a>(
        &'a self,
        mut cut: Cut<'a, impl ExactSizeIterator<Item = &'a M>, T>,
    ) -> Result<Vec<Enqueued>> {
        let mut ids = Vec::with_capacity(cut.len());
        let mut rows = cut.next_rows()?;
        if rows.is_empty() {
            return Ok(ids);
        }
        let shared = self.shared.clone();
        // A separate task commits, so that it wakes consumers even if the caller drops this call.
        if cut.is_done() {
            // Uses a shared connection and one round trip, because usually a single statement is
            // the whole transaction.
            return finish(ENQUEUE, async move {
                shared.insert(None, &rows, &mut ids).await?;
                Ok(ids)
            })
            .await;
        }
        let session = shared.db.own_session_for(Class::Store).await?;
        session.batch("enqueue", "begin").await.map_err(not_committed)?;
        while !rows.is_empty() {
            // Dropping the session rolls back.
            shared.insert(Some(&session), &rows, &mut ids).await.map_err(not_committed)?;
            rows = cut.next_rows()?;
        }
        finish(ENQUEUE, async move {
            let committed = session.batch("enqueue", "commit").await;
            if may_have_committed(&committed) {
                shared.db.wake(&shared.channel);
            }
            committed?;
            shared.db.give_back(session);
            Ok(ids)
        })
        .await
    }
}

/// Converts an error that occurred before the commit: nothing was stored.
fn not_committed(error: Error) -> Error {
    let text = format!("the connection broke before the commit, so nothing was enqueued ({error})");
    error.without_effect(text)
}

/// A parameter of an insert.
type Param<'a> = &'a (dyn ToSql + Sync);

/// The time at which an insert wakes consumers: with its own commit, or later because its
/// transaction continues.
#[derive(Clone, Copy)]
enum Woken {
    WithIt,
    Later,
}

/// Inserts waiting batches until none are left, one statement after another.
async fn insert_all(shared: Arc<Shared>, mut permit: InsertPermit) {
    while let Some(batches) = permit.next() {
        shared.insert_batches(&batches).await;
        permit.give_way(batches.iter().map(|batch| batch.count).sum()).await;
    }
}

impl Shared {
    /// Inserts rows with one statement, in the session's transaction or in one of its own, and
    /// appends the ids of all their messages to `ids`.
    async fn insert(&self, session: Option<&Session>, rows: &[Cuttings], ids: &mut Vec<Enqueued>) -> Result<()> {
        let rows: Vec<NewRow<'_>> = rows.iter().map(NewRow::of_cuttings).collect();
        let first_ids = match session {
            Some(session) => self.insert_rows(session, &rows, Woken::Later).await?,
            None => self.try_write(&rows).await?,
        };
        for (first, row) in first_ids.into_iter().zip(&rows) {
            ids.extend((first..first + row.count as i64).map(Enqueued::New));
        }
        Ok(())
    }

    async fn insert_rows(&self, session: &Session, rows: &[NewRow<'_>], woken: Woken) -> Result<Vec<i64>> {
        if let [row @ NewRow { columns: Some(columns), .. }] = rows {
            return self.insert_with_columns(session, row, columns, woken).await;
        }
        let sizes: Vec<i32> = rows.iter().map(|row| row.count as i32).collect();
        let arrays: Vec<_> = rows.iter().map(|row| self.column.array(row.count, row.elements)).collect();
        let keys: Vec<_>;
        let mut params: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(6 * rows.len());
        let each = rows.iter().zip(sizes.iter().zip(&arrays));
        let inserts = match &self.sql.inserts {
            Inserts::Plain { bare, .. } if rows.iter().all(NewRow::is_bare) => {
                each.for_each(|(_, (size, array))| params.extend::<[Param<'_>; 2]>([size, array]));
                bare
            }
            Inserts::Plain { full, .. } => {
                each.for_each(|(row, (size, array))| {
                    params.extend::<[Param<'_>; 4]>([&row.due, size, array, &row.metadata]);
                });
                full
            }
            Inserts::Priority(inserts) => {
                each.for_each(|(row, (size, array))| {
                    params.extend::<[Param<'_>; 5]>([&row.due, size, array, &row.metadata, &row.lane]);
                });
                inserts
            }
            Inserts::Keyed(inserts) => {
                keys = rows.iter().map(|row| keys::array(row.count, row.keys)).collect();
                each.zip(&keys).for_each(|((row, (size, array)), keys)| {
                    params.extend::<[Param<'_>; 6]>([&row.due, size, array, &row.metadata, &row.lane, keys]);
                });
                inserts
            }
        };
        self.send_insert(session, &inserts[rows.len() - 1], rows, &params, woken).await
    }

    /// Runs the statement that inserts these rows, and returns the ids of their first messages.
    async fn send_insert(
        &self,
        session: &Session,
        sql: &Sql,
        rows: &[NewRow<'_>],
        params: &[Param<'_>],
        woken: Woken,
    ) -> Result<Vec<i64>> {
        let began = Instant::now();
        let inserted = match woken {
            Woken::WithIt => self.db.query_and_wake(session, (sql, rows.len()), params, &self.channel).await,
            Woken::Later => session.query(sql, params).await,
        };
        let inserted = inserted.map_err(|error| error.or_no_queue(self.name()))?;
        if inserted.len() != rows.len() {
            return Err(self.not_stored(rows.len(), inserted.len()));
        }
        self.metrics.enqueued(rows.iter().map(|row| row.count).sum(), rows.len(), began);
        inserted.iter().zip(rows).map(|(id, row)| first_id(id, row.count)).collect()
    }

    /// Returns the error for an insert that stored fewer rows than it sent.
    pub fn not_stored(&self, inserted: usize, stored: usize) -> Error {
        Error::new(Kind::NotStored { queue: self.name().to_owned(), inserted, stored })
    }

    /// Inserts batches in one transaction and answers their callers.
    async fn insert_batches(&self, batches: &[Batch]) {
        let rows: Vec<NewRow<'_>> = batches.iter().map(NewRow::of).collect();
        match self.try_write(&rows).await {
            Ok(ids) => {
                for (batch, id) in batches.iter().zip(ids) {
                    batch.answer(Insertion::Stored(id));
                }
            }
            Err(error) => {
                if error.is_of_other_lanes()
                    && let Err(error) = self.learn_lanes().await
                {
                    debug!(queue = self.name(), %error, "cannot read the queue's partitions");
                }
                let (is_alone, mut search) = (batches.len() == 1, Search::default());
                for batch in batches {
                    let outcome = if error.is_of_other_lanes() || error.is_refusal() && (batch.count > 1 || !is_alone) {
                        Insertion::Each(self.write_apart(NewRow::of(batch), &mut search).await)
                    } else {
                        Insertion::Failed(error.clone())
                    };
                    batch.answer(outcome);
                }
            }
        }
    }
}

/// Reads the id of a row's first message, and checks that all ids of the row are valid.
fn first_id(row: &wire::Row, count: usize) -> Result<i64> {
    let first: i64 = row.read(0)?;
    match first.checked_add(count as i64) {
        Some(_) if first > 0 => Ok(first),
        _ => Err(Error::new(Kind::Answer(format!("{count} messages from {first} on were enqueued").into()))),
    }
}
