//! `schedules`: those of the database.

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

/// A schedule as the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scheduled {
    /// Its name.
    pub name: String,
    /// The queue that gets its messages.
    pub queue: String,
    /// When it ticks: see [`Schedule`](crate::Schedule).
    pub expression: String,
    /// The time zone whose clock the expression means.
    pub zone: String,
    /// The payload of each message, as Postgres writes it as text.
    pub payload: String,
    /// The metadata of each message, but for `schedule` and `tick`.
    pub metadata: Metadata,
    /// What becomes of missed ticks.
    pub missed: Missed,
    /// The priority of each message; 0 also where the queue has none.
    pub priority: u8,
    /// The key of each message, where the queue's messages have keys.
    pub key: Option<String>,
    /// Whether it was paused.
    pub is_paused: bool,
    /// The next tick. `None` while it is paused, where it never ticks again, and until a process
    /// that makes ticks has seen it; in the past where none runs.
    pub next: Option<SystemTime>,
    /// The last tick that was made.
    pub last: Option<SystemTime>,
    /// Why the last tick could not be made, or why there is none.
    pub problem: Option<String>,
}

impl Db {
    /// All schedules, by name.
    pub async fn schedules(&self) -> Result<Vec<Scheduled>> {
        self.check_schema().await?;
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
