//! Moves the waiting messages of a shard to the other shards. Rows move from the queue into a table
//! on the same server, from that table into the other shard's queue, and then out of the table.
//! Each step is a transaction on one server and can be repeated, because the receiving server
//! records the rows that it has received.

use std::{sync::Arc, time::Instant};

use postgres_types::ToSql;

use crate::{
    error::{Error, Result},
    postgres::{
        db::{Class, Db},
        sql::quote,
        time::Time,
        wire::only,
    },
    queue::{admin::description::Description, batch::notify::may_have_committed},
    shards::{
        health::Fitness,
        id::Id,
        left::{look, of_queue, on_their_way},
        set::Set,
        shard::Shard,
        verbs::named,
    },
};

/// The maximum number of rows in one transaction. Most rows have at most about 64 KiB, and
/// `move_rows.sql` bounds the bytes of larger ones.
const ROWS: usize = 32;
/// The number of transactions per queue between two checks.
const TURNS: usize = 64;

/// The rows of one transaction, as one list per column.
#[derive(Default)]
struct MovedRows {
    ids: Vec<i64>,
    enqueued_at: Vec<Time>,
    due_at: Vec<Time>,
    attempts: Vec<i32>,
    released: Vec<i32>,
    errors: Vec<Option<String>>,
    sizes: Vec<i32>,
    payloads: Vec<String>,
    metadata: Vec<Option<String>>,
    own: Vec<Option<String>>,
}

/// A shard that can receive messages, with its queues.
type Destination = (Arc<Shard>, Vec<Description>);

impl Set {
    /// Completes the moves of an earlier drain: sends to their targets the messages that the drain
    /// has taken out of their queues. No other shard may receive these messages, because the target
    /// may already have them. While a target is down, its messages wait.
    pub(super) async fn bring(&self, from: &Shard) -> Result<()> {
        let moves = named(from.id, on_their_way(&from.db).await)?;
        if !moves.is_empty() {
            named(from.id, prepare(&from.db).await)?; // an earlier release may have made the tables
        }
        // The messages of a target that cannot take them do not stop those of the others.
        let mut outcome = Ok(());
        for on_its_way in moves {
            let brought = async {
                let target = self.known(on_its_way.target)?;
                match prepare(&target.db).await {
                    Ok(()) => self.bring_to(from, &on_its_way.queue, &target).await,
                    Err(error) if error.is_closed() => {
                        target.lost(&error);
                        Ok(())
                    }
                    Err(error) => named(target.id, Err(error)),
                }
            };
            let brought = brought.await;
            outcome = outcome.and(brought);
        }
        outcome
    }

    async fn bring_to(&self, from: &Shard, queue: &str, target: &Arc<Shard>) -> Result<()> {
        loop {
            let rows = named(from.id, rows(&from.db, queue, target.id).await)?;
            if rows.ids.is_empty() {
                return Ok(());
            }
            match give(&target.db, from.id, queue, &rows).await {
                Ok(()) => target.health.answered(Instant::now()),
                // Stops: the target may or may not have the rows. The next call tries again once
                // the target is up.
                Err(error) if error.is_closed() => {
                    target.lost(&error);
                    return Ok(());
                }
                Err(error) => return named(target.id, Err(error)),
            }
            let done = from.db.statement("move_done", include_str!("../../sql/statements/move_done.sql"));
            let params: [&(dyn ToSql + Sync); 3] = [&queue, &target.id.0.cast_signed(), &rows.ids];
            named(from.id, from.db.query_again(Class::Main, &done, &params).await)?;
        }
    }

    /// Takes some waiting messages out of a shard, for the other shards in rotation. Returns the
    /// number of rows.
    pub(super) async fn take_out(&self, from: &Arc<Shard>) -> Result<usize> {
        let (mut targets, mut moved, mut turn) = (None, 0, 0);
        for queue in named(from.id, from.db.list_queues().await)? {
            let (left, _) = named(from.id, look(&from.db, &queue.name).await)?;
            if left.messages == left.leased {
                continue;
            }
            let targets = match &targets {
                Some(targets) => targets,
                None => targets.insert(self.targets(from).await?),
            };
            let (ids, places) = named(from.id, order(&from.db, &queue).await)?;
            for (ids, places) in ids.chunks(ROWS).zip(places.chunks(ROWS)) {
                let target = next(targets, &queue, &mut turn).ok_or_else(|| self.nowhere(from.id, &queue))?;
                moved += named(from.id, out(&from.db, &queue, target.id, ids, places).await)?;
                self.bring_to(from, &queue.name, target).await?;
            }
        }
        Ok(moved)
    }

    /// Returns the error for a queue whose messages no other shard can receive.
    fn nowhere(&self, from: Id, queue: &Description) -> Error {
        let Description { name, payload, priorities, partitions, .. } = queue;
        let keys = if *partitions > 0 { "with" } else { "without" };
        let down = self.list().into_iter().filter_map(|other| Some(format!("{}: {}", other.server, other.down?)));
        let down: Vec<String> = down.collect();
        let why = match &*down {
            [] => format!(
                "queue {name:?} is on no other shard that takes messages, as a queue of {payload} with priorities {priorities} and \
                 {keys} keys: create it there, or let that shard resume"
            ),
            down => format!(
                "no shard takes the messages of queue {name:?}, and these do not answer: {}; drain again when they do",
                down.join("; ")
            ),
        };
        Error::of_shards(vec![(from.to_string(), Error::invalid(why))])
    }

    /// Returns the shards that accept messages, and prepares them to receive messages.
    async fn targets(&self, from: &Shard) -> Result<Vec<Destination>> {
        let mut targets = Vec::new();
        prepare(&from.db).await?;
        let others = self.0.reached.borrow().clone();
        for other in others.iter().filter(|other| other.id != from.id && is_open(other)) {
            let prepared = async {
                prepare(&other.db).await?;
                // Another process may have begun to drain this shard.
                other.ask().await;
                other.db.list_queues().await
            };
            match prepared.await {
                Ok(_) if !is_open(other) => {}
                Ok(queues) => targets.push((other.clone(), queues)),
                Err(error) if error.is_closed() => other.lost(&error),
                Err(error) => return named(other.id, Err(error)),
            }
        }
        Ok(targets)
    }
}

fn is_open(shard: &Shard) -> bool {
    shard.health.fitness(Instant::now()) <= Fitness::Unresponsive
}

/// Returns the next target in rotation that has the same queue.
fn next<'a>(targets: &'a [Destination], queue: &Description, turn: &mut usize) -> Option<&'a Arc<Shard>> {
    let is_same = |other: &Description| {
        (&other.name, &other.payload, other.priorities, other.partitions > 0)
            == (&queue.name, &queue.payload, queue.priorities, queue.partitions > 0)
    };
    let fit: Vec<_> = targets.iter().filter(|(shard, queues)| is_open(shard) && queues.iter().any(is_same)).collect();
    *turn += 1;
    Some(&fit.get(*turn % fit.len().max(1))?.0)
}

async fn prepare(db: &Db) -> Result<()> {
    let sql = db.statement("move_tables", include_str!("../../sql/statements/move_tables.sql"));
    let session = db.own_session().await?;
    session.batch(sql.name, &sql.text).await?;
    db.give_back(session);
    Ok(())
}

/// Returns the first waiting rows of a queue in the order in which consumers would receive them:
/// the ids, and what decides the order.
async fn order(db: &Db, queue: &Description) -> Result<(Vec<i64>, Vec<Time>)> {
    let sql = if queue.partitions > 0 {
        let text = include_str!("../../sql/statements/partitioned/move_order.sql");
        of_queue(db, "move_order_keyed", text, &queue.name)
    } else {
        of_queue(db, "move_order", include_str!("../../sql/statements/move_order.sql"), &queue.name)
    };
    let (mut ids, mut places) = (Vec::new(), Vec::new());
    for row in db.query_again(Class::Main, &sql, &[&((ROWS * TURNS) as i32)]).await? {
        ids.push(row.read(0)?);
        places.push(row.read(1)?);
    }
    Ok((ids, places))
}

/// Takes rows that still wait out of a queue, for one target shard. Returns their number.
async fn out(db: &Db, queue: &Description, target: Id, ids: &[i64], places: &[Time]) -> Result<usize> {
    let sql = of_queue(db, "move_out", include_str!("../../sql/statements/move_out.sql"), &queue.name);
    let params: [&(dyn ToSql + Sync); 4] = [&queue.name, &target.0.cast_signed(), &ids, &places];
    Ok(db.query(Class::Main, &sql, &params).await?.len())
}

async fn rows(db: &Db, queue: &str, target: Id) -> Result<MovedRows> {
    let sql = db.statement("move_rows", include_str!("../../sql/statements/move_rows.sql"));
    let mut rows = MovedRows::default();
    for row in db.query_again(Class::Main, &sql, &[&queue, &target.0.cast_signed(), &(ROWS as i64)]).await? {
        rows.ids.push(row.read(0)?);
        rows.enqueued_at.push(row.read(1)?);
        rows.due_at.push(row.read(2)?);
        rows.attempts.push(row.read(3)?);
        rows.released.push(row.read(4)?);
        rows.errors.push(row.read(5)?);
        rows.sizes.push(row.read(6)?);
        rows.payloads.push(row.read(7)?);
        rows.metadata.push(row.read(8)?);
        rows.own.push(row.read(9)?);
    }
    Ok(rows)
}

/// Inserts rows of another shard into a queue of this shard, unless it already has them.
async fn give(db: &Db, source: Id, queue: &str, rows: &MovedRows) -> Result<()> {
    let name = db.statement("payload_name", include_str!("../../sql/statements/payload_name.sql"));
    let found = db.query_again(Class::Main, &name, &[&queue]).await?;
    let (payload, is_keyed): (String, bool) = (only(&found)?.read(0)?, only(&found)?.read(1)?);
    let text = of_queue(db, "move_in", include_str!("../../sql/statements/move_in.sql"), queue).text;
    let text = text.replace(&quote(&format!("type_{queue}")), &payload);
    let transaction = db.begin().await?;
    let source = source.0.cast_signed();
    let params: [&(dyn ToSql + Sync); 11] = [
        &source,
        &queue,
        &rows.ids,
        &rows.enqueued_at,
        &rows.attempts,
        &rows.released,
        &rows.errors,
        &rows.sizes,
        &rows.payloads,
        &rows.metadata,
        &rows.own,
    ];
    let given = transaction.send_text::<Vec<(i64, i64, String)>>(&text, &params).await?.await?;
    let (mut ids, mut sizes, mut dues) = (Vec::new(), Vec::new(), Vec::new());
    for ((id, size), due) in rows.ids.iter().zip(&rows.sizes).zip(&rows.due_at) {
        if let Some((_, became, _)) = given.iter().find(|(source, ..)| source == id) {
            ids.push(*became);
            sizes.push(*size);
            dues.push(*due);
        }
    }
    if is_keyed {
        let due = of_queue(db, "move_due_keyed", include_str!("../../sql/statements/partitioned/move_due.sql"), queue);
        transaction.send_text::<Vec<(String,)>>(&due.text, &[&ids, &sizes, &dues, &queue]).await?.await?;
    } else {
        let due = of_queue(db, "move_due", include_str!("../../sql/statements/move_due.sql"), queue);
        transaction.send_text::<u64>(&due.text, &[&ids, &dues]).await?.await?;
    }
    let committed = transaction.commit().await;
    if may_have_committed(&committed) {
        db.wake(&format!("{}.{queue}", db.schema().name()));
    }
    committed
}
