//! Inserts rows on a shared connection, and finds the messages that the server refuses.

use std::sync::Arc;

use super::{NewRow, Woken};
use crate::{
    error::{Result, Search},
    postgres::db::{Class, Session},
    queue::{handle::Shared, message::unique::Enqueued},
};

/// The lane of a row that the server places by its keys.
const BY_KEYS: i16 = -1;

impl Shared {
    /// Inserts rows with one statement. If it waits for a lock on the queue's table, it waits on a
    /// connection of its own, so that enqueues to other queues do not wait.
    pub(super) async fn try_write(&self, rows: &[NewRow<'_>]) -> Result<Vec<i64>> {
        let insert = |session: Arc<Session>| async move { self.insert_rows(&session, rows, Woken::WithIt).await };
        self.db.with_lock_waits(Class::Store, insert).await
    }

    /// Finds the messages that the server refuses, by repeatedly halving the row, and stores all
    /// others. If the partitions have changed, the server places each row by its keys, and the
    /// halving also separates messages of different partitions. A single message can always be
    /// stored.
    pub(super) async fn write_apart(&self, row: NewRow<'_>, search: &mut Search) -> Vec<Result<Enqueued>> {
        let mut parts = vec![row];
        let mut each = Vec::with_capacity(row.count);
        while let Some(part) = parts.pop() {
            match self.try_write(&[part]).await {
                Ok(ids) => {
                    search.found_good();
                    each.extend(ids.iter().flat_map(|first| (*first..).take(part.count)).map(Enqueued::New).map(Ok));
                }
                Err(error) if error.is_of_other_lanes() && part.lane != BY_KEYS => {
                    parts.push(NewRow { lane: BY_KEYS, ..part });
                }
                Err(error) => {
                    let is_apart = error.is_refusal() && search.goes_on() || error.is_of_other_lanes();
                    if part.count > 1 && is_apart {
                        let (left, right) = part.halves();
                        parts.extend([right, left]);
                    } else {
                        each.extend((0..part.count).map(|_| Err(error.clone())));
                    }
                }
            }
        }
        each
    }
}
