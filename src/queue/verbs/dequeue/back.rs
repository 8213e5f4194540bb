//! Returns dequeued messages to the queue if their caller is gone.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, time};
use tokio_postgres::{
    error::SqlState,
    types::{ToSql, Type},
};
use tracing::{Span, warn};

use crate::{
    error::{Error, Result},
    postgres::{array::Received, db::Class, in_transaction::InTransaction, time::Time, wire::Row},
    queue::{
        batch::{
            dequeues::{Batches, DequeueMode, PutBack},
            notify::may_have_committed,
            unclaimed::{Unclaimed, Unreadable},
        },
        handle::Shared,
        message::{Lease, Ranges, Settled},
        observe::metric::End,
    },
};

/// The delay in seconds before an unreadable message is due again, for a consumer that can read it.
const PAUSE: f64 = 1.0;

impl PutBack for Shared {
    fn put_rows_back(self: Arc<Self>, rows: Vec<Row>, how: DequeueMode) {
        self.send_back(match how {
            DequeueMode::Take => rows.into_iter().map(Unclaimed::Taken).collect(),
            DequeueMode::Lease(_) | DequeueMode::LeaseTogether(_) | DequeueMode::Lanes(..) => {
                [Unclaimed::Leased(ranges(&rows))].into()
            }
        });
    }
}

/// Returns the leases of rows. Skips rows that cannot be read: their leases expire, and the
/// attempts are counted.
fn ranges(rows: &[Row]) -> Ranges {
    let mut ranges = Ranges::default();
    for row in rows {
        if let (Ok(id), Ok(attempt), Ok(size)) = (row.read(0), row.read(1), row.read(2)) {
            ranges.ids.push(id);
            ranges.attempts.push(attempt);
            ranges.sizes.push(size);
        }
    }
    ranges
}

/// Messages that are being put back. If the runtime ends before their statement is sent, or every
/// try fails, they are kept for the next dequeue.
struct Returning {
    shared: Arc<Shared>,
    left: VecDeque<Unclaimed>,
}

impl Drop for Returning {
    fn drop(&mut self) {
        self.shared.unclaimed.keep(self.left.drain(..));
        self.shared.unclaimed.end();
    }
}

impl Returning {
    fn of(shared: &Arc<Shared>, left: VecDeque<Unclaimed>) -> Self {
        shared.unclaimed.begin();
        Self { shared: shared.clone(), left }
    }

    /// Returns the next messages once a statement can be sent. Until then they are kept, because
    /// the runtime may end while the database is unreachable.
    async fn next(&mut self) -> Option<Unclaimed> {
        let is_only_copy = self.left.front().is_some_and(|next| !matches!(next, Unclaimed::Leased(_)));
        if is_only_copy && let Ok(session) = self.shared.db.session(Class::Main).await {
            let _ = session.ready(&self.shared.sql.put_back).await; // the statement itself reports the error
        }
        self.left.pop_front()
    }

    async fn run(mut self) {
        let (shared, mut pauses, mut may_be_done) = (self.shared.clone(), PAUSES.iter(), false);
        while let Some(next) = self.next().await {
            let outcome = shared.give_back(&next, may_be_done).await;
            if may_have_committed(&outcome) {
                shared.db.wake(&shared.channel);
            }
            let Err(error) = outcome else {
                (pauses, may_be_done) = (PAUSES.iter(), false);
                continue;
            };
            may_be_done |= error.is_outcome_unknown();
            // A lease may be released twice. Any other message has only this copy, and must not go
            // back twice, so the error has to show that it is not back yet.
            let (may_repeat, is_only_copy) = match &next {
                Unclaimed::Leased(_) => (error.is_closed(), false),
                Unclaimed::Taken(_) | Unclaimed::Unreadable(_) | Unclaimed::Direct(_) => (is_not_back(&error), true),
            };
            match pauses.next() {
                Some(pause) if may_repeat => {
                    self.left.push_front(next);
                    time::sleep(*pause).await;
                }
                _ => {
                    let is_kept = may_repeat && is_only_copy && !error.is_no_queue(); // the next dequeue tries again
                    warn!(queue = shared.name(), %error, what = %Listed(&next), is_kept, "cannot give back dequeued messages");
                    (pauses, may_be_done) = (PAUSES.iter(), false);
                    if is_kept {
                        shared.unclaimed.keep([next]);
                    }
                }
            }
        }
    }
}

/// The pauses between tries to put messages back. They add up to 41 seconds.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(8),
    Duration::from_secs(30),
];

fn is_not_back(error: &Error) -> bool {
    let is_there = error.sqlstate() == Some(&SqlState::UNIQUE_VIOLATION);
    error.is_refusal() && !is_there || error.is_closed() && !error.is_outcome_unknown()
}

impl Shared {
    /// Wraps the rows of a statement that was sent at `began`.
    pub(in crate::queue::verbs) fn dequeued(
        self: &Arc<Self>,
        rows: Vec<Row>,
        how: DequeueMode,
        began: time::Instant,
        span: &Span,
    ) -> Batches {
        let batches = Batches::of(rows, how, began, self.clone());
        span.record("got", batches.size);
        match how {
            DequeueMode::Take => self.metrics.taken(batches.size, began.into_std()),
            DequeueMode::Lease(_) | DequeueMode::LeaseTogether(_) | DequeueMode::Lanes(..) => {
                self.metrics.leased(batches.size, began.into_std());
            }
        }
        match batches.is_apart() {
            true => self.saw_apart(),
            false => self.saw_batches(batches.size, batches.rows.len()),
        }
        self.saw_bytes(batches.bytes_each());
        batches
    }

    /// Starts a task that puts messages back.
    pub(crate) fn send_back(self: &Arc<Self>, left: VecDeque<Unclaimed>) {
        if left.is_empty() {
            return; // as before nearly every dequeue
        }
        let returning = Returning::of(self, left);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(returning.run());
        }
    }

    /// Starts a task that releases leases. No attempt is counted.
    pub(crate) fn send_leases_back(self: &Arc<Self>, mut leases: Vec<Lease>) {
        if !leases.is_empty() {
            leases.sort_unstable();
            self.send_back([Unclaimed::Leased(Ranges::of(&leases, |_, _| true))].into());
        }
    }

    /// Puts messages back, and returns once that is done, or is not tried again.
    pub(crate) async fn put_back(self: &Arc<Self>, left: VecDeque<Unclaimed>) {
        Returning::of(self, left).run().await;
    }

    /// Puts back the messages that an earlier runtime left, or that could not be put back.
    pub(crate) fn put_back_unclaimed(self: &Arc<Self>) {
        self.send_back(self.unclaimed.take());
    }

    async fn give_back(&self, what: &Unclaimed, may_be_done: bool) -> Result<()> {
        match what {
            Unclaimed::Taken(row) => {
                let (id, attempt, size): (i64, i32, i32) = (row.read(0)?, row.read(1)?, row.read(2)?);
                let (enqueued_at, payload): (Time, Received<'_>) = (row.read(3)?, row.read(4)?);
                let metadata: Option<Received<'_>> = row.read(5)?;
                let (error, released): (Option<&str>, i32) = (row.read(6)?, row.read(7)?);
                let own: Option<&str> = row.read(8)?;
                let row: [&(dyn ToSql + Sync); 9] =
                    [&id, &enqueued_at, &attempt, &released, &error, &size, &payload, &metadata, &own];
                self.query(&self.sql.put_back, &row).await?;
            }
            Unclaimed::Leased(ranges) => match self.release_ranges(ranges, may_be_done).await {
                Err(error) if error.is_refusal() && ranges.ids.len() > 1 => {
                    for range in ranges.apart() {
                        if let Err(error) = self.release_ranges(&range, may_be_done).await {
                            warn!(queue = self.name(), id = range.ids[0], %error, "cannot give back a lease");
                        }
                    }
                }
                outcome => outcome?,
            },
            Unclaimed::Unreadable(unreadable) => self.put_back_charged(unreadable).await?,
            Unclaimed::Direct(copy) => {
                let (id, enqueued_at, payload, metadata) =
                    (&copy.id, &copy.enqueued_at, copy.payload(), copy.metadata());
                // Without columns: the user's own columns receive their defaults.
                let row: [&(dyn ToSql + Sync); 9] =
                    [id, enqueued_at, &0_i32, &0_i32, &None::<&str>, &1_i32, &payload, &metadata, &None::<&str>];
                self.query(&self.sql.put_back, &row).await?;
            }
        }
        Ok(())
    }

    /// Releases leases. If `may_be_done` is set, an earlier try may have released them already.
    pub(crate) async fn release_ranges(&self, ranges: &Ranges, may_be_done: bool) -> Result<()> {
        let (began, asked) = (Instant::now(), ranges.messages());
        let released = self.query(&self.sql.release, &[&ranges.ids, &ranges.sizes, &ranges.attempts]).await?;
        let released = released.iter().map(Settled::of).collect::<Result<Vec<_>>>()?;
        let lost = if may_be_done { 0 } else { asked.saturating_sub(Settled::messages(released)) };
        self.metrics.settled(End::Released, asked, lost, began);
        Ok(())
    }

    /// Puts back a taken message that cannot be read, and counts the attempt. Another consumer may
    /// be able to read it; after its last attempt it becomes a dead letter. Both changes happen in
    /// one transaction, so the attempt is always counted.
    async fn put_back_charged(&self, unreadable: &Unreadable) -> Result<()> {
        let (payload, metadata) = (unreadable.payload(), unreadable.metadata());
        let Unreadable { id, size, attempt, released, enqueued_at, reason, own, .. } = unreadable;
        let row: [&(dyn ToSql + Sync); 9] =
            [id, enqueued_at, attempt, released, reason, size, &payload, &metadata, own];
        let one = (vec![*id], vec![*size], vec![*attempt], vec![PAUSE], vec![reason]);
        let charge: [&(dyn ToSql + Sync); 5] = [&one.0, &one.1, &one.2, &one.3, &one.4];
        let both: [(_, &[&(dyn ToSql + Sync)]); 2] = [(&self.sql.put_back, &row), (&self.sql.charge, &charge)];
        let due = time::Instant::now() + Duration::from_secs_f64(PAUSE);
        match self.db.query_together(Class::Main, &both, None).await {
            Err(error) if error.is_outcome_unknown() => self.put_back_again(unreadable, due, error).await,
            outcome => outcome.map(drop).map_err(|error| error.or_no_queue(self.name())),
        }
    }

    /// Repeats `put_back_charged`, whose outcome is unknown. The message may be in the queue, where
    /// it is not due before `due`. From then on another consumer may take it, and an insert would
    /// deliver it twice. So the insert is committed only if its reply arrives earlier: then the
    /// message was not in the queue, or the server has refused the insert because of its id. If the
    /// first try made the message a dead letter, nothing is inserted. If a caller has since
    /// cancelled, purged or discarded the message, the insert brings it back. Otherwise returns the
    /// first error, after which no caller tries again.
    async fn put_back_again(&self, unreadable: &Unreadable, due: time::Instant, unknown: Error) -> Result<()> {
        let inserted = time::timeout_at(due, async {
            let transaction = self.db.begin().await?;
            // The insert waits for the first try, if that still runs.
            self.put_back_in(&transaction, unreadable).await?;
            if self.is_dead(&transaction, unreadable).await? {
                return Ok(None);
            }
            self.charge_in(&transaction, unreadable).await?;
            Ok::<_, Error>(Some(transaction))
        });
        match inserted.await {
            Ok(Ok(None)) => Ok(()),
            // A reply may arrive in time, and be read too late.
            Ok(Ok(Some(transaction))) if time::Instant::now() < due => transaction.commit().await.map_err(|_| unknown),
            Ok(Err(error)) if error.sqlstate() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(()),
            _ => Err(unknown),
        }
    }

    /// Returns true if one of the messages is a dead letter. Another message whose dead letter has
    /// the same id (`keep_letter.sql`) was enqueued at another time.
    async fn is_dead(&self, transaction: &impl InTransaction, unreadable: &Unreadable) -> Result<bool> {
        let (after, n) = (unreadable.id.saturating_sub(1), 1_i64);
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(&after, Type::INT8), (&n, Type::INT8)];
        let letters = transaction.fetch(&self.sql.dead.text, &params).await?;
        let Some(letter) = letters.first() else { return Ok(false) };
        let (id, enqueued_at): (i64, Time) = (letter.read(0)?, letter.read(1)?);
        let is_of_row = id.saturating_sub(unreadable.id) < i64::from(unreadable.size);
        Ok(is_of_row && enqueued_at == unreadable.enqueued_at)
    }

    /// Puts back and counts like `put_back_charged`, in the transaction that took the message. Both
    /// changes take effect if and when that transaction commits.
    pub(crate) async fn put_back_charged_in(
        &self,
        transaction: &impl InTransaction,
        unreadable: &Unreadable,
    ) -> Result<()> {
        self.put_back_in(transaction, unreadable).await?;
        self.charge_in(transaction, unreadable).await
    }

    async fn put_back_in(&self, transaction: &impl InTransaction, unreadable: &Unreadable) -> Result<()> {
        let (payload, metadata) = (unreadable.payload(), unreadable.metadata());
        let Unreadable { id, size, attempt, released, enqueued_at, reason, own, .. } = unreadable;
        let row: [(&(dyn ToSql + Sync), Type); 9] = [
            (id, Type::INT8),
            (enqueued_at, Type::TIMESTAMPTZ),
            (attempt, Type::INT4),
            (released, Type::INT4),
            (reason, Type::TEXT),
            (size, Type::INT4),
            (&payload, self.column.array.clone()),
            (&metadata, Type::JSONB_ARRAY),
            (own, Type::TEXT),
        ];
        let put_back = transaction.fetch(&self.sql.put_back.text, &row).await;
        put_back.map(drop).map_err(|error| error.or_no_queue(self.name()))
    }

    async fn charge_in(&self, transaction: &impl InTransaction, unreadable: &Unreadable) -> Result<()> {
        let Unreadable { id, size, attempt, reason, .. } = unreadable;
        let one = (vec![*id], vec![*size], vec![*attempt], vec![PAUSE], vec![reason]);
        let charge: [(&(dyn ToSql + Sync), Type); 5] = [
            (&one.0, Type::INT8_ARRAY),
            (&one.1, Type::INT4_ARRAY),
            (&one.2, Type::INT4_ARRAY),
            (&one.3, Type::FLOAT8_ARRAY),
            (&one.4, Type::TEXT_ARRAY),
        ];
        let charged = transaction.fetch(&self.sql.charge.text, &charge).await;
        charged.map(drop).map_err(|error| error.or_no_queue(self.name()))
    }
}

/// The messages, displayed as a list for the log.
struct Listed<'a>(&'a Unclaimed);

impl std::fmt::Display for Listed<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Unclaimed::Taken(row) => match (row.read::<i32>(2), row.read::<i64>(0)) {
                (Ok(size), Ok(id)) => write!(out, "{size} taken from {id} on"),
                _ => out.write_str("a taken row that cannot be read"),
            },
            Unclaimed::Leased(ranges) => write!(out, "{} leased", ranges.messages()),
            Unclaimed::Unreadable(one) => write!(out, "{}, which cannot be read: {}", one.id, one.reason),
            Unclaimed::Direct(one) => write!(out, "{}, sent directly", one.id),
        }
    }
}

/// Returns the error for a request that was never answered.
pub(super) fn unanswered() -> Error {
    Error::ended("a dequeue", true)
}
