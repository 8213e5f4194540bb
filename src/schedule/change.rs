//! What can be done with a schedule that is there.

use crate::{
    error::Result,
    postgres::{
        db::{Class, Db},
        sql::Sql,
        wire::{Row, only},
    },
};

impl Db {
    /// Pauses a schedule: it makes no ticks until it is resumed. One that is paused stays so.
    ///
    /// # Errors
    /// There is none of that name.
    pub async fn pause_schedule(&self, name: &str) -> Result<()> {
        let sql = self.statement("pause_schedule", include_str!("../../sql/statements/pause_schedule.sql"));
        self.change_schedule(sql, name).await.map(drop)
    }

    /// Resumes a schedule from its next tick on; those of the pause are not made up for.
    ///
    /// # Errors
    /// There is none of that name.
    pub async fn resume_schedule(&self, name: &str) -> Result<()> {
        let sql = self.statement("resume_schedule", include_str!("../../sql/statements/resume_schedule.sql"));
        self.change_schedule(sql, name).await?;
        self.schedule_changed();
        Ok(())
    }

    /// Drops a schedule. What it has enqueued stays.
    ///
    /// # Errors
    /// There is none of that name.
    pub async fn drop_schedule(&self, name: &str) -> Result<()> {
        let sql = self.statement("drop_schedule", include_str!("../../sql/statements/drop_schedule.sql"));
        self.change_schedule(sql, name).await.map(drop)
    }

    /// Enqueues the message of a schedule now, whether it is paused or not, and returns its id. The
    /// next tick comes when it would have come.
    ///
    /// # Errors
    /// There is none of that name. [`Error::is_outcome_unknown`](crate::Error::is_outcome_unknown):
    /// the message may or may not be there.
    pub async fn fire_schedule(&self, name: &str) -> Result<i64> {
        let sql = self.statement("fire_schedule", include_str!("../../sql/statements/fire_schedule.sql"));
        only(&self.change_schedule(sql, name).await?)?.read(0)
    }

    async fn change_schedule(&self, sql: Sql, name: &str) -> Result<Vec<Row>> {
        self.check_schema().await?;
        self.query(Class::Main, &sql, &[&name]).await
    }
}
