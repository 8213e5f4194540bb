//! Exactly once: the message is taken in the transaction that writes its effect, so both happen or neither.

use serde::{Deserialize, Serialize};
use trunkline::{Db, Json, Result, Settings, Statement, Wait};

#[derive(Debug, Serialize, Deserialize)]
struct Transfer {
    from: i32,
    to: i32,
    amount: i64,
}

static MOVE: Statement<(i32, i64), u64> = Statement::new("update account set balance = balance + $2 where id = $1");
static BALANCES: Statement<(), Vec<(i64,)>> = Statement::new("select balance from account order by id");

/// Moves 10 from account 1 to account 2, fifty times; returns both balances.
pub async fn run(url: &str) -> Result<Vec<i64>> {
    let db = Db::connect(url).await?;
    let table = "create table account (id int primary key, balance bigint check (balance >= 0))";
    db.run(&Statement::<(), ()>::new(table), ()).await?;
    db.run(&Statement::<(), ()>::new("insert into account values (1, 500), (2, 0)"), ()).await?;

    db.migrate().await?;
    db.create_queue("transfers", &Settings::new("jsonb")).await?;
    let transfers = db.queue::<Json<Transfer>>("transfers").await?;
    let fifty: Vec<_> = (0..50).map(|_| Json(Transfer { from: 1, to: 2, amount: 10 })).collect();
    transfers.enqueue_many(&fifty).await?;

    let mut consumer = transfers.consumer(Wait::default());
    while transfers.stats().await?.messages > 0 {
        consumer
            .exactly_once(8, |transaction, messages| {
                Box::pin(async move {
                    for message in messages {
                        let Transfer { from, to, amount } = message.payload.0;
                        transaction.send(&MOVE, (from, -amount)).await?;
                        transaction.send(&MOVE, (to, amount)).await?;
                    }
                    Ok::<_, trunkline::Error>(()) // all moves and the commit are one round trip
                })
            })
            .await?;
    }
    Ok(db.run(&BALANCES, ()).await?.into_iter().map(|(balance,)| balance).collect())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = trunkline_embedded::Cluster::temporary().start()?;
    let balances = run(&cluster.url("postgres")).await?;
    assert_eq!(balances, [0, 500]);
    println!("balances: {balances:?}");
    Ok(())
}
