//! Enqueues messages, some of which have unique keys. One statement claims the keys, and inserts
//! the messages whose keys it could claim.

use std::{sync::Arc, time::Instant};

use bytes::BytesMut;
use tokio::sync::Mutex;
use tokio_postgres::{
    error::SqlState,
    types::{ToSql, Type},
};
use tracing::Instrument;

use crate::{
    error::{Error, Result, Search},
    postgres::{
        array::{Elements, after},
        db::{Class, Session, lock_wait::LockTries},
        sql::Sql,
        wire::Row,
    },
    queue::{
        batch::{
            batcher::run_or_detach,
            coalesce::{Batch, InsertPermit, Insertion},
        },
        handle::{Queue, Shared, finish},
        message::{
            draft::IntoDraft,
            metadata::{Beside, Stamped},
            payload::Payload,
            trace::{self, TraceContext},
            unique::{Claims, Enqueued},
        },
        observe::span,
    },
};

/// The call's name in error messages.
pub(super) const ENQUEUE: &str = "an enqueue";
/// The maximum number of tries of a statement that conflicts with another statement. Conflicts
/// occur only if the role's default isolation level is not `read committed`.
const TRIES: usize = 100;
/// The maximum number of tries of a part of a refused statement.
const TRIES_APART: usize = 5;
/// The divisor of every row's id, which is also the id of the row's first message.
pub(in crate::queue::verbs) const FIRST: i64 = 1024;

impl<T: Payload> Queue<T> {
    /// Enqueues messages in one statement, some of them with unique keys.
    pub(super) async fn claim_many<M: IntoDraft<T> + Send + Sync>(
        &self,
        messages: &[M],
        trace: Option<TraceContext>,
    ) -> Result<Vec<Enqueued>> {
        let span = span::enqueue(self.shared.name(), messages.len(), trace.as_ref());
        let (parcel, shared) = (self.shared.parcel(messages, trace.as_ref())?, self.shared.clone());
        finish(ENQUEUE, async move { shared.claim(parcel.params(), TRIES).await }).instrument(span).await
    }
}

/// The turn of a statement that waits for other transactions. One runs at a time, so that the waits
/// of a process need one connection.
#[derive(Default)]
struct ClaimTurn(Mutex<()>);

/// Encoded messages for one statement.
#[derive(Debug, Default)]
pub(in crate::queue::verbs) struct Parcel {
    dues: Vec<f64>,
    lanes: Vec<i32>,
    elements: BytesMut,
    metadata: Stamped,
    claims: Claims,
}

/// The parameters of a statement: a parcel, or a part of one.
#[derive(Clone, Copy)]
pub(in crate::queue::verbs) struct ClaimParams<'a> {
    dues: &'a [f64],
    lanes: &'a [i32],
    elements: &'a [u8],
    metadata: Beside<'a>,
    keys: &'a [Option<Box<str>>],
    terms: &'a [Option<f64>],
    replace: &'a [bool],
}

impl Parcel {
    fn of(batch: &Batch) -> (Vec<f64>, Vec<i32>) {
        (vec![batch.due; batch.count], vec![batch.lane.into(); batch.count])
    }

    pub fn len(&self) -> usize {
        self.dues.len()
    }

    pub fn params(&self) -> ClaimParams<'_> {
        let Claims { keys, terms, replace } = &self.claims;
        let (dues, lanes, elements, metadata) = (&self.dues, &self.lanes, &self.elements, self.metadata.all());
        ClaimParams { dues, lanes, elements, metadata, keys, terms, replace }
    }
}

impl<'a> ClaimParams<'a> {
    pub fn payloads(self, shared: &Shared) -> Elements<'a> {
        shared.column.array(self.dues.len(), self.elements)
    }

    /// Returns the parameters with their types.
    pub fn typed<'p>(&'p self, payloads: &'p Elements<'p>, array: &Type) -> [(&'p (dyn ToSql + Sync), Type); 7] {
        [
            (payloads, array.clone()),
            (&self.dues, Type::FLOAT8_ARRAY),
            (&self.metadata, Type::JSONB_ARRAY),
            (&self.lanes, Type::INT4_ARRAY),
            (&self.keys, Type::TEXT_ARRAY),
            (&self.terms, Type::FLOAT8_ARRAY),
            (&self.replace, Type::BOOL_ARRAY),
        ]
    }

    /// Splits the messages in the middle. There must be at least two messages.
    fn halves(self) -> (Self, Self) {
        let left = self.dues.len() / 2;
        let (one, two) = self.elements.split_at(after(left, self.elements));
        let (beside, rest) = self.metadata.halves(left);
        let of = |from: usize, to: usize, elements, metadata| Self {
            dues: &self.dues[from..to],
            lanes: &self.lanes[from..to],
            elements,
            metadata,
            keys: &self.keys[from..to],
            terms: &self.terms[from..to],
            replace: &self.replace[from..to],
        };
        (of(0, left, one, beside), of(left, self.dues.len(), two, rest))
    }
}

/// Inserts waiting batches with unique keys, one statement after another. A batch whose key another
/// transaction has just claimed waits for that transaction, and later batches do not wait for it.
pub(super) async fn insert_all(shared: Arc<Shared>, mut permit: InsertPermit) {
    while let Some(batch) = permit.next().and_then(|batches| batches.into_iter().next()) {
        let count = batch.count;
        run_or_detach(insert(shared.clone(), batch)).await;
        permit.give_way(count).await;
    }
}

async fn insert(shared: Arc<Shared>, batch: Batch) {
    let (dues, lanes) = Parcel::of(&batch);
    let Claims { keys, terms, replace } = &batch.claims;
    let metadata = batch.metadata.as_ref().map_or_else(Beside::default, Stamped::all);
    let params = ClaimParams { dues: &dues, lanes: &lanes, elements: &batch.elements, metadata, keys, terms, replace };
    batch.answer(shared.claim_apart(params).await);
}

impl Shared {
    /// Encodes all messages.
    pub(in crate::queue::verbs) fn parcel<T: Payload, M: IntoDraft<T>>(
        &self,
        messages: &[M],
        trace: Option<&TraceContext>,
    ) -> Result<Parcel> {
        let (mut parcel, mut stamp) = (Parcel::default(), BytesMut::new());
        for (place, message) in messages.iter().enumerate() {
            message.unique().map_or(Ok(()), |unique| self.check_unique(unique))?;
            if message.columns().is_some() {
                return Err(Error::invalid(
                    "messages with values of columns are enqueued apart from those with unique keys",
                ));
            }
            parcel.claims.push(message.unique());
            parcel.dues.push(message.due().number()?);
            parcel.lanes.push(self.lane_of(message.priority(), message.key())?.into());
            self.column.encode(message.payload(), &mut parcel.elements)?;
            if !message.metadata().is_empty() || trace.is_some() {
                stamp.clear();
                trace::stamped(message.metadata(), trace).encode(&mut stamp)?;
                parcel.metadata.push(place, &stamp);
            }
        }
        Ok(parcel)
    }

    /// Claims the keys and inserts the messages, in a separate transaction. If another transaction
    /// has claimed a key and stays open, waits for it on a connection that no other statement uses.
    pub(super) async fn claim(&self, params: ClaimParams<'_>, tries: usize) -> Result<Vec<Enqueued>> {
        let began = Instant::now();
        let session = self.db.session(Class::Store).await?;
        let rows = match self.claim_on(&session, &self.sql.enqueue_unique, params, tries).await {
            Err(error) if error.is_of_a_lock() => self.claim_and_wait(params, tries).await,
            rows => rows,
        };
        let rows = rows.map_err(|error| error.or_no_queue(self.name()))?;
        let all = rows.iter().map(|row| Ok(Enqueued::of(row.read(0)?, row.read(1)?))).collect::<Result<Vec<_>>>()?;
        self.claimed(params.dues.len(), &all, began)?;
        Ok(all)
    }

    /// Waits for the transactions that have claimed the keys. If no connection can be opened for
    /// the wait, tries again and again on a shared one.
    async fn claim_and_wait(&self, params: ClaimParams<'_>, tries: usize) -> Result<Vec<Row>> {
        let (turn, mut waits) = (self.db.attached::<ClaimTurn>(), LockTries::default());
        let _turn = turn.0.lock().await;
        loop {
            if let Some(wait) = waits.next(&self.db).await {
                let rows = self.claim_on(&wait.session, &self.sql.enqueue_unique_waiting, params, tries).await;
                wait.give_back();
                return rows;
            }
            let session = self.db.session(Class::Store).await?;
            match self.claim_on(&session, &self.sql.enqueue_unique, params, tries).await {
                Err(error) if error.is_of_a_lock() => {}
                rows => return rows,
            }
        }
    }

    /// Runs the statement. If it conflicts with another statement, repeats it, up to `tries` times
    /// in total.
    async fn claim_on(
        &self,
        session: &Session,
        sql: &Sql,
        params: ClaimParams<'_>,
        mut tries: usize,
    ) -> Result<Vec<Row>> {
        let payloads = params.payloads(self);
        let statement = params.typed(&payloads, &self.column.array).map(|(param, _)| param);
        loop {
            let sql = (sql, params.dues.len());
            let rows = self.db.query_and_wake(session, sql, &statement, &self.channel).await;
            tries -= 1;
            match rows {
                Err(error) if tries > 0 && error.sqlstate() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) => {}
                rows => return rows,
            }
        }
    }

    /// Checks that the server returned a result for all `count` messages, and counts the new
    /// messages.
    pub(in crate::queue::verbs) fn claimed(&self, count: usize, all: &[Enqueued], began: Instant) -> Result<()> {
        if all.len() != count {
            return Err(self.not_stored(count, all.len()));
        }
        let stored = || all.iter().filter(|one| one.is_new());
        self.metrics.enqueued(stored().count(), stored().filter(|one| one.id() % FIRST == 0).count(), began);
        Ok(())
    }

    /// Answers each caller of a batch. Finds the messages that the server refuses, by repeated
    /// halving.
    async fn claim_apart(&self, params: ClaimParams<'_>) -> Insertion {
        let (mut parts, mut each) = (vec![params], Vec::with_capacity(params.dues.len()));
        let (mut search, mut tries) = (Search::default(), TRIES);
        while let Some(part) = parts.pop() {
            match self.claim(part, std::mem::replace(&mut tries, TRIES_APART)).await {
                Ok(all) => {
                    search.found_good();
                    each.extend(all.into_iter().map(Ok));
                }
                Err(error) if part.dues.len() > 1 && error.is_refusal() && search.goes_on() => {
                    let (left, right) = part.halves();
                    parts.extend([right, left]);
                }
                Err(error) => each.extend((0..part.dues.len()).map(|_| Err(error.clone()))),
            }
        }
        Insertion::Each(each)
    }
}
