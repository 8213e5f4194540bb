//! Tests transactions that fail before their first statement has run: nothing may be stored without
//! a transaction.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use trunkline::{
    Db, Settings,
    postgres::{Insert, Statement},
};
use trunkline_embedded::DelayProxy;

use crate::{
    fixture::{Place, cluster, connect, database, place, through},
    statements::table,
};

static INSERT: Statement<(i32,), u64> = Statement::new("insert into t values ($1)");
static COUNT: Statement<(), (i64,)> = Statement::new("select count(*) from t");
static NOWHERE: Statement<(), ()> = Statement::new("select * from nowhere");

#[tokio::test]
async fn modes_that_the_server_refuses_begin_no_transaction() {
    let db = table().await;
    for _ in 0..2 {
        let error = db.begin_with("isolation level serialisable").await.expect_err("a typo");
        assert!(error.to_string().contains("serialisable") && !error.is_outcome_unknown(), "{error}");
        let work = db.transact("read onyl", async |transaction| transaction.run(&INSERT, (1,)).await);
        assert!(work.await.expect_err("another").to_string().contains("onyl"));
    }
    for _ in 0..2 {
        let transaction = db.begin_with("isolation level serializable, read only").await.expect("begun");
        transaction.run(&INSERT, (1,)).await.expect_err("read only");
        transaction.commit().await.expect_err("failed");
    }
    assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (0,));
}

#[tokio::test]
async fn statement_that_cannot_be_prepared_fails_the_transaction_at_any_place() {
    let db = table().await;
    for statements_before in [0, 1] {
        let transaction = db.begin().await.expect("begun");
        for n in 0..statements_before {
            transaction.send(&INSERT, (n,)).await.expect("sent");
        }
        let first = transaction.run(&NOWHERE, ()).await.expect_err("there is no such table").to_string();
        assert!(first.contains("nowhere"), "{first}");
        let rows = Insert::<(i32,)>::into("t", &["n"]);
        assert_eq!(transaction.run(&INSERT, (2,)).await.expect_err("failed").to_string(), first);
        assert!(transaction.insert_many(&rows, [(3,)]).await.is_err() || statements_before > 0);
        assert_eq!(transaction.commit().await.expect_err("failed").to_string(), first);
        // Checks that the next transaction uses the same connection, which the failed transaction
        // left intact.
        let transaction = db.begin().await.expect("begun");
        transaction.run(&NOWHERE, ()).await.expect_err("there is no such table");
        transaction.rollback().await.expect("rolled back");
        assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (0,));
    }
}

#[tokio::test]
async fn copies_by_run_are_refused_and_neighbours_go_on() {
    let Place { db, .. } = place::<i64>(Settings::new("int8")).await;
    let seven = Statement::<(), (i32,)>::new("select 7");
    for text in ["copy pg_class from stdin", "COPY (select 1) TO STDOUT"] {
        let copy = Statement::<(), Vec<(i32,)>>::new(text);
        let (one, refused, other) = tokio::join!(db.run(&seven, ()), db.run(&copy, ()), db.run(&seven, ()));
        let error = refused.expect_err("it is no such statement");
        assert!(error.to_string().contains("copy_in") && !error.is_outcome_unknown(), "{error}");
        assert_eq!((one.expect("read"), other.expect("read")), ((7,), (7,)));
        let transaction = db.begin().await.expect("begun");
        transaction.run(&copy, ()).await.expect_err("nor here");
    }
}

#[tokio::test]
async fn bounds_of_transactions_are_refused_and_change_nothing() {
    let db = table().await;
    let seven = Statement::<(), (i32,)>::new("select 7");
    for text in ["commit", "ROLLBACK", "end", "begin", "start transaction", "prepare transaction 'a'", "/* */ abort"] {
        let bound = Statement::<(), ()>::new(text);
        let transaction = db.begin().await.expect("begun");
        transaction.run(&INSERT, (1,)).await.expect("inserted");
        let error = transaction.run(&bound, ()).await.expect_err("refused");
        assert!(error.to_string().contains("Transaction::commit") && !error.is_outcome_unknown(), "{text}: {error}");
        transaction.rollback().await.expect("it is still open");
        assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (0,), "{text}");
        let (one, refused, other) = tokio::join!(db.run(&seven, ()), db.run(&bound, ()), db.run(&seven, ()));
        assert!(refused.expect_err("refused").to_string().contains("Db::begin"), "{text}");
        assert_eq!((one.expect("read"), other.expect("read")), ((7,), (7,)), "neighbours go on");
    }
    let savepoints = ["savepoint s", "rollback to s", "rollback work to savepoint s"];
    let transaction = db.begin().await.expect("begun");
    for text in savepoints {
        transaction.run(&Statement::<(), ()>::new(text), ()).await.expect("within the transaction");
    }
    transaction.rollback().await.expect("rolled back");
    assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (0,));
}

/// Passes the bytes of each connection on to the server, but replaces its first `begin` with an
/// invalid statement.
async fn spoil_begins(listener: TcpListener, server: DelayProxy) {
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(server.addr()).await.expect("connected");
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
            (client.into_split(), server.into_split());
        tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
        tokio::spawn(async move {
            let (mut bytes, mut is_spoiled) = (vec![0; 1 << 20], false);
            while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
                let at = bytes[..count].windows(6).position(|bytes| bytes == b"begin\0");
                if let Some(at) = at.filter(|_| !is_spoiled) {
                    bytes[at..at + 5].copy_from_slice(b"bogus");
                    is_spoiled = true;
                }
                to_server.write_all(&bytes[..count]).await.expect("sent");
            }
        });
    }
}

#[tokio::test]
async fn nothing_behind_a_begin_that_fails_is_stored_though_it_is_sent_before_the_reply() {
    // more than half of the bytes that a transaction gathers, so that two statements are sent early
    const BYTES: usize = 20 << 10;
    static ADD: Statement<(String,), u64> = Statement::new("insert into texts values ($1)");
    let url = database().await;
    let sql = connect(&url).await;
    sql.batch_execute("create table texts (a text)").await.expect("created");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it has an address").port();
    let server = DelayProxy::start("127.0.0.1:0", cluster(), Duration::ZERO).expect("started");
    tokio::spawn(spoil_begins(listener, server));
    let way = format!("host=127.0.0.1 port={port} sslmode=disable");
    for (texts, is_awaited) in [(5, true), (4, false), (3, true), (2, false)] {
        let db = Db::connect(&through(&url, &way)).await.expect("connected");
        let transaction = db.begin().await.expect("begun");
        let mut pending = Vec::new();
        for _ in 0..texts {
            pending.push(transaction.send(&ADD, ("x".repeat(BYTES),)).await.expect("sent"));
        }
        if is_awaited {
            let error = pending.pop().expect("the last").await.expect_err("begin failed");
            assert!(error.to_string().contains("bogus") && !error.is_outcome_unknown(), "{error}");
        }
        drop(pending);
        let error = transaction.commit().await.expect_err("begin failed");
        assert!(error.to_string().contains("bogus") && !error.is_outcome_unknown(), "{texts}: {error}");
        let stored: i64 = sql.query_one("select count(*) from texts", &[]).await.expect("counted").get(0);
        assert_eq!(stored, 0, "of {texts}");
        let transaction = db.begin().await.expect("begun");
        for _ in 0..texts {
            drop(transaction.send(&ADD, ("x".repeat(BYTES),)).await.expect("sent"));
        }
        transaction.commit().await.expect("this one begins");
        let removed = sql.execute("delete from texts", &[]).await.expect("removed");
        assert_eq!(removed, texts, "a connection is intact after it");
    }
}
