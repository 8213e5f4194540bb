//! Dead letters: messages whose attempts are used up, in a table of their own.

use std::{sync::Arc, time::SystemTime};

use crate::{
    error::Result,
    postgres::array::Received,
    queue::{
        handle::{Queue, Shared, finish},
        message::{metadata::Metadata, payload::Payload},
    },
};

/// A message whose attempts are used up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter<T> {
    /// The message's id.
    pub id: i64,
    /// When it was enqueued.
    pub enqueued_at: SystemTime,
    /// When it died.
    pub dead_at: SystemTime,
    /// Attempts that were charged.
    pub attempt: i32,
    /// The error of the last attempt.
    pub error: String,
    /// The payload.
    pub payload: T,
    /// The metadata that was enqueued with it.
    pub metadata: Metadata,
    /// Its priority; 0 also where the queue has none.
    pub priority: u8,
    /// Its key, where the queue's messages have keys.
    pub key: Option<Arc<str>>,
}

impl<T: Payload> Queue<T> {
    /// A page of up to `n` dead letters, by id, after the id `after` (0 for the first page).
    ///
    /// # Errors
    /// A payload that is no `T` fails its whole page, and the error names its id; with
    /// [`Readable`](crate::Readable) none does.
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

/// Dead letters moved by one statement at most.
const PAGE: i64 = 10_000;

impl<T> Queue<T> {
    /// Makes dead letters due again, at once, under the same ids and with attempts forgiven.
    /// Returns how many; ids that are no dead letters are passed over.
    pub async fn replay(&self, ids: &[i64]) -> Result<usize> {
        self.shared.replay(Some(ids.to_vec()), i64::MAX).await
    }

    /// Replays all dead letters, a page a transaction.
    pub async fn replay_all(&self) -> Result<usize> {
        page_by_page(|| self.shared.replay(None, PAGE)).await
    }

    /// Deletes dead letters for good. Returns how many.
    pub async fn discard(&self, ids: &[i64]) -> Result<usize> {
        self.shared.discard(Some(ids), i64::MAX).await
    }

    /// Deletes all dead letters for good, a page a transaction.
    pub async fn discard_all(&self) -> Result<usize> {
        page_by_page(|| self.shared.discard(None, PAGE)).await
    }
}

impl Shared {
    /// Messages that are due again wake waiting consumers, whether or not the caller stays.
    async fn replay(self: &Arc<Self>, ids: Option<Vec<i64>>, most: i64) -> Result<usize> {
        let shared = self.clone();
        let work = async move {
            let replayed = shared.query(&shared.sql.replay, &[&ids, &most]).await?.len();
            if replayed > 0 {
                shared.db.wake(&shared.channel);
            }
            Ok(replayed)
        };
        finish("a replay", work).await
    }

    async fn discard(&self, ids: Option<&[i64]>, most: i64) -> Result<usize> {
        Ok(self.query(&self.sql.discard, &[&ids, &most]).await?.len())
    }
}

/// Until a page is not full.
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
