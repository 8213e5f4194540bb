//! Dead letters: messages that failed for good or were buried, in a separate table.

use std::{sync::Arc, time::SystemTime};

use crate::{
    error::{Error, Result},
    postgres::{
        array::Received,
        wire::{Row, only},
    },
    queue::{
        handle::{Queue, Shared, finish},
        message::{metadata::Metadata, payload::Payload},
    },
};

/// A message whose attempts are exhausted, or that was buried while attempts were left.
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
    /// The error of the last attempt, or the reason of the burial.
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
    /// Makes dead letters due again at once, with all the attempts that the queue allows. Returns
    /// the number of replayed messages, and ignores other ids.
    ///
    /// [`Message::attempts`](crate::Message::attempts) starts again at zero.
    /// [`Message::attempt`](crate::Message::attempt) continues, so that a late consumer of an
    /// earlier attempt is refused. A dead letter keeps its id, unless another message has it by
    /// now, as after a sequence fell behind.
    pub async fn replay(&self, ids: &[i64]) -> Result<usize> {
        Ok(self.shared.replay(Some(ids.to_vec()), 0).await?.count)
    }

    /// Replays all dead letters, one page per transaction. Returns the number of replayed messages.
    pub async fn replay_all(&self) -> Result<usize> {
        page_by_page(|after| self.shared.replay(None, after)).await
    }

    /// Deletes dead letters permanently. Returns the number of deleted messages.
    pub async fn discard(&self, ids: &[i64]) -> Result<usize> {
        Ok(self.shared.discard(Some(ids), 0).await?.count)
    }

    /// Deletes all dead letters permanently, one page per transaction. Returns the number of
    /// deleted messages.
    pub async fn discard_all(&self) -> Result<usize> {
        page_by_page(|after| self.shared.discard(None, after)).await
    }
}

/// A processed page of dead letters.
struct Page {
    /// The id after which the next page begins; `None` if there are no more dead letters.
    last: Option<i64>,
    count: usize,
}

impl Page {
    fn read(rows: &[Row]) -> Result<Self> {
        let row = only(rows)?;
        Ok(Self { last: row.read(0)?, count: row.read::<i64>(1)? as usize })
    }
}

impl Shared {
    /// Replays dead letters with these ids, or a page of those after an id. Wakes waiting consumers
    /// even if the caller stops waiting.
    async fn replay(self: &Arc<Self>, ids: Option<Vec<i64>>, after: i64) -> Result<Page> {
        let shared = self.clone();
        let work = async move {
            let rows = shared.query(&shared.sql.replay, &[&shared.name(), &ids, &after, &PAGE]).await;
            let page = rows.and_then(|rows| Page::read(&rows));
            if page.as_ref().map_or_else(Error::is_outcome_unknown, |page| page.count > 0) {
                shared.db.wake(&shared.channel);
            }
            page
        };
        finish("a replay", work).await
    }

    async fn discard(&self, ids: Option<&[i64]>, after: i64) -> Result<Page> {
        Page::read(&self.query(&self.sql.discard, &[&self.name(), &ids, &after, &PAGE]).await?)
    }
}

/// Processes one page after another, until there are no more dead letters.
async fn page_by_page<F: Future<Output = Result<Page>>>(process: impl Fn(i64) -> F) -> Result<usize> {
    let (mut count, mut after) = (0, i64::MIN);
    loop {
        let page = process(after).await?;
        count += page.count;
        let Some(last) = page.last else { return Ok(count) };
        after = last;
    }
}
