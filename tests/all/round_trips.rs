//! Everything that is sent before the first await takes a single round trip, regardless of the
//! amount.

pub mod distance;

use futures_util::future::join_all;
use trunkline::{
    Db, Lease, Message, Queue, Settings,
    postgres::{Insert, Statement},
};

use self::distance::Distance;
use crate::fixture::{database, through};

static INSERT: Statement<(i32, &str), u64> = Statement::new("insert into t values ($1, $2)");
static NUMBER: Statement<(i32,), (i32,)> = Statement::new("select $1::int4");
static ROWS: Insert<(i32, &str)> = Insert::into("t", &["n", "word"]);
static COPY: Statement<(), u64> = Statement::new("copy t from stdin");

/// Creates a database behind a delay, with a table and a queue.
async fn far_away() -> (Distance, Db, Queue<i64>) {
    let distance = Distance::open().await;
    let url = database().await;
    let url = through(&url, &format!("host=127.0.0.1 port={} sslmode=disable", distance.port));
    let db = Db::connect(&url).await.expect("connected");
    let table = Statement::<(), ()>::new("create table t (n int, word text)");
    db.run(&table, ()).await.expect("created");
    db.create_queue("q", &Settings::new("int8").max_batch(8)).await.expect("created");
    let queue = db.queue("q").await.expect("opened");
    (distance, db, queue)
}

/// Runs twice without delay, so that connections are open and statements are prepared. Then takes
/// the minimum of five attempts, because background work can only add round trips.
async fn one_round_trip<S>(what: &str, distance: &Distance, before: impl AsyncFn() -> S, act: impl AsyncFn(S)) {
    for _ in 0..2 {
        act(before().await).await;
    }
    let mut fewest = usize::MAX;
    for _ in 0..5 {
        let ready = before().await;
        let (turns, ()) = distance.turns(act(ready)).await;
        fewest = fewest.min(turns);
        if fewest == 1 {
            return;
        }
    }
    assert_eq!(fewest, 1, "round trips of {what}");
}

async fn nothing() {}

/// Leases 32 of 64 messages. The other messages stay due.
async fn leased(queue: &Queue<i64>) -> Vec<Lease> {
    queue.enqueue_many(&(0..64).collect::<Vec<i64>>()).await.expect("enqueued");
    let leased = queue.lease(32).await.expect("leased");
    assert_eq!(leased.len(), 32);
    leased.iter().map(Message::lease).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_questions_after_each_other_are_two_round_trips() {
    let (distance, db, _queue) = far_away().await;
    db.run(&NUMBER, (0,)).await.expect("prepared");
    let (turns, ()) = distance
        .turns(async {
            db.run(&NUMBER, (1,)).await.expect("answered");
            db.run(&NUMBER, (2,)).await.expect("answered");
        })
        .await;
    assert_eq!(turns, 2, "or else the others here prove nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_statements_rows_or_a_copy_are_one_round_trip() {
    let (distance, db, _queue) = far_away().await;
    one_round_trip("run_many", &distance, nothing, async |()| {
        let inserted = db.run_many(&INSERT, (0..100).map(|n| (n, "word"))).await;
        assert_eq!(inserted.expect("inserted"), [1; 100]);
    })
    .await;
    one_round_trip("run, by many callers", &distance, nothing, async |()| {
        for (n, answer) in join_all((0..100).map(|n| db.run(&NUMBER, (n,)))).await.into_iter().enumerate() {
            assert_eq!(answer.expect("answered"), (n as i32,));
        }
    })
    .await;
    one_round_trip("insert_many", &distance, nothing, async |()| {
        let inserted = db.insert_many(&ROWS, (0..5000).map(|n| (n, "word"))).await;
        assert_eq!(inserted.expect("inserted"), 5000);
    })
    .await;
    one_round_trip("copy_in", &distance, nothing, async |()| {
        assert_eq!(db.copy_in(&COPY, "1\tone\n".repeat(5000).as_bytes()).await.expect("copied"), 5000);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_one_round_trip_in_chunks_of_any_size() {
    let (distance, db, _queue) = far_away().await;
    let rows = Statement::<(), Vec<(i32, String)>>::new("select n, 'word' from generate_series(1, 1000) n");
    for chunk in [1, 10, 100, 5000] {
        let transaction = db.begin().await.expect("begun");
        transaction.run(&NUMBER, (1,)).await.expect("begun");
        one_round_trip(&format!("chunks of {chunk}"), &distance, nothing, async |()| {
            let (mut stream, mut seen) = (transaction.stream(&rows, (), chunk).await.expect("sent"), 0);
            while let Some(rows) = stream.next_chunk().await.expect("read") {
                seen += rows.len();
            }
            assert_eq!(seen, 1000);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_and_its_commit_are_one_round_trip() {
    let (distance, db, _queue) = far_away().await;
    one_round_trip("100 statements and a commit", &distance, nothing, async |()| {
        let transaction = db.begin().await.expect("begun");
        for n in 0..100 {
            transaction.send(&INSERT, (n, "word")).await.expect("sent");
        }
        transaction.commit().await.expect("committed");
    })
    .await;
    // Sends more than the send buffer holds, so that the statements leave in several groups.
    let word = "word".repeat(1000);
    one_round_trip("100 large statements and a commit", &distance, nothing, async |()| {
        let transaction = db.begin().await.expect("begun");
        for n in 0..100 {
            transaction.send(&INSERT, (n, &word)).await.expect("sent");
        }
        transaction.commit().await.expect("committed");
    })
    .await;
    one_round_trip("rows, a copy and a commit", &distance, nothing, async |()| {
        let transaction = db.begin().await.expect("begun");
        let rows = transaction.insert_many(&ROWS, (0..10).map(|n| (n, "word"))).await.expect("sent");
        let copied = transaction.copy_in(&COPY, b"1\tone\n").await.expect("sent");
        transaction.commit().await.expect("committed");
        assert_eq!((rows.await.expect("inserted"), copied.await.expect("copied")), (10, 1));
    })
    .await;
}

/// The second group of a transaction is sent before the reply to `begin`. The library also keeps
/// the description of the statement for the next transaction.
#[tokio::test(flavor = "multi_thread")]
async fn two_long_transactions_without_prepared_statements_are_two_round_trips() {
    let distance = Distance::open().await;
    let way = format!("host=127.0.0.1 port={} sslmode=disable prepared_statements=off", distance.port);
    let db = Db::connect(&through(&database().await, &way)).await.expect("connected");
    let table = Statement::<(), ()>::new("create table t (n int, word text)");
    db.run(&table, ()).await.expect("created");
    let long = "x".repeat(40 << 10);
    let act = async || {
        let transaction = db.begin().await.expect("begun");
        drop(transaction.send(&INSERT, (1, &*long)).await.expect("sent"));
        let number = transaction.send(&NUMBER, (2,)).await.expect("sent");
        transaction.commit().await.expect("committed");
        assert_eq!(number.await.expect("answered"), (2,));
    };
    act().await;
    let mut fewest = usize::MAX;
    for _ in 0..5 {
        let both = async {
            act().await;
            act().await;
        };
        fewest = fewest.min(distance.turns(both).await.0);
    }
    assert_eq!(fewest, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cycle_of_the_queue_is_one_round_trip() {
    let (distance, db, queue) = far_away().await;
    let leased = async || leased(&queue).await;
    one_round_trip("ack_and_lease", &distance, leased, async |done| {
        let (next, lost) = queue.ack_and_lease(done, 32).await.expect("exchanged");
        assert_eq!((next.len(), lost.len()), (32, 0));
    })
    .await;
    one_round_trip("send_enqueue, send_lease, send_ack and the commit", &distance, leased, async |done| {
        let transaction = db.begin().await.expect("begun");
        let ids = queue.send_enqueue_many(&transaction, &[1, 2, 3]).await.expect("sent");
        let next = queue.send_lease(&transaction, 32).await.expect("sent");
        let acked = queue.send_ack(&transaction, done).await.expect("sent");
        transaction.commit().await.expect("committed");
        acked.await.expect("held");
        assert_eq!((ids.await.expect("enqueued").len(), next.await.expect("leased").len()), (3, 32));
    })
    .await;
}

/// Runs on one thread, so that all callers have joined before the insert starts. Their messages
/// fill eight rows, and one statement inserts these rows. One statement also ends the leases of all
/// callers.
#[tokio::test]
async fn messages_that_gathered_in_several_rows_are_one_round_trip() {
    let (distance, _db, queue) = far_away().await;
    one_round_trip("64 callers of enqueue", &distance, nothing, async |()| {
        let mut ids: Vec<i64> = join_all((0..64).map(|n| queue.enqueue(n)))
            .await
            .into_iter()
            .map(|new| new.expect("enqueued").id())
            .collect();
        ids.dedup_by_key(|id| *id / 1024);
        assert_eq!(ids.len(), 8, "rows");
    })
    .await;
    one_round_trip("enqueue_many", &distance, nothing, async |()| {
        assert_eq!(queue.enqueue_many(&(0..64).collect::<Vec<i64>>()).await.expect("enqueued").len(), 64);
    })
    .await;
    one_round_trip(
        "ack, by many callers",
        &distance,
        async || leased(&queue).await,
        async |done| {
            join_all(done.into_iter().map(|lease| queue.ack([lease]))).await.into_iter().for_each(|acked| {
                acked.expect("held");
            });
        },
    )
    .await;
}
