//! Inserts a row whose messages have values in columns that users added to the queue's table.

use std::time::Instant;

use tokio_postgres::types::ToSql;

use super::{Woken, first_id, new_row::NewRow};
use crate::{
    error::Result,
    postgres::db::Session,
    queue::{handle::Shared, message::keys},
};

impl Shared {
    /// Inserts one row with these values, and returns the id of its first message.
    pub(super) async fn insert_with_columns(
        &self,
        session: &Session,
        row: &NewRow<'_>,
        columns: &str,
        woken: Woken,
    ) -> Result<i64> {
        let (payloads, keys) = (self.column.array(row.count, row.elements), keys::array(row.count, row.keys));
        let keys = self.is_keyed().then_some(keys);
        let lane = i32::from(row.lane);
        let params: [&(dyn ToSql + Sync); 7] =
            [&self.name(), &payloads, &columns, &row.due, &row.metadata, &lane, &keys];
        let (sql, began) = (&self.sql.enqueue_row, Instant::now());
        let inserted = match woken {
            Woken::WithIt => self.db.query_and_wake(session, (sql, 1), &params, &self.channel).await,
            Woken::Later => session.query(sql, &params).await,
        };
        let inserted = inserted.map_err(|error| error.or_no_queue(self.name()))?;
        let id = inserted.first().ok_or_else(|| self.not_stored(1, 0))?;
        self.metrics.enqueued(row.count, 1, began);
        first_id(id, row.count)
    }
}
