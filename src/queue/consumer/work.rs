//! Runs a consumer's work in a transaction. A failure rolls the transaction back and counts as an
//! attempt, and the consumer waits for the next messages.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tracing::{debug, warn};

use super::{
    Consumer,
    hearing::{heard, sleep},
};
use crate::{
    error::{Error, Result, text_of},
    postgres::transaction::Transaction,
    queue::{
        batch::settle::Ending,
        message::{
            Lease, Message,
            failure::{Failure, LONGEST, Verdict},
            payload::Payload,
            reason::reason_of,
        },
    },
};

/// The work of [`Consumer::take_with`]. It runs in a transaction in which the messages are already
/// taken.
pub type Work<'a, R, E> = BoxFuture<'a, Result<R, E>>;

enum Tried<R> {
    Done(R, Vec<Lease>),
    /// Nothing was taken. The next try follows after this pause.
    Nothing(Duration),
    /// All messages were unreadable, and their attempts have been counted.
    Unreadable,
    Failed(Vec<Lease>, Failure),
}

pub(crate) fn at_least_one(n: usize) -> Result<()> {
    if n == 0 {
        return Err(Error::invalid("take_with takes at least one message, not 0"));
    }
    Ok(())
}

/// Converts an error that occurred before the commit. If the connection broke then, the outcome is
/// known: nothing happened, and no attempt is counted.
fn not_committed(error: Error) -> Error {
    let text = format!("the connection broke before the commit, so the work has had no effect ({error})");
    error.without_effect(text)
}

/// The outcome of one try.
pub(crate) enum Worked<R> {
    Done(R),
    /// No message is due, or other sessions have locked all due messages. The next try follows
    /// after this pause.
    Nothing(Duration),
    /// The attempt was counted, or the messages will be tried one at a time.
    Failed,
}

impl<T: Payload> Consumer<T> {
    /// Waits without a limit, takes up to `n` messages in a new transaction, and runs `work` in it.
    /// Then commits the take and the work together.
    ///
    /// If the work fails or panics, the transaction is rolled back. Several messages are then tried
    /// again one at a time, so that an attempt is counted only for messages that fail. A failed
    /// message is due again after [`Consumer::retry_after`], or becomes a dead letter after its
    /// last attempt. [`Failure::retry_after`] and [`Failure::dead`] override this, as in a worker.
    /// While attempts are left, the call does not return, but waits for the next messages. Hooks
    /// receive each failure ([`Consumer::after_attempt`]). The transaction runs at `read
    /// committed`.
    ///
    /// The call may be dropped, for example by a timeout, which then limits the work too. If it is
    /// dropped before the commit is sent, its messages stay in the queue.
    ///
    /// A message that cannot be read as `T` fails its attempt, and `work` does not receive it.
    ///
    /// ```
    /// # use std::{io, num::ParseIntError};
    /// # use trunkline::{Consumer, Failure};
    /// # async fn example(mut consumer: Consumer<String>) -> trunkline::Result<()> {
    /// let sum = consumer.take_with(1, |_transaction, messages| {
    ///     Box::pin(async move { Ok::<i64, ParseIntError>(messages[0].payload.parse()?) })
    /// });
    /// match sum.await {
    ///     Err(error) if error.is_work_failed() => {
    ///         println!("dead: {:?}", error.downcast_ref::<ParseIntError>());
    ///     }
    ///     outcome => println!("{}", outcome?),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_work_failed`](crate::Error::is_work_failed): the work failed, and its message became a
    /// dead letter. [`downcast_ref`](crate::Error::downcast_ref) returns the work's error. Call the
    /// method again for the next messages.
    /// [`is_outcome_unknown`](crate::Error::is_outcome_unknown): the connection broke during the
    /// commit. The call also fails if `n` is 0, and with the errors of the database.
    pub async fn take_with<R, E: Into<Failure>>(
        &mut self,
        n: usize,
        mut work: impl for<'a> FnMut(&'a Transaction, Vec<Message<T>>) -> Work<'a, R, E>,
    ) -> Result<R> {
        at_least_one(n)?;
        loop {
            self.until_due().await?;
            let rings = heard(&mut self.subscription);
            match self.work_once(n, &mut work).await? {
                Worked::Done(result) => return Ok(result),
                Worked::Nothing(pause) => sleep(&mut self.subscription, pause, rings).await,
                Worked::Failed => {}
            }
        }
    }

    /// Makes one attempt with messages that are due now.
    pub(crate) async fn work_once<R, E: Into<Failure>>(
        &mut self,
        n: usize,
        work: &mut impl for<'a> FnMut(&'a Transaction, Vec<Message<T>>) -> Work<'a, R, E>,
    ) -> Result<Worked<R>> {
        let n_now = if self.alone > 0 { 1 } else { n };
        let tried = self.attempt(n_now, work).await?;
        self.is_in_crowd = matches!(tried, Tried::Nothing(_));
        match tried {
            Tried::Nothing(pause) => return Ok(Worked::Nothing(pause)),
            Tried::Unreadable => {}
            Tried::Failed(leases, failure) if leases.len() > 1 => {
                debug!(queue = self.queue.shared.name(), reason = %failure, "work failed; one message at a time now");
                self.alone = leases.len();
            }
            Tried::Failed(leases, failure) => {
                let (queue, id) = (self.queue.shared.name(), leases[0].id);
                warn!(queue, id, reason = %failure, "work failed");
                self.alone = self.alone.saturating_sub(1);
                let delay = match failure.verdict {
                    Verdict::ByPolicy | Verdict::Released | Verdict::Lost => Some(self.retry_after),
                    Verdict::After(delay) => Some(delay.min(LONGEST)),
                    Verdict::Dead => None,
                };
                let dead = self.charge(&leases, delay, failure.reason()).await?;
                self.hooks.after_attempt(leases.into_iter().map(|lease| (lease, Err(&failure))));
                if dead > 0 {
                    return Err(failure.of_work(queue, id));
                }
            }
            Tried::Done(result, leases) => {
                self.alone = self.alone.saturating_sub(1);
                self.hooks.after_attempt(leases.into_iter().map(|lease| (lease, Ok(()))));
                return Ok(Worked::Done(result));
            }
        }
        Ok(Worked::Failed)
    }

    async fn attempt<R, E: Into<Failure>>(
        &self,
        n: usize,
        work: &mut impl for<'a> FnMut(&'a Transaction, Vec<Message<T>>) -> Work<'a, R, E>,
    ) -> Result<Tried<R>> {
        let turns = &self.queue.shared.wait_list.turns;
        let turn = match self.is_in_crowd {
            true => match turns.next().await {
                Ok(turn) => turn,
                Err(pause) => return Ok(Tried::Nothing(pause)),
            },
            false => turns.at_once(),
        };
        let transaction = self.queue.shared.db.begin().await?;
        let taken = self.queue.take_and_charge(&transaction, n).await.map_err(not_committed)?;
        let (messages, unreadable) = (taken.messages, taken.unreadable);
        if messages.is_empty() && unreadable.is_empty() {
            // The connection is given back first, so the next try uses it.
            transaction.rollback().await.map_err(not_committed)?;
            return Ok(Tried::Nothing(turn.found_nothing()));
        }
        turn.took();
        if messages.is_empty() {
            transaction.commit().await?; // commits the counted attempts too
            return Ok(Tried::Unreadable);
        }
        let leases: Vec<Lease> = messages.iter().map(Message::lease).collect();
        let worked = AssertUnwindSafe(async { work(&transaction, messages).await }).catch_unwind().await;
        let failure = match worked {
            Ok(Ok(result)) => match transaction.commit().await {
                Ok(()) => return Ok(Tried::Done(result, leases)),
                Err(error) if error.is_outcome_unknown() || error.is_closed() => return Err(error),
                // Counts as a failure of the work, which may have ignored the error of a statement.
                // Or a deferred constraint or a conflict made the commit fail.
                Err(error) => error.into(),
            },
            Ok(Err(error)) => {
                let failure = Failure::of(error);
                transaction.rollback().await.map_err(not_committed)?;
                failure
            }
            Err(panic) => {
                let failure = Failure::retry(format!("the work panicked: {}", text_of(panic)));
                transaction.rollback().await.map_err(not_committed)?;
                failure
            }
        };
        // Counts the attempts again, because they were rolled back with the transaction.
        for unreadable in unreadable {
            let leases: Vec<Lease> = unreadable.leases().collect();
            self.charge(&leases, Some(self.retry_after), &unreadable.reason).await?;
        }
        Ok(Tried::Failed(leases, failure))
    }

    /// Counts an attempt. Returns the number of messages that are dead letters now.
    async fn charge(&self, leases: &[Lease], delay: Option<Duration>, reason: &str) -> Result<usize> {
        let ending = Ending::Charge(delay.map(|delay| delay.as_secs_f64()), reason_of(reason));
        match self.queue.settle(ending, leases).await {
            Err(error) if error.is_lease_lost() => Ok(0), // the message is gone, or another consumer has it
            Err(error) => {
                let text = format!("the work was rolled back, and its attempt may or may not be counted ({error})");
                Err(error.without_effect(text))
            }
            outcome => outcome,
        }
    }
}
