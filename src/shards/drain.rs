//! Takes a shard out of use. Producers stop, the shard's messages are consumed or moved, and
//! finally its queues refuse messages.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::{
    error::{Error, Result},
    postgres::db::Db,
    shards::{
        id::Id,
        left::{Left, look, moving, names, of_queue},
        set::Set,
        verbs::named,
    },
};

/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(250);

impl Set {
    /// Drains a shard, and returns when it is drained. After an interruption, call this method
    /// again to continue.
    ///
    /// 1. A flag in the shard's database marks the shard as draining. Producers see the flag within
    ///    five seconds, and enqueue on the other shards.
    /// 2. The shard's messages are consumed as usual. Messages are not moved, so exactly-once
    ///    consumers are not affected. The call waits for delayed messages and leases. After each
    ///    check, it calls `report` with the remaining contents.
    /// 3. An empty queue is closed under a lock, and then refuses messages ([`Error::is_drained`]).
    ///    Therefore a producer that has not seen the flag cannot store messages after the last
    ///    consumer has left. It uses another shard instead.
    ///
    /// Dead letters and archived messages stay. The caller needs the rights of the schema's owner.
    ///
    /// # Errors
    /// No other shard accepts messages; the shard cannot be reached; or the database's error, with
    /// the name of the shard. After an interrupted [`Set::drain_and_move`], also the errors of that
    /// method.
    pub async fn drain(&self, shard: Id, report: impl FnMut(&Left)) -> Result<Left> {
        self.drain_by(shard, false, report).await
    }

    /// Drains a shard like [`Set::drain`], but moves waiting messages to the other shards, in
    /// turn, instead of waiting until they are consumed. Use this method if a server must be
    /// removed soon, or if its queues hold messages that are due much later.
    ///
    /// - Each message that waits, is delayed or is to be retried becomes a message of another
    ///   shard. This happens exactly once, even if processes are killed. On that shard, the message
    ///   has a different id, but the same payload, metadata, enqueue time, due time, attempts,
    ///   priority, key and column values. Its unique key is lost. A leased message moves when its
    ///   lease ends.
    /// - A message moves in three steps, each a transaction on one server: from the queue to the
    ///   table `trunkline.moving` on the same server; to the other shard's queue, which records it
    ///   in `trunkline.moved`; and out of `trunkline.moving`. After an interruption, call this
    ///   method or [`Set::drain`] again. Messages that are being moved ([`Left::moving`]) then go
    ///   to their target, unless it has recorded them already.
    /// - While messages are being moved to a server that goes down, they are unavailable until that
    ///   server is up again.
    /// - Each target keeps the order of the messages that it receives. An id that a program has
    ///   stored is no longer valid; `trunkline.moved` contains the new id.
    ///
    /// The caller needs the rights of the schema's owner on every server.
    ///
    /// # Errors
    /// The errors of [`Set::drain`]. A queue has messages, and no other shard that accepts messages
    /// has a queue of this name, payload type and number of priorities, with keys if this queue has
    /// keys. Another shard refuses a message because of a column or a constraint that this shard
    /// does not have: fix that, and call the method again.
    pub async fn drain_and_move(&self, shard: Id, report: impl FnMut(&Left)) -> Result<Left> {
        self.drain_by(shard, true, report).await
    }

    async fn drain_by(&self, shard: Id, moves: bool, mut report: impl FnMut(&Left)) -> Result<Left> {
        let places = self.0.places();
        let mut others = places.iter().filter_map(|place| place.shard()).filter(|other| other.id != shard);
        if !others.any(|other| !other.health.is_leaving()) {
            let why = "there is no other shard that takes messages; name the others, too, or let them resume";
            return named(shard, Err(Error::invalid(why)));
        }
        let drained = self.known(shard)?;
        named(shard, drained.set_drains(true).await)?;
        loop {
            self.bring(&drained).await?;
            let rows = if moves { self.take_out(&drained).await? } else { 0 };
            let left = named(shard, close_what_is_empty(&drained.db).await)?;
            report(&left);
            if left.is_drained() {
                drained.health.drained();
                return Ok(left);
            }
            if rows == 0 {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Undoes [`Set::drain`], even if it has not finished: the shard accepts messages again.
    /// Messages that were moved stay on their new shards. Messages that are being moved then go to
    /// their target.
    ///
    /// # Errors
    /// The shard cannot be reached, or the database's error. If a target cannot be reached, the
    /// error says that this shard accepts messages again, and how many messages still wait for that
    /// target ([`Left::moving`]). No consumer receives these messages until a later call moves
    /// them.
    pub async fn resume(&self, shard: Id) -> Result<()> {
        let resumed = self.known(shard)?;
        let resuming = async {
            for name in names(&resumed.db).await? {
                let sql = of_queue(&resumed.db, "unseal", include_str!("../../sql/statements/unseal.sql"), &name);
                // Uses a separate connection: the session is reset after a `do` block, and a shared
                // one would lose its `lock_timeout`.
                let session = resumed.db.own_session().await?;
                session.batch(sql.name, &sql.text).await?;
                resumed.db.give_back(session);
            }
            resumed.set_drains(false).await
        };
        named(shard, resuming.await)?;
        let brought = self.bring(&resumed).await;
        let moving = named(shard, moving(&resumed.db).await)?;
        if moving == 0 {
            return brought;
        }
        let next = match &brought {
            Err(error) if !error.is_closed() => "remove the cause, and call it again",
            _ => "call it again when all servers answer",
        };
        let why = brought.err().map_or_else(|| "a server does not answer".to_owned(), |error| error.to_string());
        named(
            shard,
            Err(Error::invalid(format!(
                "the shard takes messages again, but {moving} of its messages are still on their way to other shards, where no consumer \
                 receives them: {why}; {next}"
            ))),
        )
    }
}

async fn close_what_is_empty(db: &Db) -> Result<Left> {
    let mut queues = Vec::new();
    for name in names(db).await? {
        let (stats, mut is_closed) = look(db, &name).await?;
        if stats.messages == 0 && !is_closed {
            is_closed = close(db, &name).await?;
        }
        queues.push((name, stats, is_closed));
    }
    Ok(Left { queues, moving: moving(db).await? })
}

/// Closes a queue if it is still empty. Does not wait for another session's lock, because all later
/// sessions would have to wait too.
async fn close(db: &Db, name: &str) -> Result<bool> {
    let seal = of_queue(db, "seal", include_str!("../../sql/statements/seal.sql"), name);
    let session = db.own_session().await?;
    match session.batch(seal.name, &seal.text).await {
        Ok(()) => db.give_back(session),
        Err(error) if error.sqlstate() == Some(&SqlState::LOCK_NOT_AVAILABLE) => return Ok(false),
        Err(error) => return Err(error),
    }
    Ok(look(db, name).await?.1)
}
