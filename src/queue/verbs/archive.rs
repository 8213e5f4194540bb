//! The archive, which keeps acknowledged messages, and the methods that prune it and purge a queue.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    error::Result,
    postgres::{array::Received, wire::only},
    queue::{
        handle::Queue,
        message::{metadata::Metadata, payload::Payload},
    },
};

/// A message that was acknowledged with [`Queue::archive`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Archived<T> {
    /// The message's id.
    pub id: i64,
    /// The time at which the message was enqueued.
    pub enqueued_at: SystemTime,
    /// The time at which the message was acknowledged.
    pub archived_at: SystemTime,
    /// The number of counted attempts.
    pub attempt: i32,
    /// The payload.
    pub payload: T,
    /// The metadata that was enqueued with the message.
    pub metadata: Metadata,
    /// The message's priority; 0 if the queue has no priorities.
    pub priority: u8,
    /// The message's key, if the queue's messages have keys.
    pub key: Option<Arc<str>>,
}

impl<T: Payload> Queue<T> {
    /// Returns up to `n` archived messages, ordered by id, after the id `after` (0 for the first
    /// page).
    ///
    /// If a payload is not a `T`, the whole page fails, and the error names the message's id. With
    /// [`Readable`](crate::Readable) there is no such error.
    pub async fn archived(&self, after: i64, n: usize) -> Result<Vec<Archived<T>>> {
        let (shared, limit) = (&self.shared, i64::try_from(n).unwrap_or(i64::MAX));
        let mut archived = Vec::new();
        for row in shared.query_again(&shared.sql.archived, &[&after, &limit]).await? {
            let payload: Received<'_> = row.read(4)?;
            let (enqueued_at, archived_at, attempt) = (row.read(1)?, row.read(2)?, row.read(3)?);
            let (priority, key) = (row.read::<i32>(6)? as u8, row.read::<Option<&str>>(7)?);
            for (id, payload) in shared.column.decode_all(shared.name(), row.read(0)?, &payload)? {
                let metadata = row.read::<Option<Metadata>>(5)?.unwrap_or_default();
                let key = key.map(Into::into);
                archived.push(Archived { id, enqueued_at, archived_at, attempt, payload, metadata, priority, key });
            }
        }
        Ok(archived)
    }
}

impl<T> Queue<T> {
    /// Deletes messages that were archived more than `age` ago. Returns the number of deleted
    /// messages.
    pub async fn prune(&self, age: Duration) -> Result<u64> {
        let rows =
            self.shared.query(&self.shared.sql.prune, &[&self.shared.name(), &age.as_secs_f64().min(3e9)]).await?;
        Ok(only(&rows)?.read::<i64>(0)?.unsigned_abs())
    }

    /// Deletes all messages of the queue, including leased ones, except dead letters and archived
    /// messages. Returns the number of deleted messages.
    pub async fn purge(&self) -> Result<u64> {
        let rows = self.shared.query(&self.shared.sql.purge, &[&self.shared.name()]).await?;
        Ok(only(&rows)?.read::<i64>(0)?.unsigned_abs())
    }
}
