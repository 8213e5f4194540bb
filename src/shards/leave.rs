//! Removes a shard from a running process.

use crate::{
    error::{Error, Result},
    shards::{id::Id, set::Set, verbs::named},
};

impl Set {
    /// Removes a drained shard from this process. Open queues, consumers and workers release the
    /// shard within a moment, and its server may then be stopped. The shard's part of a worker is
    /// shut down gracefully. [`Set::add`] adds the shard again.
    ///
    /// ```no_run
    /// # use trunkline::{Result, shards};
    /// # async fn example(shards: shards::Set, shard: shards::Id) -> Result<()> {
    /// shards.drain_and_move(shard, |_| ()).await?;
    /// shards.remove(shard).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The shard is not drained ([`Set::drain`]) or cannot be reached. In both cases, nothing is
    /// removed. Otherwise the errors of [`Set::abandon`].
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

    /// Removes a shard like [`Set::remove`], even if it is down or not empty. Its messages stay on
    /// it, for other processes that use the shard. Messages that this process has leased from the
    /// shard can no longer be settled; they are delivered again when their leases end.
    ///
    /// # Errors
    /// The shard is not in the set, or it is the only one.
    pub fn abandon(&self, shard: Id) -> Result<()> {
        self.known(shard)?;
        match self.0.remove(shard) {
            true => Ok(()),
            false => named(shard, Err(Error::invalid("it is the last one: add another first"))),
        }
    }
}
