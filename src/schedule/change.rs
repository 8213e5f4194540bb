//! Changes to an existing schedule.

use crate::{
    error::Result,
    postgres::{
        db::{Class, Db},
        sql::Sql,
        wire::{Row, only},
    },
};

impl Db {
    /// Pauses a schedule, which then enqueues nothing until [`Db::resume_schedule`] is called.
    ///
    /// # Errors
    /// There is no schedule of that name.
    pub async fn pause_schedule(&self, name: &str) -> Result<()> {
        let sql = self.statement("pause_schedule", include_str!("../../sql/statements/pause_schedule.sql"));
        self.change_schedule(sql, name).await.map(drop)
    }

    /// Resumes a schedule, beginning with its next tick. Ticks that were due during the pause are
    /// skipped.
    ///
    /// # Errors
    /// There is no schedule of that name.
    pub async fn resume_schedule(&self, name: &str) -> Result<()> {
        let sql = self.statement("resume_schedule", include_str!("../../sql/statements/resume_schedule.sql"));
        self.change_schedule(sql, name).await?;
        self.schedule_changed();
        Ok(())
    }

    /// Drops a schedule. Messages that it has enqueued stay in the queue.
    ///
    /// # Errors
    /// There is no schedule of that name.
    pub async fn drop_schedule(&self, name: &str) -> Result<()> {
        let sql = self.statement("drop_schedule", include_str!("../../sql/statements/drop_schedule.sql"));
        self.change_schedule(sql, name).await.map(drop)
    }

    /// Enqueues the message of a schedule now, even if it is paused, and returns the message's id.
    /// The time of the next tick does not change.
    ///
    /// # Errors
    /// There is no schedule of that name.
    /// [`Error::is_outcome_unknown`](crate::Error::is_outcome_unknown): the message may or may not
    /// be in the queue.
    pub async fn fire_schedule(&self, name: &str) -> Result<i64> {
        let sql = self.statement("fire_schedule", include_str!("../../sql/statements/fire_schedule.sql"));
        only(&self.change_schedule(sql, name).await?)?.read(0)
    }

    async fn change_schedule(&self, sql: Sql, name: &str) -> Result<Vec<Row>> {
        self.check_schema("set_schedule").await?;
        self.query(Class::Main, &sql, &[&name]).await
    }
}
