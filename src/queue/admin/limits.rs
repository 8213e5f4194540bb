//! Limits and pauses of queues. Both apply to all processes together.

use tokio_postgres::types::ToSql;

use crate::{
    error::{Error, Result},
    postgres::{
        db::{Class, Db},
        wire::Row,
    },
};

/// The limits on how many messages all processes together may dequeue from a queue. The limits are
/// exact, because each dequeue checks them in its own transaction. Therefore, concurrent dequeues
/// from a queue with limits wait for each other to commit. While a transaction that took messages
/// stays open, other dequeues find nothing.
///
/// ```
/// # use trunkline::{Db, Limits, Result};
/// # async fn example(db: Db) -> Result<()> {
/// db.limit_queue("mails", &Limits::none().max_leased(100).per_second(50.0).burst(10)).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Limits {
    /// The number of leased messages at which dequeues stop.
    pub max_leased: Option<u32>,
    /// The number of messages that may be dequeued per second.
    pub per_second: Option<f64>,
    /// The number of messages that may be dequeued at once after an idle time.
    pub burst: Option<u32>,
    /// The number of messages of each key that workers may start per second.
    pub key_per_second: Option<f64>,
    /// The number of messages of each key that workers may start at once after an idle time.
    pub key_burst: Option<u32>,
}

impl Limits {
    /// Returns no limits.
    #[must_use]
    pub const fn none() -> Self {
        Self { max_leased: None, per_second: None, burst: None, key_per_second: None, key_burst: None }
    }

    /// Stops dequeues while this number of messages is leased; at least 1.
    #[must_use]
    pub const fn max_leased(self, messages: u32) -> Self {
        Self { max_leased: Some(messages), ..self }
    }

    /// Limits the number of messages dequeued per second: more than 0, at most a billion (10⁹). A
    /// limit of 0.1 allows one message every ten seconds.
    ///
    /// In any `t` seconds, at most `burst + t * per_second` messages are dequeued. With the default
    /// burst, up to twice the rate is dequeued in the first second after an idle time. With a burst
    /// of 1, at most one message more than the rate is dequeued.
    #[must_use]
    pub const fn per_second(self, messages: f64) -> Self {
        Self { per_second: Some(messages), ..self }
    }

    /// Sets the number of messages that may be dequeued at once after an idle time, if `per_second`
    /// is set: at least 1, at most a billion (10⁹). By default it is the number of messages for one
    /// second, and at least 1.
    #[must_use]
    pub const fn burst(self, messages: u32) -> Self {
        Self { burst: Some(messages), ..self }
    }

    /// Limits the number of messages of each key that workers start per second, in a queue with
    /// keys ([`Settings::partitions`](crate::Settings::partitions)): more than 0, at most a billion
    /// (10⁹). A limit of 0.1 allows one message every ten seconds. Repeated deliveries of a message
    /// count too.
    ///
    /// The worker that owns the key's partition enforces the rate without asking other workers. In
    /// any `t` seconds, all workers together start at most `key_burst + t * key_per_second`
    /// messages of a key. A worker that takes over a partition starts with empty buckets, which
    /// fill from the last time at which its predecessor could have started a message. Messages that
    /// exceed the rate of their key wait, and messages with other keys overtake them. Partitions of
    /// such a queue cannot be leased in SQL.
    #[must_use]
    pub const fn key_per_second(self, messages: f64) -> Self {
        Self { key_per_second: Some(messages), ..self }
    }

    /// Sets the number of messages of a key that may be started at once after an idle time, if
    /// `key_per_second` is set: at least 1, at most a billion (10⁹). By default it is the number of
    /// messages for one second, and at least 1.
    #[must_use]
    pub const fn key_burst(self, messages: u32) -> Self {
        Self { key_burst: Some(messages), ..self }
    }

    /// Reads three columns starting at column `at`, and the limits of keys from two columns
    /// starting at column `of_keys`.
    pub(crate) fn of(row: &Row, at: usize, of_keys: usize) -> Result<Self> {
        let (per_second, burst) = per_second_of(row, at + 1)?;
        let (key_per_second, key_burst) = per_second_of(row, of_keys)?;
        let max_leased = row.read::<Option<i32>>(at)?.map(i32::unsigned_abs);
        Ok(Self { max_leased, per_second, burst, key_per_second, key_burst })
    }
}

/// Reads a rate and its burst from two columns.
fn per_second_of(row: &Row, at: usize) -> Result<(Option<f64>, Option<u32>)> {
    let per_second: Option<f64> = row.read(at)?;
    let burst = row.read::<Option<f64>>(at + 1)?.filter(|_| per_second.is_some());
    Ok((per_second, burst.map(|burst| burst as u32)))
}

impl Db {
    /// Sets all limits of a queue. Limits that `limits` leaves unset are removed. The new limits
    /// apply at once, even to programs that are already running.
    ///
    /// # Errors
    /// A limit is out of bounds, or a burst is set without a rate. In both cases, no limit is
    /// changed. There is no such queue ([`Error::is_no_queue`]).
    pub async fn limit_queue(&self, name: &str, limits: &Limits) -> Result<()> {
        self.check_schema("limit_queue").await?;
        let number = |number: Option<u32>| {
            let number = number.map(i32::try_from).transpose();
            number.map_err(|_| Error::invalid(format!("a limit can be at most {}", i32::MAX)))
        };
        let (leased, burst, key_burst) = (number(limits.max_leased)?, number(limits.burst)?, number(limits.key_burst)?);
        let sql = self.statement("limit_queue", include_str!("../../../sql/statements/limit_queue.sql"));
        let Limits { per_second, key_per_second, .. } = limits;
        let params: [&(dyn ToSql + Sync); 6] = [&name, &leased, per_second, &burst, key_per_second, &key_burst];
        let limited = self.query_apart(&sql, &params).await;
        limited.map_err(|error| error.or_no_queue(name)).map(drop)
    }

    /// Pauses a queue for all programs: dequeues find no messages until [`Db::resume_queue`] is
    /// called, and consumers and workers wait. Enqueues still work, and leased messages keep their
    /// leases.
    ///
    /// # Errors
    /// There is no such queue ([`Error::is_no_queue`]).
    pub async fn pause_queue(&self, name: &str) -> Result<()> {
        let sql = self.statement("pause_queue", include_str!("../../../sql/statements/pause_queue.sql"));
        self.query(Class::Main, &sql, &[&name]).await.map_err(|error| error.or_no_queue(name)).map(drop)
    }

    /// Resumes a paused queue, and wakes its consumers.
    ///
    /// # Errors
    /// There is no such queue ([`Error::is_no_queue`]).
    pub async fn resume_queue(&self, name: &str) -> Result<()> {
        let sql = self.statement("resume_queue", include_str!("../../../sql/statements/resume_queue.sql"));
        self.query(Class::Main, &sql, &[&name]).await.map_err(|error| error.or_no_queue(name)).map(drop)
    }
}
