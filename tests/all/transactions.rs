//! Tests transactions that send several statements before they wait for an answer.

use std::time::Duration;

use futures_util::FutureExt;
use tokio_postgres::error::SqlState;
use trunkline::{
    Db, Dequeue, Settings, Wait,
    postgres::{Insert, Pending, Statement},
};

use crate::{
    fixture::{connect, database, eventually},
    statements::table,
};

type Nothing = Statement<(), ()>;

static INSERT: Statement<(i32,), u64> = Statement::new("insert into t values ($1)");
static COUNT: Statement<(), (i64,)> = Statement::new("select count(*) from t");
static NUMBER: Statement<(i32,), (i32,)> = Statement::new("select $1::int4");
static ZERO: Statement<(i32,), (i32,)> = Statement::new("select 1 / $1");

async fn count(db: &Db) -> i64 {
    db.run(&COUNT, ()).await.expect("read").0
}

#[tokio::test]
async fn answers_may_be_awaited_in_any_order_or_never() {
    let db = table().await;
    let transaction = db.begin().await.expect("begun");
    let mut pending = Vec::new();
    for n in 0..100 {
        transaction.send(&INSERT, (n,)).await.expect("sent");
        pending.push(transaction.send(&NUMBER, (n,)).await.expect("sent"));
    }
    while let Some(last) = pending.pop() {
        assert_eq!(last.await.expect("answered"), (pending.len() as i32,));
    }
    assert_eq!(count(&db).await, 0, "nothing is committed");
    let late = transaction.send(&COUNT, ()).await.expect("sent");
    transaction.commit().await.expect("committed");
    assert_eq!(late.await.expect("answered before the commit"), (100,));
    assert_eq!(count(&db).await, 100);
}

#[tokio::test]
async fn unawaited_error_appears_at_the_next_answer_and_the_commit() {
    let db = table().await;
    // Prepares the statements in advance, so that the transactions below send nothing else.
    let transaction = db.begin().await.expect("begun");
    transaction.run(&INSERT, (1,)).await.expect("inserted");
    transaction.run(&ZERO, (1,)).await.expect("divided");
    transaction.rollback().await.expect("rolled back");
    for good in [0, 3, 3000] {
        for awaited in [true, false] {
            let transaction = db.begin().await.expect("begun");
            for n in 0..good {
                transaction.send(&INSERT, (n,)).await.expect("sent");
            }
            transaction.send(&ZERO, (0,)).await.expect("sent");
            for n in 0..3000 {
                transaction.send(&INSERT, (10_000 + n,)).await.expect("sent");
            }
            if awaited {
                let error = transaction.run(&COUNT, ()).await.expect_err("an earlier one failed");
                assert_eq!(error.sqlstate(), Some(&SqlState::DIVISION_BY_ZERO), "{error}");
                assert_eq!(error.failed_statement(), Some(good as usize));
                let again = transaction.run(&COUNT, ()).await.expect_err("and still");
                assert_eq!(again.sqlstate(), Some(&SqlState::DIVISION_BY_ZERO), "{again}");
            }
            let error = transaction.commit().await.expect_err("it failed");
            assert_eq!(error.sqlstate(), Some(&SqlState::DIVISION_BY_ZERO), "{error}");
            assert_eq!(error.failed_statement(), Some(good as usize));
            assert_eq!(count(&db).await, 0);
        }
    }
}

#[tokio::test]
async fn every_error_position_is_told() {
    let db = table().await;
    for at in 0..8 {
        let transaction = db.begin().await.expect("begun");
        let mut answers: Vec<Pending<(i32,)>> = Vec::new();
        for n in 0..8 {
            answers.push(transaction.send(&ZERO, (i32::from(n != at),)).await.expect("sent"));
        }
        for answer in answers {
            assert_eq!(answer.await.expect_err("one transaction").failed_statement(), Some(at));
        }
        transaction.rollback().await.expect("rolled back");
    }
    assert_eq!(count(&db).await, 0);
}

#[tokio::test]
async fn a_commit_that_only_rolled_back_is_an_error() {
    let db = table().await;
    let transaction = db.begin().await.expect("begun");
    transaction.run(&INSERT, (1,)).await.expect("inserted");
    let unknown = transaction.run(&Nothing::new("select nothing"), ()).await.expect_err("cannot be prepared");
    assert_eq!(unknown.sqlstate(), Some(&SqlState::UNDEFINED_COLUMN));
    let error = transaction.commit().await.expect_err("the server says ROLLBACK");
    assert_eq!(error.sqlstate(), Some(&SqlState::UNDEFINED_COLUMN), "{error}");
    // A commit that fails itself, because of a deferred constraint, returns its error in the same
    // way.
    let transaction = db.begin().await.expect("begun");
    transaction.run(&INSERT, (1,)).await.expect("inserted");
    db.run(&Nothing::new("create table u (n int unique deferrable initially deferred)"), ()).await.expect("created");
    transaction.send(&Statement::<(), u64>::new("insert into u values (1), (1)"), ()).await.expect("sent");
    let error = transaction.commit().await.expect_err("deferred");
    assert_eq!(error.sqlstate(), Some(&SqlState::UNIQUE_VIOLATION), "{error}");
    assert_eq!(count(&db).await, 0);
}

#[tokio::test]
async fn a_savepoint_brings_a_failed_transaction_back() {
    let db = table().await;
    let transaction = db.begin().await.expect("begun");
    transaction.send(&INSERT, (1,)).await.expect("sent");
    transaction.run(&Nothing::new("savepoint s"), ()).await.expect("set");
    transaction.run(&INSERT, (1,)).await.expect_err("it is there");
    transaction.run(&Nothing::new("rollback to s"), ()).await.expect("and back");
    transaction.send(&INSERT, (2,)).await.expect("sent");
    let error = transaction.run(&ZERO, (0,)).await.expect_err("another");
    assert_eq!(error.sqlstate(), Some(&SqlState::DIVISION_BY_ZERO), "not the error that was undone: {error}");
    transaction.run(&Nothing::new("rollback to s"), ()).await.expect("and back");
    transaction.send(&INSERT, (3,)).await.expect("sent");
    transaction.commit().await.expect("committed");
    assert_eq!(count(&db).await, 2);
    // The way back shares its reply with later statements.
    let transaction = db.begin().await.expect("begun");
    transaction.run(&Nothing::new("savepoint s"), ()).await.expect("set");
    transaction.run(&INSERT, (1,)).await.expect_err("it is there");
    transaction.send(&Nothing::new("rollback to s"), ()).await.expect("sent");
    transaction.send(&ZERO, (0,)).await.expect("sent");
    let error = transaction.commit().await.expect_err("another");
    assert_eq!(error.sqlstate(), Some(&SqlState::DIVISION_BY_ZERO), "not the error that was undone: {error}");
}

#[tokio::test]
async fn transaction_dropped_without_commit_never_happened() {
    let db = table().await;
    for sent in [0, 1, 3000] {
        for awaited in [true, false] {
            let transaction = db.begin().await.expect("begun");
            for n in 0..sent {
                transaction.send(&INSERT, (n,)).await.expect("sent");
            }
            if awaited {
                assert_eq!(transaction.run(&COUNT, ()).await.expect("read"), (i64::from(sent),));
            }
            drop(transaction);
            assert_eq!(count(&db).await, 0);
        }
    }
    let transaction = db.begin().await.expect("begun");
    let unsent = transaction.send(&INSERT, (1,)).await.expect("has its place");
    transaction.rollback().await.expect("rolled back");
    assert!(unsent.await.expect_err("it was never sent").to_string().contains("ended before"));
}

#[tokio::test]
async fn call_dropped_while_it_waits_leaves_everything_in_step() {
    let db = table().await;
    for _ in 0..50 {
        let transaction = db.begin().await.expect("begun");
        let mut one = Box::pin(transaction.run(&INSERT, (1,)));
        let _ = (&mut one).now_or_never(); // after one poll, the statement has been sent, or it is about to be prepared
        drop(one);
        assert_eq!(transaction.run(&NUMBER, (5,)).await.expect("its own answer"), (5,));
        let mut commit = Box::pin(transaction.rollback());
        let _ = (&mut commit).now_or_never();
        drop(commit);
        assert_eq!(db.run(&NUMBER, (6,)).await.expect("its own answer"), (6,));
    }
    let transaction = db.begin().await.expect("begun");
    transaction.send(&INSERT, (7,)).await.expect("sent");
    let mut commit = Box::pin(transaction.commit());
    let _ = (&mut commit).now_or_never();
    drop(commit);
    eventually("a commit that was sent happens", || async { count(&db).await == 1 }).await;
}

#[tokio::test]
async fn connections_of_ended_transactions_are_used_again() {
    let db = table().await;
    let pid = Statement::<(), (i32,)>::new("select pg_backend_pid()");
    let mut pids = Vec::new();
    for ending in 0..12 {
        let transaction = db.begin().await.expect("begun");
        pids.push(transaction.run(&pid, ()).await.expect("read").0);
        match ending % 4 {
            0 => transaction.commit().await.expect("committed"),
            1 => transaction.rollback().await.expect("rolled back"),
            2 => drop(transaction),
            _ => {
                transaction.send(&ZERO, (0,)).await.expect("sent");
                transaction.commit().await.expect_err("failed");
            }
        }
    }
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
    // If a statement is running when its transaction is dropped, the library gives up the
    // connection, so that no other caller waits for the statement.
    let transaction = db.begin().await.expect("begun");
    let slow = Nothing::new("select pg_sleep(60)");
    let mut sleeping = Box::pin(transaction.run(&slow, ()));
    let _ = (&mut sleeping).now_or_never();
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut sleeping).await.is_err(), "it sleeps");
    drop(sleeping);
    drop(transaction);
    let transaction = db.begin().await.expect("begun");
    let other = tokio::time::timeout(Duration::from_secs(10), transaction.run(&pid, ())).await.expect("at once");
    assert_ne!(other.expect("read").0, pids[0]);
    let end = Statement::<(i32,), (bool,)>::new("select pg_terminate_backend($1)");
    db.run(&end, (pids[0],)).await.expect("the sleeper is ended");
}

#[tokio::test]
async fn a_transaction_sees_what_it_made_before() {
    let db = table().await;
    let transaction = db.begin_with("isolation level serializable").await.expect("begun");
    transaction.send(&Nothing::new("create temp table mine (n int)"), ()).await.expect("sent");
    let insert = Statement::<(i32,), u64>::new("insert into mine values ($1)");
    transaction.send(&insert, (1,)).await.expect("prepared behind what it needs");
    let many = transaction.run_many(&insert, (2..50).map(|n| (n,))).await.expect("inserted");
    assert_eq!(many, [1; 48]);
    let mine = Insert::<(i32,)>::into("mine", &["n"]);
    let inserted = transaction.insert_many(&mine, (50..100).map(|n| (n,))).await.expect("sent");
    let copied = transaction.copy_in(&Statement::new("copy mine from stdin"), b"100\n101\n").await.expect("sent");
    let level = Statement::<(), (String,)>::new("show transaction_isolation");
    assert_eq!(transaction.run(&level, ()).await.expect("shown"), ("serializable".into(),));
    assert_eq!((inserted.await.expect("inserted"), copied.await.expect("copied")), (50, 2));
    let sum = Statement::<(), (i64,)>::new("select sum(n) from mine");
    assert_eq!(transaction.run(&sum, ()).await.expect("read"), ((1..=101).sum(),));
    transaction.commit().await.expect("committed");
}

#[tokio::test]
async fn rows_come_whole_in_chunks_or_one_by_one() {
    let db = table().await;
    let series = Statement::<(i32,), Vec<(i32,)>>::new("select generate_series(1, $1)");
    let transaction = db.begin().await.expect("begun");
    for (rows, chunk) in [(0, 10), (1, 10), (10, 10), (1000, 7), (1000, 1), (1000, 5000)] {
        let mut stream = transaction.stream(&series, (rows,), chunk).await.expect("sent");
        let mut seen = 0;
        while let Some(part) = stream.next_chunk().await.expect("read") {
            assert!(!part.is_empty() && part.len() <= chunk);
            assert!(part.iter().map(|(n,)| *n).eq(seen + 1..=seen + part.len() as i32));
            seen += part.len() as i32;
        }
        assert_eq!(seen, rows);
        let mut stream = transaction.stream(&series, (rows,), chunk).await.expect("sent");
        let mut sum = 0;
        while let Some((n,)) = stream.next().await.expect("read") {
            sum += n;
            transaction.send(&INSERT, (n,)).await.expect("statements go between");
        }
        assert_eq!(sum, rows * (rows + 1) / 2);
        transaction.run(&Nothing::new("delete from t"), ()).await.expect("deleted");
    }
    let mut left = transaction.stream(&series, (1_000_000,), 10).await.expect("sent");
    assert_eq!(left.next().await.expect("read"), Some((1,)));
    drop(left);
    let transaction = db.begin().await.expect("begun");
    let by_zero = Statement::<(), Vec<(i32,)>>::new("select 1 / (10 - n) from generate_series(1, 100) n");
    let mut stream = transaction.stream(&by_zero, (), 3).await.expect("sent");
    let mut whole = 0;
    let error = loop {
        match stream.next_chunk().await {
            Ok(part) => whole += part.expect("it ends with an error").len(),
            Err(error) => break error,
        }
    };
    assert_eq!((whole, error.sqlstate()), (9, Some(&SqlState::DIVISION_BY_ZERO)));
    assert!(transaction.commit().await.is_err());
}

#[tokio::test]
async fn the_queues_verbs_run_in_it() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("int8").max_batch(8)).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    queue.enqueue_many(&(0..20).collect::<Vec<i64>>()).await.expect("enqueued");
    let leased = queue.lease(4).await.expect("leased");

    let transaction = db.begin().await.expect("begun");
    let taken = queue.take_in(&transaction, 3).await.expect("taken");
    assert_eq!(taken.iter().map(|message| message.payload).collect::<Vec<_>>(), [4, 5, 6]);
    queue.ack_in(&transaction, &leased[..2]).await.expect("held");
    let id = queue.enqueue_in(&transaction, 100).await.expect("enqueued").id();
    let ids = queue.send_enqueue_many(&transaction, &[101, 102]).await.expect("sent");
    let acked = queue.send_ack(&transaction, &leased[2..3]).await.expect("sent");
    let next = queue.send_lease(&transaction, 2).await.expect("sent");
    assert_eq!(next.await.expect("leased").iter().map(|message| message.payload).collect::<Vec<_>>(), [7, 8]);
    acked.await.expect("held");
    assert_eq!(ids.await.expect("enqueued").len(), 2);
    drop(transaction);
    assert_eq!(queue.stats().await.expect("counted").messages, 20, "nothing happened");

    let transaction = db.begin().await.expect("begun");
    let acked = queue.send_ack(&transaction, &leased).await.expect("sent");
    let ids = queue.send_enqueue_many(&transaction, &[100]).await.expect("sent");
    let next = queue.send_lease(&transaction, 5).await.expect("sent");
    transaction.commit().await.expect("committed");
    acked.await.expect("held");
    assert_eq!(next.await.expect("leased").len(), 5);
    assert!(ids.await.expect("enqueued")[0].id() > id);
    assert_eq!(queue.stats().await.expect("counted").messages, 17);

    let transaction = db.begin().await.expect("begun");
    let lost = queue.send_ack(&transaction, &leased[..1]).await.expect("sent");
    assert_eq!(lost.await.expect_err("it was acknowledged").lost_ids(), [leased[0].id]);
    transaction.rollback().await.expect("rolled back");

    let (next, lost) =
        queue.ack_and_lease(&leased, Dequeue::up_to(3).lease_for(Duration::from_secs(5))).await.expect("exchanged");
    assert_eq!((next.len(), lost.len()), (3, 4), "they are gone already");
    let (more, lost) = queue.ack_and_lease(&next, 100).await.expect("exchanged");
    assert_eq!((more.len(), lost.len()), (9, 0));
    let mut consumer = queue.consumer(Wait::Adaptive);
    let (none, lost) = consumer.ack_and_lease(&more[..8], 0).await.expect("acknowledged");
    assert!(none.is_empty() && lost.is_empty());
    let (next, ()) = tokio::join!(consumer.ack_and_lease(&more[8..], 1), async {
        eventually("it waits", || async { queue.stats().await.expect("counted").messages == 5 }).await;
        queue.enqueue(200).await.expect("enqueued");
    });
    let (next, lost) = next.expect("leased");
    assert_eq!((next[0].payload, lost.len()), (200, 0));
    queue.ack(&next).await.expect("held");
    assert_eq!(queue.stats().await.expect("counted").messages, 5, "those of the transaction");
}

#[tokio::test]
async fn lost_connection_is_unknown_only_if_it_may_have_committed() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    sql.batch_execute("create table t (n int unique, word text)").await.expect("created");
    let end = Statement::<(), (bool,)>::new("select pg_terminate_backend(pg_backend_pid())");
    let transaction = db.begin().await.expect("begun");
    transaction.run(&INSERT, (1,)).await.expect("inserted");
    drop(transaction.send(&end, ()).await.expect("queued")); // sent together with the commit
    let error = transaction.commit().await.expect_err("it is gone");
    assert!(error.is_outcome_unknown() && error.is_closed(), "{error}");
    let transaction = db.begin().await.expect("another connection");
    transaction.run(&INSERT, (1,)).await.expect("inserted");
    transaction.run(&end, ()).await.expect_err("the session ended");
    let error = transaction.commit().await.expect_err("it cannot be sent");
    assert!(!error.is_outcome_unknown() && error.is_closed(), "{error}");
    let transaction = db.begin().await.expect("another connection");
    transaction.run(&INSERT, (2,)).await.expect("inserted");
    transaction.commit().await.expect("committed");
    assert_eq!(count(&db).await, 1);
}
