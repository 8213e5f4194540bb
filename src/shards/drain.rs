//! Taking a shard out: producers are told, what is there is consumed or moved, and at the end its
//! queues refuse.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::{
    error::{Error, Result},
    postgres::db::{Class, Db},
    shards::{
        id::Id,
        left::{Left, look, moving, names, of_queue},
        set::Set,
        verbs::named,
    },
};

/// Between two looks at what is left.
const PAUSE: Duration = Duration::from_millis(250);

impl Set {
    /// Lets a shard drain, and returns when it is drained. Call it again to go on after an
    /// interruption.
    ///
    /// 1. A flag in the shard's database says that it drains. Producers see it within five
    ///    seconds, and enqueue on the others.
    /// 2. What is there is consumed, as ever: exactly once where it is taken so, because no message
    ///    is moved. Delayed messages and leases are waited for. `told` is called after each look,
    ///    with what is left.
    /// 3. A queue that is empty is closed, under a lock: whatever is enqueued there from then on is
    ///    refused ([`Error::is_drained`]), so a producer that has not seen the flag stores nothing
    ///    behind the last consumer's back, and turns to another shard.
    ///
    /// Dead letters and the archive stay. Needs the rights of the schema's owner.
    ///
    /// # Errors
    /// No other shard is left that takes messages; the shard is not reached; the database's, with
    /// the shard's name. After an interrupted [`Set::drain_and_move`] also those of that.
    pub async fn drain(&self, shard: Id, told: impl FnMut(&Left)) -> Result<Left> {
        self.drain_by(shard, false, told).await
    }

    /// As [`Set::drain`], but does not wait until what is there was consumed: it moves what
    /// waits to the other shards, in turns. For a server that has to go soon, or whose queues hold
    /// what is due in a week.
    ///
    /// - Each message that waits, is delayed or is to be retried becomes one of another shard,
    ///   exactly once, whatever is killed meanwhile: it has another id there, and all else that it
    ///   had (payload, metadata, when it was enqueued and is due, attempts, columns of yours). What
    ///   is leased is waited for, and moves when it comes back.
    /// - It goes in three steps, each of them a transaction of one server: out of the queue into
    ///   the table `trunkline.moving` beside it; into the other's queue, which notes in its table
    ///   `trunkline.moved` what it was given; out of `trunkline.moving`. After an interruption call
    ///   this or [`Set::drain`] again: what was on its way ([`Left::moving`]) is brought to
    ///   where it was to go, which knows whether it has it.
    /// - So what is on its way to a server that is away then is away with it, until that is back.
    /// - Their order among each other is kept on each shard. An id that a program stored names
    ///   the message no more; `trunkline.moved` says which one it became.
    ///
    /// Needs the rights of the schema's owner on every server.
    ///
    /// # Errors
    /// As those of [`Set::drain`]; a queue that holds something is on no other shard that
    /// takes messages, with the same payload type and as many priorities; another shard refuses a
    /// message, by a column or a constraint that it has and this one has not: mend that, and call
    /// it again.
    pub async fn drain_and_move(&self, shard: Id, told: impl FnMut(&Left)) -> Result<Left> {
        self.drain_by(shard, true, told).await
    }

    async fn drain_by(&self, shard: Id, moves: bool, mut told: impl FnMut(&Left)) -> Result<Left> {
        let others = self.list();
        if !others.iter().any(|other| other.id.is_some_and(|id| id != shard) && !other.drains) {
            let why = "there is no other shard that takes messages; name the others, too, or let them resume";
            return named(shard, Err(Error::invalid(why)));
        }
        let drained = self.known(shard)?;
        named(shard, drained.set_drains(true).await)?;
        loop {
            self.bring(&drained).await?;
            let rows = if moves { self.take_out(&drained).await? } else { 0 };
            let left = named(shard, close_what_is_empty(&drained.db).await)?;
            told(&left);
            if left.is_drained() {
                drained.health.drained();
                return Ok(left);
            }
            if rows == 0 {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Undoes [`Set::drain`], finished or not: the shard takes messages again. What was moved
    /// stays where it is, and what was on its way is brought there.
    ///
    /// # Errors
    /// The shard is not reached; the database's. One of a shard that something is on its way to
    /// comes when this one takes messages again.
    pub async fn resume(&self, shard: Id) -> Result<()> {
        let resumed = self.known(shard)?;
        let resuming = async {
            for name in names(&resumed.db).await? {
                let sql = of_queue(&resumed.db, "unseal", include_str!("../../sql/statements/unseal.sql"), &name);
                resumed.db.query(Class::Main, &sql, &[]).await?;
            }
            resumed.set_drains(false).await
        };
        named(shard, resuming.await)?;
        self.bring(&resumed).await
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

/// Closes a queue, if it is empty still. Not while another session holds a lock: all later
/// sessions would wait behind.
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
