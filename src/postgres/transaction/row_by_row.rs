//! Statements in a transaction whose rows are decoded while the server sends the next rows.

use super::{Transaction, sent::Sent};
use crate::{
    error::Result,
    postgres::{
        rows::{Rows, add_rows},
        run::unreadable,
        wire::Prepared,
    },
};

impl Transaction {
    /// Reads the rows of a statement that was sent alone, and adds them to the empty result `none`.
    pub(super) async fn row_by_row<R: Rows>(&self, sent: &Sent, prepared: &Prepared, none: R) -> Result<R> {
        let (mut rows, mut place) = (Ok(none), None);
        loop {
            let (messages, end) = std::future::poll_fn(|context| sent.poll_rows(&mut place, context)).await;
            let columns = messages.columns.as_ref().unwrap_or(&prepared.columns);
            add_rows(&mut rows, columns, &messages.chunks);
            if let Some(reply) = end {
                return match &*reply {
                    Ok(_) => rows.map_err(|cause| unreadable(&prepared.text, cause)),
                    Err(failure) => Err(self.pipeline.cause(sent, failure)),
                };
            }
        }
    }
}
