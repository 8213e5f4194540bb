//! `schedules`: the list of the database's schedules.

use std::time::SystemTime;

use super::draft::Missed;
use crate::{
    error::Result,
    postgres::{
        db::{Class, Db},
        wire::Row,
    },
    queue::message::metadata::Metadata,
};

/// A schedule as stored in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scheduled {
    /// The schedule's name.
    pub name: String,
    /// The queue that receives the schedule's messages.
    pub queue: String,
    /// The rule for its ticks: see [`Schedule`](crate::Schedule).
    pub expression: String,
    /// The time zone of the expression.
    pub zone: String,
    /// The payload of each message, in Postgres' text format.
    pub payload: String,
    /// The metadata of each message, without `schedule` and `tick`.
    pub metadata: Metadata,
    /// The treatment of missed ticks.
    pub missed: Missed,
    /// The priority of each message; 0 if the queue has no priorities.
    pub priority: u8,
    /// The key of each message, if the queue's messages have keys.
    pub key: Option<String>,
    /// True if the schedule is paused.
    pub is_paused: bool,
    /// The time of the next tick. `None` if the schedule is paused, if it never ticks again, or if
    /// no process that runs schedules has seen it yet. If no such process is running, the time may
    /// have passed.
    pub next: Option<SystemTime>,
    /// The time of the last tick that enqueued a message.
    pub last: Option<SystemTime>,
    /// The reason why the last tick failed, or why there is no next tick.
    pub problem: Option<String>,
}

impl Db {
    /// Returns all schedules, in the order of their names.
    pub async fn schedules(&self) -> Result<Vec<Scheduled>> {
        self.check_schema("schedules").await?;
        let sql = self.statement("schedules", include_str!("../../sql/statements/schedules.sql"));
        let rows = self.query_again(Class::Main, &sql, &[]).await?;
        let read = |row: &Row| {
            Ok(Scheduled {
                name: row.read(0)?,
                queue: row.read(1)?,
                expression: row.read(2)?,
                zone: row.read(3)?,
                payload: row.read(4)?,
                metadata: row.read::<Option<Metadata>>(5)?.unwrap_or_default(),
                missed: Missed::of(&row.read::<String>(6)?)?,
                is_paused: row.read(7)?,
                next: row.read(8)?,
                last: row.read(9)?,
                problem: row.read(10)?,
                priority: row.read::<i32>(11)? as u8,
                key: row.read(12)?,
            })
        };
        rows.iter().map(read).collect()
    }
}
