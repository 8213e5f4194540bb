//! Inserts rows whose messages have values in columns that users added to the queue's table.

use super::{Param, Woken, new_row::NewRow};
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
    ) -> Result<Vec<i64>> {
        let (payloads, keys) = (self.column.array(row.count, row.elements), keys::array(row.count, row.keys));
        let (lane, keys) = (i32::from(row.lane), self.is_keyed().then_some(keys));
        let params: [Param<'_>; 7] = [&self.name(), &payloads, &columns, &row.due, &row.metadata, &lane, &keys];
        self.send_insert(session, &self.sql.enqueue_row, &[*row], &params, woken).await
    }
}
