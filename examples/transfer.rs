//! Exactly once: the transaction that writes a message's effect also acknowledges the message, so
//! both happen or neither.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use trunkline::{Attempt, Db, Failure, Json, Message, Result, RetryPolicy, Settings, Worker, postgres::Statement};

#[derive(Debug, Serialize, Deserialize)]
struct Transfer {
    from: i32,
    to: i32,
    amount: i64,
}

static TABLE: Statement<(), ()> =
    Statement::new("create table account (id int primary key, balance bigint check (balance >= 0))");
static OPEN: Statement<(i32, i64), u64> = Statement::new("insert into account values ($1, $2)");
static MOVE: Statement<(i32, i64), u64> = Statement::new("update account set balance = balance + $2 where id = $1");
static BALANCES: Statement<(), Vec<(i64,)>> = Statement::new("select balance from account order by id");

/// Moves 10 from account 1 to account 2, fifty times. Half of the transfers succeed only at the
/// second attempt. Returns both balances.
pub async fn run(url: &str) -> Result<Vec<i64>> {
    let db = Db::connect(url).await?;
    db.run(&TABLE, ()).await?;
    db.run_many(&OPEN, [(1, 500), (2, 0)]).await?;
    db.migrate().await?;
    db.create_queue("transfers", &Settings::of::<Json<Transfer>>()).await?;
    let transfers = db.queue::<Json<Transfer>>("transfers").await?;
    let fifty: Vec<_> = (0..50).map(|_| Json(Transfer { from: 1, to: 2, amount: 10 })).collect();
    transfers.enqueue_many(&fifty).await?;

    let worker = Worker::with_attempt(transfers, transfer).retry(RetryPolicy::fixed(Duration::ZERO));
    worker.concurrency(8).drain().await?; // returns when nothing is due; a long-running program calls `run`
    Ok(db.run(&BALANCES, ()).await?.into_iter().map(|(balance,)| balance).collect())
}

async fn transfer(message: Message<Json<Transfer>>, attempt: Attempt<Json<Transfer>>) -> Result<(), Failure> {
    let Transfer { from, to, amount } = message.payload.0;
    let transaction = attempt.transaction().await?; // includes the acknowledgement; slow work should precede this line
    transaction.send(&MOVE, (from, -amount)).await?;
    if message.id % 2 == 0 && message.attempts() == 1 {
        return Err(Failure::retry("half way")); // rolls back, and the worker tries again
    }
    transaction.send(&MOVE, (to, amount)).await?;
    Ok(transaction.commit().await?) // both updates and the commit are one round trip
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = trunkline_embedded::Cluster::temporary().start()?;
    assert_eq!(run(&cluster.url("postgres")).await?, [0, 500]);
    Ok(())
}
