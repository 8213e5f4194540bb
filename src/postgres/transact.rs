//! Transactions that are repeated after a deadlock or a serialization failure.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use tokio_postgres::error::SqlState;
use tracing::debug;

use crate::{
    error::{Error, Result},
    postgres::{db::Db, transaction::Transaction},
};

/// The maximum number of times that the work runs.
const TRIES: u32 = 10;
/// The maximum pause before the second try, and the maximum pause before any try. Each pause is
/// about twice as long as the previous one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(250));

impl Db {
    /// Begins a transaction, runs the work in it, and commits. If the server ends the transaction
    /// because of a deadlock or a serialization failure, the work runs again in a new transaction,
    /// after a pause. The work runs at most 10 times, and all pauses together take at most about
    /// one second.
    ///
    /// The modes are those of [`Db::begin_with`], for example `isolation level serializable`. An
    /// empty string means `read committed`. All effects of the work must be in the transaction,
    /// because the work may run several times. After the work has returned, the transaction can no
    /// longer be used, even if the work kept a clone.
    ///
    /// ```
    /// # use trunkline::{Db, Error, postgres::Statement};
    /// static FIND: Statement<(i64,), (i64,)> =
    ///     Statement::new("select cents from account where id = $1 for update");
    /// static PAY: Statement<(i64, i64), u64> =
    ///     Statement::new("update account set cents = cents + $2 where id = $1");
    ///
    /// #[derive(Debug)]
    /// enum NotPaid {
    ///     TooPoor(i64),
    ///     Database(Error),
    /// }
    ///
    /// impl From<Error> for NotPaid {
    ///     fn from(error: Error) -> Self {
    ///         Self::Database(error)
    ///     }
    /// }
    ///
    /// async fn pay(db: &Db, from: i64, to: i64, cents: i64) -> Result<(), NotPaid> {
    ///     db.transact("", |transaction| async move {
    ///         let (has,) = transaction.run(&FIND, (from,)).await?;
    ///         if has < cents {
    ///             return Err(NotPaid::TooPoor(has)); // rolled back, and not repeated
    ///         }
    ///         transaction.send(&PAY, (from, -cents)).await?;
    ///         transaction.send(&PAY, (to, cents)).await?;
    ///         Ok(()) // committed
    ///     })
    ///     .await
    /// }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = Db::connect(&trunkline_embedded::test_database()?).await?;
    /// # static TABLE: Statement<(), ()> = Statement::new(
    /// #     "create table account (id bigint, cents bigint)",
    /// # );
    /// # static ROWS: Statement<(), ()> =
    /// #     Statement::new("insert into account values (1, 5), (2, 0)");
    /// # db.run(&TABLE, ()).await?;
    /// # db.run(&ROWS, ()).await?;
    /// pay(&db, 1, 2, 3).await.expect("the account has 5 cents");
    /// assert!(matches!(pay(&db, 1, 2, 3).await, Err(NotPaid::TooPoor(2))));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The work's own error, unchanged; the transaction is rolled back. Otherwise, the error of
    /// `begin` or of the commit. If the last try fails, its error is returned. Work is not repeated
    /// if its connection broke. If the connection broke during the commit, the error is
    /// [`Error::is_outcome_unknown`].
    pub async fn transact<T, E: From<Error>, F: Future<Output = Result<T, E>>>(
        &self,
        modes: &str,
        mut work: impl FnMut(Arc<Transaction>) -> F,
    ) -> Result<T, E> {
        let mut tries = 0;
        loop {
            tries += 1;
            let transaction = Arc::new(self.begin_with(modes).await?);
            let may_repeat = tries < TRIES;
            match work(transaction.clone()).await {
                Ok(value) => match transaction.commit_shared().await {
                    Ok(()) => return Ok(value),
                    Err(error) if may_repeat && asks_to_repeat(&error) => debug!(tries, %error, "repeating the work"),
                    Err(error) => return Err(error.into()),
                },
                Err(error) => {
                    let cause = transaction.first_error();
                    let _ = transaction.rollback_shared().await; // if this fails, the server rolls back
                    match cause.filter(asks_to_repeat) {
                        Some(cause) if may_repeat => debug!(tries, error = %cause, "repeating the work"),
                        _ => return Err(error),
                    }
                }
            }
            sleep(pause(tries)).await;
        }
    }
}

/// Returns true if the transaction failed for a reason that a new transaction may avoid, and
/// certainly had no effect.
fn asks_to_repeat(error: &Error) -> bool {
    let repeatable = [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED];
    !error.is_outcome_unknown() && error.sqlstate().is_some_and(|state| repeatable.contains(&state))
}

/// Returns a random pause after a try, between half of the maximum pause and the maximum pause. The
/// randomness prevents transactions that collided once from colliding again.
fn pause(tries: u32) -> Duration {
    let (first, longest) = PAUSES;
    let longest = first.saturating_mul(1 << (tries - 1).min(16)).min(longest);
    let [random, ..] = *uuid::Uuid::new_v4().as_bytes();
    longest / 2 + longest / 2 * u32::from(random) / 255
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        for (tries, most) in [(1, 4), (2, 8), (6, 128), (7, 250), (100, 250), (u32::MAX, 250)] {
            let (pause, most) = (pause(tries), Duration::from_millis(most));
            assert!(most / 2 <= pause && pause <= most, "{tries}: {pause:?}");
        }
    }
}
