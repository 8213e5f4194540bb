//! Reads the values of columns that users added to the queue's table.

use std::collections::BTreeMap;

use crate::{
    error::{Error, Kind, Result},
    queue::{handle::Queue, message::payload::Payload},
};

impl<T: Payload> Queue<T> {
    /// Returns the values of these messages in the columns that you added to the queue's table.
    /// Each entry has a message's id and its values, as texts by column name. The messages may be
    /// waiting, leased, dead or archived. A message that was taken or acknowledged is not in the
    /// result, nor is a column whose value is null. [`Draft::column`](crate::Draft::column) sets
    /// the values.
    ///
    /// ```
    /// # use trunkline::{Draft, Queue, Result};
    /// # async fn example(mails: Queue<String>) -> Result<()> {
    /// mails.enqueue(Draft::new("hello".to_owned()).column("tenant", "acme")).await?;
    /// let leased = mails.lease(10).await?;
    /// let ids: Vec<i64> = leased.iter().map(|mail| mail.id).collect();
    /// for (id, columns) in mails.columns(&ids).await? {
    ///     println!("{id} is of {:?}", columns.get("tenant"));
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn columns(&self, ids: &[i64]) -> Result<Vec<(i64, BTreeMap<String, String>)>> {
        let shared = &self.shared;
        let rows = shared.query_again(&shared.sql.own_columns, &[&shared.name(), &ids]).await?;
        let read = |text: &str| serde_json::from_str(text).map_err(|error| Error::new(Kind::Answer(error.into())));
        rows.iter().map(|row| Ok((row.read(0)?, read(row.read(1)?)?))).collect()
    }
}
