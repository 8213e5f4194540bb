//! The rows of a large answer are read as they arrive, in bounded memory.

mod counted;

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use trunkline::{
    Db,
    postgres::{RowStream, Statement, Transaction},
};

use self::counted::Counted;
use crate::fixture::{database, eventually, through};

type Row = (i32, String);

static SERIES: Statement<(i32,), Vec<(i32,)>> = Statement::new("select generate_series(1, $1)");
/// Rows of 1,000 bytes.
static WIDE: Statement<(i32,), Vec<Row>> = Statement::new("select n, repeat('x', 1000) from generate_series(1, $1) n");
static NUMBER: Statement<(i32,), (i32,)> = Statement::new("select $1::int4");
static FAILS: Statement<(), (i32,)> = Statement::new("select 1 / 0");
const SOON: Duration = Duration::from_secs(60);

async fn begun() -> (Db, Transaction) {
    let db = Db::connect(&database().await).await.expect("connected");
    let transaction = db.begin().await.expect("begun");
    (db, transaction)
}

async fn to_the_end(stream: &mut RowStream<Row>) -> usize {
    let mut rows = 0;
    while let Some(chunk) = timeout(SOON, stream.next_chunk()).await.expect("in time").expect("read") {
        rows += chunk.len();
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_reader_keeps_few_rows_in_memory() {
    const ROWS: usize = 1_000_000;
    // The maximum number of bytes that the client accepts while the stream is not read: the window
    // of the stream and the buffers of the sockets.
    const MOST: usize = 32 << 20;
    let counted = Counted::open().await;
    let url = through(&database().await, &format!("host=127.0.0.1 port={} sslmode=disable", counted.port));
    let db = Db::connect(&url).await.expect("connected");
    let transaction = db.begin().await.expect("begun");
    let wide = Statement::<(i32,), Vec<Row>>::new("select n, repeat('x', 100) from generate_series(1, $1) n");
    let mut stream = transaction.stream(&wide, (ROWS as i32,), 100).await.expect("sent");
    let (mut rows, mut read, mut paused) = (0, 0, 0);
    while let Some(chunk) = timeout(SOON, stream.next_chunk()).await.expect("in time").expect("read") {
        assert!(chunk.iter().enumerate().all(|(at, (n, word))| *n as usize == rows + at + 1 && word.len() == 100));
        rows += chunk.len();
        read += chunk.len() * 119;
        if rows % 100_000 == 50_000 {
            counted.until_quiet().await; // the caller pauses until the server waits, too
            assert!(counted.bytes() - read < MOST, "{} bytes were received and {read} read", counted.bytes());
            paused += 1;
        }
    }
    assert_eq!((rows, paused), (ROWS, 10));
    assert!(counted.bytes() >= read, "or else the count proves nothing");
    transaction.commit().await.expect("committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_arrives_while_the_server_makes_the_next() {
    let (_db, transaction) = begun().await;
    // Each row is longer than the server's send buffer of 8 KiB, so the server sends it before it
    // computes the next row.
    let slow = "select n, repeat('x', 9000), pg_sleep(case when n = 3 then 3600 else 0 end)::text from generate_series(1, 3) n";
    let slow = Statement::<(), Vec<(i32, String, String)>>::new(slow);
    let mut stream = transaction.stream(&slow, (), 1).await.expect("sent");
    let row = timeout(SOON, stream.next()).await.expect("before the third row").expect("read");
    assert_eq!(row.expect("a row").0, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_stream_leaves_its_transaction_usable() {
    let (db, transaction) = begun().await;
    for read in [0, 1, 5000] {
        let mut stream = transaction.stream(&WIDE, (10_000_000,), 10).await.expect("sent");
        for _ in 0..read {
            stream.next().await.expect("read").expect("a row");
        }
        drop(stream);
        let answer = timeout(SOON, transaction.run(&NUMBER, (read,))).await.expect("the rest is skipped");
        assert_eq!(answer.expect("answered"), (read,));
    }
    let open = "select count(*) from pg_cursors where statement like '%generate_series%' and statement not like '%pg_cursors%'";
    let open = Statement::<(), (i64,)>::new(open);
    assert_eq!(transaction.run(&open, ()).await.expect("counted"), (0,), "the portals are closed");
    let stream = transaction.stream(&WIDE, (10_000_000,), 10).await.expect("sent");
    timeout(SOON, transaction.commit()).await.expect("no reader is needed").expect("committed");
    drop(stream);
    // The connection serves the next transaction.
    let transaction = db.begin().await.expect("begun");
    assert_eq!(timeout(SOON, transaction.run(&NUMBER, (1,))).await.expect("in time").expect("answered"), (1,));
    transaction.commit().await.expect("committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_transaction_ends_its_unread_stream() {
    let (db, transaction) = begun().await;
    let stream = transaction.stream(&WIDE, (10_000_000,), 10).await.expect("sent");
    drop(transaction);
    drop(stream);
    let running = Statement::<(), (i64,)>::new(
        "select count(*) from pg_stat_activity where datname = current_database() and query like '%repeat%1000%'
         and state <> 'idle' and pid <> pg_backend_pid()",
    );
    eventually("the server has ended it", async || db.run(&running, ()).await.expect("counted") == (0,)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_between_chunks_get_their_answers() {
    let (_db, transaction) = begun().await;
    let mut stream = transaction.stream(&WIDE, (20_000,), 10).await.expect("sent");
    let mut rows = 0;
    while let Some(chunk) = timeout(SOON, stream.next_chunk()).await.expect("in time").expect("read") {
        rows += chunk.len();
        if rows % 1000 == 0 {
            let number = timeout(SOON, transaction.run(&NUMBER, (rows as i32,))).await.expect("no deadlock");
            assert_eq!(number.expect("answered"), (rows as i32,));
        }
    }
    assert_eq!(rows, 20_000);
    transaction.commit().await.expect("committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_a_transaction_are_read_in_any_order() {
    let (_db, transaction) = begun().await;
    let mut first = transaction.stream(&WIDE, (30_000,), 100).await.expect("sent");
    let mut second = transaction.stream(&WIDE, (20_000,), 100).await.expect("sent");
    for _ in 0..50 {
        let one = timeout(SOON, first.next()).await.expect("no deadlock").expect("read").expect("a row");
        let two = timeout(SOON, second.next()).await.expect("no deadlock").expect("read").expect("a row");
        assert_eq!(one, two);
    }
    assert_eq!(to_the_end(&mut second).await, 19_950);
    assert_eq!(to_the_end(&mut first).await, 29_950);
    transaction.commit().await.expect("committed");
}

#[tokio::test]
async fn error_follows_the_rows_before_it() {
    let (db, transaction) = begun().await;
    let by_zero = Statement::<(i32,), Vec<(i32,)>>::new("select n / (100000 - n) from generate_series(1, $1) n");
    let mut stream = transaction.stream(&by_zero, (200_000,), 7).await.expect("sent");
    let mut rows = 0;
    let error = loop {
        match stream.next_chunk().await {
            Ok(chunk) => rows += chunk.expect("it ends with an error").len(),
            Err(error) => break error,
        }
    };
    assert_eq!((rows, error.sqlstate()), (99_999, Some(&SqlState::DIVISION_BY_ZERO)));
    assert!(stream.next().await.is_err(), "the error stays");
    let error = transaction.commit().await.expect_err("the transaction has failed");
    assert_eq!(error.sqlstate(), Some(&SqlState::DIVISION_BY_ZERO));
    // The error of an unread stream becomes the error of the commit.
    let transaction = db.begin().await.expect("begun");
    drop(transaction.stream(&by_zero, (200_000,), 7).await.expect("sent"));
    let error = transaction.run(&NUMBER, (1,)).await.err();
    assert!(error.is_none(), "only the rows that were requested are computed: {error:?}");
    drop(transaction.stream(&FAILS_IN_ROWS, (), 1).await.expect("sent"));
    let error = transaction.commit().await.expect_err("the transaction has failed");
    assert_eq!(error.sqlstate(), Some(&SqlState::DIVISION_BY_ZERO));
}

static FAILS_IN_ROWS: Statement<(), Vec<(i32,)>> = Statement::new("select 1 / 0");

#[tokio::test]
async fn rows_before_another_statements_error_are_read() {
    let (_db, transaction) = begun().await;
    let mut stream = transaction.stream(&SERIES, (1_000_000,), 1000).await.expect("sent");
    assert!(transaction.run(&FAILS, ()).await.is_err());
    let mut rows = 0;
    let error = loop {
        match stream.next_chunk().await {
            Ok(chunk) => rows += chunk.expect("the rest cannot be requested").len(),
            Err(error) => break error,
        }
    };
    assert!((1..1_000_000).contains(&rows), "{rows}");
    assert_eq!(error.sqlstate(), Some(&SqlState::DIVISION_BY_ZERO), "the cause, not its consequence");
}

#[tokio::test]
async fn stream_survives_a_rollback_to_a_later_savepoint() {
    let (_db, transaction) = begun().await;
    let say = async |text: &'static str| transaction.run(&Statement::<(), ()>::new(text), ()).await;
    let mut stream = transaction.stream(&SERIES, (300_000,), 1000).await.expect("sent");
    assert_eq!(stream.next_chunk().await.expect("read").map(|rows| rows.len()), Some(1000));
    say("savepoint s").await.expect("set");
    assert!(transaction.run(&FAILS, ()).await.is_err());
    say("rollback to s").await.expect("rolled back");
    let mut last = 0;
    while let Some((n,)) = stream.next().await.expect("read") {
        last = n;
    }
    assert_eq!(last, 300_000);
    transaction.commit().await.expect("committed");
}

#[tokio::test]
async fn rows_that_arrived_before_the_commit_can_be_read() {
    let (_db, transaction) = begun().await;
    let mut small = transaction.stream(&SERIES, (1000,), 10).await.expect("sent");
    let mut large = transaction.stream(&SERIES, (1_000_000,), 10).await.expect("sent");
    transaction.commit().await.expect("committed");
    for _ in 0..100 {
        assert_eq!(small.next_chunk().await.expect("it had arrived").map(|rows| rows.len()), Some(10));
    }
    assert_eq!(small.next_chunk().await.expect("the end had arrived, too"), None);
    let mut rows = 0;
    let error = loop {
        match large.next_chunk().await {
            Ok(chunk) => rows += chunk.expect("an error follows").len(),
            Err(error) => break error.to_string(),
        }
    };
    assert!((1..1_000_000).contains(&rows) && error.contains("has ended"), "{rows}: {error}");
    assert!(large.next_chunk().await.is_err(), "the error stays");
}

#[tokio::test]
async fn statement_of_any_kind_can_be_read_as_a_stream() {
    let (_db, transaction) = begun().await;
    let say = async |text: &'static str| transaction.run(&Statement::<(), ()>::new(text), ()).await;
    say("create temp table t (n int)").await.expect("created");
    for (text, rows) in [
        ("insert into t select generate_series(1, 100) returning n", 100),
        ("insert into t select generate_series(1, 100)", 0),
        ("with gone as (delete from t returning n) select n from gone", 200),
        ("select n from t", 0),
        ("create temp table u (n int)", 0),
    ] {
        let statement = Statement::<(), Vec<(i32,)>>::new(text);
        let (mut stream, mut seen) = (transaction.stream(&statement, (), 7).await.expect("sent"), 0);
        while let Some(chunk) = stream.next_chunk().await.expect("read") {
            seen += chunk.len();
        }
        assert_eq!(seen, rows, "{text}");
    }
    let explained = Statement::<(), Vec<(String,)>>::new("explain select 1");
    let mut stream = transaction.stream(&explained, (), 1).await.expect("sent");
    assert!(stream.next().await.expect("read").is_some() && stream.next().await.expect("read").is_none());
    let wrong = Statement::<(), Vec<(i64,)>>::new("select generate_series(1, 10)");
    let error = transaction.stream(&wrong, (), 1).await.expect("sent").next().await.expect_err("int4");
    assert!(error.to_string().contains("generate_series"), "{error}");
    transaction.commit().await.expect("the caller's mistake does not harm the transaction");
}
