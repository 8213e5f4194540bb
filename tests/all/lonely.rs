//! A loop that awaits each statement makes the library log advice about sharing round trips.

use futures_util::future::join_all;
use tracing::Level;
use trunkline::{Db, postgres::Statement};

use crate::fixture::{Said, database};

static NUMBER: Statement<(i32,), (i32,)> = Statement::new("select $1::int4");

/// Returns a recorder of the advice.
fn advice() -> Said {
    Said::of(|metadata| *metadata.level() == Level::DEBUG && metadata.target() == "trunkline::postgres::db::lonely")
}

#[tokio::test]
async fn loop_of_lonely_statements_is_advised_once_a_minute() {
    let db = Db::connect(&database().await).await.expect("connected");
    let said = advice();
    let _ear = said.listen();
    for n in 0..100 {
        db.run(&NUMBER, (n,)).await.expect("answered");
    }
    assert!(said.contains("run_many"));
    assert_eq!(said.count(), 1, "100 statements hold three rows");
    let transaction = db.begin().await.expect("begun");
    for n in 0..40 {
        transaction.run(&NUMBER, (n,)).await.expect("answered");
    }
    assert_eq!(said.count(), 1, "all clones and transactions share the minute");
}

#[tokio::test]
async fn statements_of_a_transaction_are_advised_too() {
    let db = Db::connect(&database().await).await.expect("connected");
    let said = advice();
    let _ear = said.listen();
    let transaction = db.begin().await.expect("begun");
    // Tries three times, because the statements may be too slow for a loop on a busy machine.
    let mut turns = 0..3;
    while said.count() == 0 && turns.next().is_some() {
        for n in 0..40 {
            transaction.run(&NUMBER, (n,)).await.expect("answered");
        }
    }
    assert_eq!(said.count(), 1);
}

#[tokio::test]
async fn statements_that_share_round_trips_need_no_advice() {
    let db = Db::connect(&database().await).await.expect("connected");
    let said = advice();
    let _ear = said.listen();
    for n in 0..40 {
        join_all((0..4).map(|_| db.run(&NUMBER, (n,)))).await;
        db.run_many(&NUMBER, (0..4).map(|n| (n,))).await.expect("answered");
    }
    let transaction = db.begin().await.expect("begun");
    for n in 0..40 {
        transaction.send(&NUMBER, (n,)).await.expect("sent");
        transaction.run(&NUMBER, (n,)).await.expect("answered");
    }
    for n in 0..31 {
        db.run(&NUMBER, (n,)).await.expect("answered");
    }
    assert_eq!(said.count(), 0);
}
