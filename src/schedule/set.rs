//! `schedule`: stores a schedule.

use bytes::BytesMut;
use jiff::Timestamp;

use super::{draft::Schedule, expression::Expression};
use crate::{
    error::{Error, Result},
    postgres::wire::only,
    queue::{handle::Queue, message::payload::Payload},
};

impl<T: Payload> Queue<T> {
    /// Enqueues the payload at every tick of the schedule from now on, once for all processes
    /// together. Does nothing if the same schedule already exists, so a program can declare its
    /// schedules at every start. If a schedule of that name has a different expression, zone,
    /// queue, payload, priority or other setting, it is changed. A paused schedule stays paused.
    /// Returns true if anything was changed.
    ///
    /// Every process with a [`Worker`](crate::Worker) runs schedules if its role has the right (the
    /// owner of the schema, or an operator of all queues).
    /// [`Db::run_schedules`](crate::Db::run_schedules) runs them too. There is no leader among
    /// these processes. A message is enqueued within 100 ms of its tick, while such a process runs,
    /// the database answers, and no other process has locked the schedule. If another process
    /// creates a schedule, a worker notices it within 30 s, and `run_schedules` at once.
    ///
    /// ```
    /// # use trunkline::{Queue, Result, Schedule};
    /// # async fn example(reports: Queue<String>) -> Result<()> {
    /// let nightly = Schedule::new("nightly", "0 3 * * *").zone("Europe/Berlin");
    /// reports.schedule(&nightly, &"all customers".to_owned()).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The name, the expression or the zone is not valid. The expression never ticks. The queue has
    /// no such priority. The schedule has a key and the queue's messages have none, or the reverse.
    /// The payload cannot be encoded.
    pub async fn schedule(&self, schedule: &Schedule, payload: &T) -> Result<bool> {
        let Schedule { name, expression, zone, missed, metadata, priority, key } = schedule;
        let shared = &self.shared;
        if Expression::parse(expression, zone)?.next(Timestamp::now()).is_none() {
            return Err(Error::invalid(format!("{expression:?} never ticks: there is no such date")));
        }
        shared.lane_of(*priority, key.as_deref())?;
        let priority = i32::from(*priority);
        let mut element = BytesMut::new();
        shared.column.encode(payload, &mut element)?;
        let payload = shared.column.array(1, &element);
        let metadata = Some(metadata).filter(|metadata| !metadata.is_empty());
        let (queue, missed) = (shared.name(), missed.name());
        let rows = shared
            .query_again(
                &shared.sql.set_schedule,
                &[name, &queue, expression, &payload, zone, &metadata, &missed, &priority, key],
            )
            .await?;
        shared.db.schedule_changed();
        only(&rows)?.read(0)
    }
}
