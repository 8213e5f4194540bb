//! A pipelined view sends a loop of statements in one round trip.

use trunkline::postgres::compat::{Client, NoTls, connect, error::SqlState};

use crate::{
    fixture::{database, through},
    round_trips::distance::Distance,
};

async fn far_away() -> (Distance, Client) {
    let distance = Distance::open().await;
    let url = through(&database().await, &format!("host=127.0.0.1 port={}", distance.port));
    let (client, connection) = connect(&url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    client.batch_execute("create temp table t (n int unique)").await.expect("created");
    (distance, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_changed_line_turns_a_loop_into_one_round_trip() {
    let (distance, mut client) = far_away().await;
    let insert = client.prepare("insert into t values ($1)").await.expect("prepared");
    let (turns, ()) = distance
        .turns(async {
            for n in 0..3_i32 {
                client.execute(&insert, &[&n]).await.expect("inserted");
            }
        })
        .await;
    assert_eq!(turns, 3, "or else the rest proves nothing");
    let (turns, ()) = distance
        .turns(async {
            let client = client.pipelined();
            for n in 3..100_i32 {
                client.execute(&insert, &[&n]).await.expect("queued");
            }
            client.finish().await.expect("inserted");
        })
        .await;
    assert_eq!(turns, 1);
    let get = client.prepare("select n from t where n = $1").await.expect("prepared");
    let transaction = client.transaction().await.expect("begun");
    let (turns, sum) = distance
        .turns(async {
            let (pipelined, mut answers, mut sum) = (transaction.pipelined(), Vec::new(), 0);
            for n in 0..100_i32 {
                answers.push(pipelined.query_one(&get, &[&n]).await.expect("queued"));
            }
            for answer in answers {
                sum += answer.await.expect("read").get::<_, i32>(0);
            }
            sum
        })
        .await;
    assert_eq!((turns, sum), (1, (0..100).sum()));
    transaction.commit().await.expect("committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_statements_take_effect_together_or_not_at_all() {
    let (_distance, client) = far_away().await;
    let pipelined = client.pipelined();
    let first = pipelined.execute("insert into t values ($1)", &[&1_i32]).await.expect("queued");
    let second = pipelined.execute("insert into t values ($1)", &[&1_i32]).await.expect("queued");
    let none = pipelined.query_opt("select n from t where n = $1", &[&7_i32]).await.expect("queued");
    let error = pipelined.finish().await.expect_err("unique");
    assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
    for error in [first.await.err(), second.await.err(), none.await.err()] {
        assert_eq!(error.expect("all fail together").code(), Some(&SqlState::UNIQUE_VIOLATION));
    }
    pipelined.finish().await.expect("nothing is left");
    let error = pipelined.execute("insert into t values ($1)", &[]).await.expect_err("one parameter");
    assert_eq!(error.to_string(), "expected 1 parameters but got 0");
    let rows = pipelined.query("select n from t", &[]).await.expect("the queue is usable");
    assert!(rows.await.expect("read").is_empty(), "nothing was inserted");
    drop(pipelined.execute("insert into t values ($1)", &[&9_i32]).await.expect("queued"));
    drop(pipelined);
    assert!(client.query("select n from t", &[]).await.expect("read").is_empty(), "what was not sent is discarded");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_statement_is_closed_after_its_queued_uses() {
    let (_distance, mut client) = far_away().await;
    let open = "select count(*) from pg_prepared_statements where name like 'c%'";
    let insert = client.prepare("insert into t values ($1)").await.expect("prepared");
    let count = client.prepare("select count(*) from t").await.expect("prepared");
    let pipelined = client.pipelined();
    for n in 0..3_i32 {
        drop(pipelined.execute(&insert, &[&n]).await.expect("queued"));
    }
    drop(insert);
    let counted = pipelined.query_one(&count, &[]).await.expect("queued");
    drop(count);
    pipelined.finish().await.expect("the statements are still there");
    assert_eq!(counted.await.expect("read").get::<_, i64>(0), 3);
    assert_eq!(client.query_one(open, &[]).await.expect("read").get::<_, i64>(0), 0, "both are closed now");

    let transaction = client.transaction().await.expect("begun");
    let insert = transaction.prepare("insert into t values ($1)").await.expect("prepared");
    let pipelined = transaction.pipelined();
    drop(pipelined.execute(&insert, &[&3_i32]).await.expect("queued"));
    drop(insert);
    let unsent = pipelined.query("select n from t", &[]).await.expect("queued");
    assert_eq!(unsent.await.expect("the reply sends both").len(), 4);
    let insert = transaction.prepare("insert into t values ($1)").await.expect("prepared");
    let discarded = transaction.pipelined();
    drop(discarded.execute(&insert, &[&4_i32]).await.expect("queued"));
    drop((insert, discarded));
    assert_eq!(transaction.query_one(open, &[]).await.expect("read").get::<_, i64>(0), 0, "what is discarded, too");
    drop(pipelined);
    transaction.commit().await.expect("committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn statement_of_a_dropped_view_is_not_sent_after_its_transaction() {
    let (_distance, mut client) = far_away().await;
    let transaction = client.transaction().await.expect("begun");
    let pipelined = transaction.pipelined();
    let answer = pipelined.execute("insert into t values ($1)", &[&1_i32]).await.expect("queued");
    drop(pipelined);
    transaction.rollback().await.expect("rolled back");
    let error = answer.await.expect_err("it was not sent").to_string();
    assert!(error.contains("view was dropped"), "{error}");
    assert!(client.query("select n from t", &[]).await.expect("read").is_empty(), "nothing was inserted");
}
