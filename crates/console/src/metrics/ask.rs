//! The statements behind the metrics.

use std::time::Duration;

use trunkline::{
    Db, Result,
    postgres::{Params, Rows, Statement},
};

use crate::schema::Text;

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/metrics/", $name, ".sql"))
    };
}

/// A queue: its name, whether it is paused, the number of rows that it has ever had, and the number
/// of its priorities.
pub type Queue = (String, bool, Option<i64>, i32);

/// A table of a queue: the queue, the kind of table, the bytes of the heap, of TOAST and of the
/// indexes, and the number of dead rows.
pub type Store = (String, String, i64, i64, i64, i64);

/// A session or slot that holds back the horizon: its kind, its age in seconds, and its age in
/// transactions.
pub type Holder = (String, Option<f64>, i64);

/// Figures for the database as a whole.
#[derive(Debug, Clone)]
pub struct Database {
    pub schema_version: i32,
    /// The fill level of the notification queue, from 0 to 1.
    pub notifications: f64,
    pub hidden_sessions: i64,
    pub holders: Vec<Holder>,
}

/// The counts of a queue.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// The numbers of messages that are due, delayed, leased, waiting for a retry, dead, and
    /// archived.
    pub messages: [i64; 6],
    /// The number of rows of messages that are neither dead nor archived.
    pub rows: i64,
    /// The number of seconds since the oldest due message became due.
    pub oldest_due: f64,
    /// The floor's lag in seconds. A queue with keys has no single floor.
    pub floor_lag: Option<f64>,
    /// The duration of the count on the server.
    pub took: Duration,
}

impl Counts {
    /// Returns the number of messages that are waiting or leased.
    pub fn depth(&self) -> i64 {
        self.messages[..4].iter().sum()
    }

    pub fn alarms(&self) -> Alarms {
        Alarms { oldest_due: self.oldest_due, has_dead: self.messages[4] > 0 }
    }
}

/// The figures of a queue on which alarms depend. They take no count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alarms {
    /// The number of seconds since the oldest due message became due; 0 if no message is due.
    pub oldest_due: f64,
    pub has_dead: bool,
}

type Counted = (i64, i64, i64, i64, i64, i64, i64, f64, Option<f64>, f64);

/// Returns all queues. A session that has locked their list holds up no shared connection.
pub async fn queues(db: &Db) -> Result<Vec<Queue>> {
    alone(db, Text::of(db, sql!("queues")), (), LISTING).await
}

pub async fn stores(db: &Db) -> Result<Vec<Store>> {
    alone(db, Text::of(db, sql!("stores")), (), COUNTING).await
}

/// Returns the figures of the database. Statements of the program that wait on its shared
/// connections do not delay them.
pub async fn database(db: &Db) -> Result<Database> {
    let (schema_version, notifications, hidden_sessions) =
        alone(db, Text::of(db, sql!("database")), (), LISTING).await?;
    let holders = alone(db, Text::of(db, sql!("horizon")), (), LISTING).await?;
    Ok(Database { schema_version, notifications, hidden_sessions, holders })
}

pub async fn counts(db: &Db, queue: &str) -> Result<Counts> {
    counts_within(db, queue, COUNTING).await
}

/// Returns the counts of a queue. Fails after the time `most`.
pub async fn counts_within(db: &Db, queue: &str, most: &str) -> Result<Counts> {
    let text = Text::of(db, sql!("counts")).with_tables(queue);
    let counted: Counted = alone(db, text, (), most).await?;
    let (due, delayed, leased, to_retry, dead, archived, rows, oldest_due, floor_lag, took) = counted;
    let took = Duration::try_from_secs_f64(took).unwrap_or_default(); // fails only if a clock was set back
    Ok(Counts { messages: [due, delayed, leased, to_retry, dead, archived], rows, oldest_due, floor_lag, took })
}

/// Returns the alarms of a queue with this number of priorities, and how long the server took.
pub async fn alarms(db: &Db, queue: &str, priorities: i32) -> Result<(Alarms, Duration)> {
    let in_lane = if priorities > 1 { "q.lane = p.lane" } else { "true" };
    let text = Text::of(db, sql!("alarms")).with("last", &(priorities - 1).to_string()).with("in_lane", in_lane);
    let (oldest_due, has_dead, took): (f64, bool, f64) = alone(db, text.with_tables(queue), (), LISTING).await?;
    let took = Duration::try_from_secs_f64(took).unwrap_or_default();
    Ok((Alarms { oldest_due, has_dead }, took))
}

/// The server's time limit for the list of queues, for the figures of the database, and for alarms.
const LISTING: &str = "10s";
/// The server's time limit for a count.
const COUNTING: &str = "10min";

/// Runs a statement on a separate connection, so that no other statement waits behind it. Fails
/// after the time `most`.
pub async fn alone<P: Params, R: Rows>(db: &Db, text: Text, params: P, most: &str) -> Result<R> {
    bounded(db, sql!("alone"), text, params, most).await
}

/// Runs a statement like [`alone`], but the server plans it with the session's own settings.
pub async fn within<P: Params, R: Rows>(db: &Db, text: Text, params: P, most: &str) -> Result<R> {
    bounded(db, sql!("within"), text, params, most).await
}

async fn bounded<P: Params, R: Rows>(db: &Db, bounds: &'static str, text: Text, params: P, most: &str) -> Result<R> {
    let transaction = db.begin_with("isolation level read committed, read only").await?;
    let bounds: Statement<(&str,), ()> = Statement::new(bounds);
    drop(transaction.send(&bounds, (most,)).await?); // the next statement also waits for this answer
    let answer = text.run_in(&transaction, params).await?;
    transaction.commit().await?;
    Ok(answer)
}
