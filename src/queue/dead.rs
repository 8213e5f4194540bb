//! Dead letters: messages whose attempts are used up, in a table of their own.

use std::time::SystemTime;

use crate::{
    error::Result,
    postgres::array::Received,
    queue::{handle::Queue, metadata::Metadata, payload::Payload},
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
    /// What the last attempt said.
    pub error: String,
    /// The payload.
    pub payload: T,
    /// What was enqueued beside it.
    pub metadata: Metadata,
}

impl<T: Payload> Queue<T> {
    /// A page of up to `n` dead letters, by id, after the id `after` (0 for the first page).
    ///
    /// # Errors
    /// A payload that is no `T` fails its whole page, and the error names its id; with [`Readable`](crate::Readable) none does.
    pub async fn dead_letters(&self, after: i64, n: usize) -> Result<Vec<DeadLetter<T>>> {
        let (shared, limit) = (&self.shared, i64::try_from(n).unwrap_or(i64::MAX));
        let rows = shared.query_again(&shared.sql.dead, &[&after, &limit]).await?;
        let mut letters = Vec::with_capacity(rows.len());
        for row in rows {
            let payload: Received<'_> = row.read(5)?;
            let (enqueued_at, dead_at, attempt) = (row.read(1)?, row.read(2)?, row.read(3)?);
            for (id, payload) in shared.column.decode_all(shared.name(), row.read(0)?, &payload)? {
                let metadata = row.read::<Option<Metadata>>(6)?.unwrap_or_default();
                letters.push(DeadLetter { id, enqueued_at, dead_at, attempt, error: row.read(4)?, payload, metadata });
            }
        }
        Ok(letters)
    }
}

/// Dead letters moved by one statement at most.
const PAGE: i64 = 10_000;

impl<T> Queue<T> {
    /// Makes dead letters due again, at once, under the same ids and with attempts forgiven. Returns how many; ids that
    /// are no dead letters are passed over.
    pub async fn replay(&self, ids: &[i64]) -> Result<usize> {
        let rows = self.shared.query(&self.shared.sql.replay, &[&ids, &i64::MAX]).await?;
        self.shared.db.wake(&self.shared.channel);
        Ok(rows.len())
    }

    /// Replays all dead letters, a page a transaction.
    pub async fn replay_all(&self) -> Result<usize> {
        let count = self.page_by_page(&self.shared.sql.replay).await?;
        self.shared.db.wake(&self.shared.channel);
        Ok(count)
    }

    /// Deletes dead letters for good. Returns how many.
    pub async fn discard(&self, ids: &[i64]) -> Result<usize> {
        Ok(self.shared.query(&self.shared.sql.discard, &[&ids, &i64::MAX]).await?.len())
    }

    /// Deletes all dead letters for good, a page a transaction.
    pub async fn discard_all(&self) -> Result<usize> {
        self.page_by_page(&self.shared.sql.discard).await
    }

    async fn page_by_page(&self, sql: &crate::postgres::sql::Sql) -> Result<usize> {
        let mut count = 0;
        loop {
            let rows = self.shared.query(sql, &[&None::<Vec<i64>>, &PAGE]).await?.len();
            count += rows;
            if rows < PAGE as usize {
                return Ok(count);
            }
        }
    }
}
