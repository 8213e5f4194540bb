//! Stores the floor for other processes, and returns the disk space of deleted rows.

use std::{sync::Arc, time::Instant};

use tracing::debug;

use crate::{
    error::Result,
    postgres::{db::Class, time::Time, wire::only},
    queue::handle::Shared,
};

impl Shared {
    /// Stores the floor for other processes. If a table is large, starts a task that compacts it.
    pub(super) async fn keep_floor(self: &Arc<Self>, reached: Time) -> Result<()> {
        let sql = self.db.statement("keep_floor", include_str!("../../sql/statements/keep_floor.sql"));
        let rows = self.query_again(&sql, &[&self.name(), &reached]).await?;
        if only(&rows)?.read(1)? && self.compaction.claim(Instant::now()) {
            let shared = self.clone();
            tokio::spawn(async move {
                if let Err(error) = shared.compact().await {
                    debug!(queue = shared.name(), %error, "cannot compact the queue");
                }
            });
        }
        Ok(())
    }

    /// Compacts one of the queue's tables if that is worth its cost. Uses its own connection,
    /// because statements that share a connection would wait for the compaction.
    async fn compact(&self) -> Result<()> {
        let sql = self.db.statement("compact", include_str!("../../sql/statements/compact.sql"));
        let session = self.db.own_session_for(Class::Main).await?;
        let rows = session.query(&sql, &[&self.name()]).await?;
        self.db.give_back(session);
        let row = only(&rows)?;
        let (freed, refused) = (row.read::<i64>(0)?, row.read::<Option<&str>>(1)?);
        if freed > 0 {
            self.compaction.was_worth_it();
        }
        debug!(queue = self.name(), freed, refused, "{}", if freed > 0 { "compacted" } else { "not compacted" });
        Ok(())
    }
}
