//! A shard leaves a running process.

use crate::{
    error::{Error, Result},
    shards::{id::Id, set::Set, verbs::named},
};

impl Set {
    /// Takes a drained shard out of this process: open queues, consumers and workers let go of it
    /// within moments, and its server may be switched off. The worker's part on it ends in order.
    /// [`Set::add`] takes it in again.
    ///
    /// ```no_run
    /// # use trunkline::{Result, Id, Set};
    /// # async fn example(shards: Set, shard: Id) -> Result<()> {
    /// shards.drain_and_move(shard, |_| ()).await?;
    /// shards.remove(shard).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// It is not drained ([`Set::drain`]), or cannot be asked; then nothing has happened. As
    /// those of [`Set::abandon`].
    pub async fn remove(&self, shard: Id) -> Result<()> {
        let left = self.left(shard).await?;
        if !left.is_drained() {
            let messages = left.sum().messages + left.moving;
            let why = format!(
                "it is not drained ({messages} messages are left there): drain it first; `abandon` leaves it with what it has"
            );
            return named(shard, Err(Error::invalid(why)));
        }
        self.abandon(shard)
    }

    /// As [`Set::remove`], whatever is left there, and also where it is away. Its messages stay
    /// there, for other processes that name it. What this process has leased there can be settled
    /// no more: it comes back when the leases end.
    ///
    /// # Errors
    /// There is no such shard, or no other one.
    pub fn abandon(&self, shard: Id) -> Result<()> {
        self.known(shard)?;
        match self.0.remove(shard) {
            true => Ok(()),
            false => named(shard, Err(Error::invalid("it is the last one: add another first"))),
        }
    }
}
