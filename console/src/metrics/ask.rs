//! What is asked of the database.

use std::time::Duration;

use trunkline::{
    Db, Result,
    postgres::{Params, Rows, Statement},
};

use crate::schema::in_schema;

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/metrics/", $name, ".sql"))
    };
}

/// A queue: its name, whether it is paused, the rows it ever had.
pub type Queue = (String, bool, Option<i64>);

/// A table of a queue: the queue, which of its tables; bytes of the heap, of TOAST, of the indexes; dead rows.
pub type Store = (String, String, i64, i64, i64, i64);

/// Who holds the horizon back: what it is, for how many seconds, for how many transactions.
pub type Holder = (String, Option<f64>, i64);

/// What is asked about the database as a whole.
#[derive(Debug, Clone)]
pub struct Database {
    pub schema_version: i32,
    /// How full, from 0 to 1.
    pub notifications: f64,
    pub hidden_sessions: i64,
    pub holders: Vec<Holder>,
}

/// The counts of a queue.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Messages: due, delayed, leased, to be retried, dead, archived.
    pub messages: [i64; 6],
    /// Rows of those that are neither dead nor archived.
    pub rows: i64,
    /// In seconds.
    pub oldest_due: f64,
    /// In seconds; a queue with keys has no floor of its own.
    pub floor_lag: Option<f64>,
    /// How long the server counted.
    pub took: Duration,
}

impl Counts {
    /// Messages that wait or are leased.
    pub fn depth(&self) -> i64 {
        self.messages[..4].iter().sum()
    }
}

type Counted = (i64, i64, i64, i64, i64, i64, i64, f64, Option<f64>, f64);

pub async fn queues(db: &Db) -> Result<Vec<Queue>> {
    run(db, sql!("queues")).await
}

pub async fn stores(db: &Db) -> Result<Vec<Store>> {
    alone(db, sql!("stores"), (), COUNTING).await
}

pub async fn database(db: &Db) -> Result<Database> {
    let (schema_version, notifications, hidden_sessions) = run(db, sql!("database")).await?;
    Ok(Database { schema_version, notifications, hidden_sessions, holders: run(db, sql!("horizon")).await? })
}

pub async fn counts(db: &Db, queue: &str) -> Result<Counts> {
    // A queue's name has no quotes: `[a-z][a-z0-9_.-]*`.
    let text = sql!("counts")
        .replace("{name}", &format!("'{queue}'"))
        .replace("{queue}", &format!("\"queue_{queue}\""))
        .replace("{dead}", &format!("\"dead_{queue}\""))
        .replace("{archive}", &format!("\"archive_{queue}\""));
    let counted: Counted = alone(db, &text, (), COUNTING).await?;
    let (due, delayed, leased, to_retry, dead, archived, rows, oldest_due, floor_lag, took) = counted;
    let took = Duration::try_from_secs_f64(took).unwrap_or_default(); // a clock that was set back
    Ok(Counts { messages: [due, delayed, leased, to_retry, dead, archived], rows, oldest_due, floor_lag, took })
}

async fn run<R: Rows>(db: &Db, text: &str) -> Result<R> {
    let statement: Statement<(), R> = Statement::of(in_schema(text, db.schema_name()));
    db.run_in_catalog(&statement, ()).await
}

/// How long a look may take.
const COUNTING: &str = "10min";

/// On a connection of its own: nobody's statement waits behind it. Ends with an error after so long.
pub async fn alone<P: Params, R: Rows>(db: &Db, text: &str, params: P, most: &str) -> Result<R> {
    let transaction = db.begin_with("isolation level read committed, read only").await?;
    let alone: Statement<(&str,), ()> = Statement::new(sql!("alone"));
    drop(transaction.send(&alone, (most,)).await?); // its answer comes with the next
    let statement: Statement<P, R> = Statement::of(in_schema(text, db.schema_name()));
    let answer = transaction.run(&statement, params).await?;
    transaction.commit().await?;
    Ok(answer)
}
