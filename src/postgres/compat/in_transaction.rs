//! An implementation that lets queue methods run in this module's transactions.

use std::sync::Arc;

use postgres_types::{ToSql, Type};

use super::transaction::Transaction;
use crate::{
    error::Result,
    postgres::in_transaction::{Fetched, InTransaction, sealed::Fetch},
};

impl InTransaction for Transaction<'_> {}

impl Fetch for Transaction<'_> {
    async fn fetch(&self, text: &Arc<str>, params: &[(&(dyn ToSql + Sync), Type)]) -> Result<Vec<Fetched>> {
        let rows = self.query_typed(text, params).await?;
        Ok(rows.into_iter().map(|row| Fetched::from(row.values)).collect())
    }
}
