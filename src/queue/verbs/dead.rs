//! Dead letters: messages whose attempts are exhausted, in a separate table.

use std::{sync::Arc, time::SystemTime};

use crate::{
    error::Result,
    postgres::array::Received,
    queue::{
        handle::{Queue, Shared, finish},
        message::{metadata::Metadata, payload::Payload},
    },
};

/// A message whose attempts are exhausted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter<T> {
    /// The message's id.
    pub id: i64,
    /// The time at which the message was enqueued.
    pub enqueued_at: SystemTime,
    /// The time at which the message became a dead letter.
    pub dead_at: SystemTime,
    /// The number of counted attempts.
    pub attempt: i32,
    /// The error of the last attempt.
    pub error: String,
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
    /// Returns up to `n` dead letters, ordered by id, after the id `after` (0 for the first page).
    ///
    /// # Errors
    /// If a payload is not a `T`, the whole page fails, and the error names the message's id. With
    /// [`Readable`](crate::Readable) there is no such error.
    pub async fn dead_letters(&self, after: i64, n: usize) -> Result<Vec<DeadLetter<T>>> {
        let (shared, limit) = (&self.shared, i64::try_from(n).unwrap_or(i64::MAX));
        let rows = shared.query_again(&shared.sql.dead, &[&after, &limit]).await?;
        let mut letters = Vec::with_capacity(rows.len());
        for row in rows {
            let payload: Received<'_> = row.read(5)?;
            let (enqueued_at, dead_at, attempt) = (row.read(1)?, row.read(2)?, row.read(3)?);
            let (priority, key) = (row.read::<i32>(7)? as u8, row.read::<Option<&str>>(8)?);
            for (id, payload) in shared.column.decode_all(shared.name(), row.read(0)?, &payload)? {
                let metadata = row.read::<Option<Metadata>>(6)?.unwrap_or_default();
                let (error, key) = (row.read(4)?, key.map(Into::into));
                letters.push(DeadLetter { id, enqueued_at, dead_at, attempt, error, payload, metadata, priority, key });
            }
        }
        Ok(letters)
    }
}

/// The maximum number of dead letters that one statement processes.
const PAGE: i64 = 10_000;

impl<T> Queue<T> {
    /// Makes dead letters due again at once. They keep their ids, and their attempts start again at
    /// zero. Returns the number of replayed messages, and ignores other ids.
    pub async fn replay(&self, ids: &[i64]) -> Result<usize> {
        self.shared.replay(Some(ids.to_vec()), i64::MAX).await
    }

    /// Replays all dead letters, one page per transaction. Returns the number of replayed messages.
    pub async fn replay_all(&self) -> Result<usize> {
        page_by_page(|| self.shared.replay(None, PAGE)).await
    }

    /// Deletes dead letters permanently. Returns the number of deleted messages.
    pub async fn discard(&self, ids: &[i64]) -> Result<usize> {
        self.shared.discard(Some(ids), i64::MAX).await
    }

    /// Deletes all dead letters permanently, one page per transaction. Returns the number of
    /// deleted messages.
    pub async fn discard_all(&self) -> Result<usize> {
        page_by_page(|| self.shared.discard(None, PAGE)).await
    }
}

impl Shared {
    /// Replays dead letters, and wakes waiting consumers even if the caller stops waiting.
    async fn replay(self: &Arc<Self>, ids: Option<Vec<i64>>, most: i64) -> Result<usize> {
        let shared = self.clone();
        let work = async move {
            let replayed = shared.query(&shared.sql.replay, &[&shared.name(), &ids, &most]).await?.len();
            if replayed > 0 {
                shared.db.wake(&shared.channel);
            }
            Ok(replayed)
        };
        finish("a replay", work).await
    }

    async fn discard(&self, ids: Option<&[i64]>, most: i64) -> Result<usize> {
        Ok(self.query(&self.sql.discard, &[&self.name(), &ids, &most]).await?.len())
    }
}

/// Processes one page after another, until a page is not full.
async fn page_by_page<F: Future<Output = Result<usize>>>(mut page: impl FnMut() -> F) -> Result<usize> {
    let mut count = 0;
    loop {
        let rows = page().await?;
        count += rows;
        if rows < PAGE as usize {
            return Ok(count);
        }
    }
}
