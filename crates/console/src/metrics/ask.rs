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

/// A queue: its name, whether it is paused, and the number of rows that it has ever had.
pub type Queue = (String, bool, Option<i64>);

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

/// The server's time limit for the list of queues, and for the figures of the database.
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
