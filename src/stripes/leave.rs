//! A stripe leaves a running process.

use crate::{
    error::{Error, Result},
    stripes::{id::StripeId, set::Stripes, verbs::named},
};

impl Stripes {
    /// Takes a drained stripe out of this process: open queues, consumers and workers let go of it
    /// within moments, and its server may be switched off. The worker's part on it ends in order.
    /// [`Stripes::add`] takes it in again.
    ///
    /// ```no_run
    /// # use trunkline::{Result, StripeId, Stripes};
    /// # async fn example(stripes: Stripes, stripe: StripeId) -> Result<()> {
    /// stripes.drain_and_move(stripe, |_| ()).await?;
    /// stripes.remove(stripe).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// It is not drained ([`Stripes::drain`]), or cannot be asked; then nothing has happened. As
    /// those of [`Stripes::abandon`].
    pub async fn remove(&self, stripe: StripeId) -> Result<()> {
        let left = self.left(stripe).await?;
        if !left.is_drained() {
            let messages = left.sum().messages + left.moving;
            let why = format!(
                "it is not drained ({messages} messages are left there): drain it first; `abandon` leaves it with what it has"
            );
            return named(stripe, Err(Error::invalid(why)));
        }
        self.abandon(stripe)
    }

    /// As [`Stripes::remove`], whatever is left there, and also where it is away. Its messages stay
    /// there, for other processes that name it. What this process has leased there can be settled
    /// no more: it comes back when the leases end.
    ///
    /// # Errors
    /// There is no such stripe, or no other one.
    pub fn abandon(&self, stripe: StripeId) -> Result<()> {
        self.known(stripe)?;
        match self.0.remove(stripe) {
            true => Ok(()),
            false => named(stripe, Err(Error::invalid("it is the last one: add another first"))),
        }
    }
}
