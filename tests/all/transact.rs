//! Work in a transaction runs again if the server ends the transaction because of other sessions.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU32, Ordering},
};

use tokio::{
    sync::Barrier,
    task::{JoinHandle, JoinSet},
};
use tokio_postgres::error::SqlState;
use trunkline::{Db, Error, Settings, postgres::Statement};

use crate::{
    fixture::{Place, place},
    statements::table,
};

type Nothing = Statement<(), ()>;

const SERIALIZABLE: &str = "isolation level serializable";

static INSERT: Statement<(i64,), u64> = Statement::new("insert into t values ($1::int8)");
static COUNT: Statement<(), (i64,)> = Statement::new("select count(*) from t");
static ALL: Statement<(), Vec<(i64,)>> = Statement::new("select n::int8 from t order by n");
static ADD: Statement<(i64,), u64> = Statement::new("update t set n = n + 10 where n % 10 = $1::int8");
static CONFLICT: Nothing = Statement::new("do $$ begin raise exception using errcode = '40001'; end $$");

/// A trigger that acts at the commit: it reports a conflict for 1 and 2, and ends the connection
/// for 100.
const AT_COMMIT: [&str; 2] = [
    "create function at_commit() returns trigger language plpgsql as $$ begin
        if new.n < 3 then raise exception using errcode = '40001'; end if;
        if new.n = 100 then perform pg_terminate_backend(pg_backend_pid()), pg_sleep(60); end if;
        return new;
    end $$",
    "create constraint trigger at_commit after insert on t deferrable initially deferred
        for each row execute function at_commit()",
];

/// The error type of a caller.
#[derive(Debug)]
enum Refused {
    Full(i64),
    Database(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

async fn all(db: &Db) -> Vec<i64> {
    db.run(&ALL, ()).await.expect("read").into_iter().map(|(n,)| n).collect()
}

/// Counts attempts, and makes the first attempts of two tasks meet.
struct Meeting {
    attempts: AtomicU32,
    barrier: Barrier,
}

impl Meeting {
    fn new() -> Arc<Self> {
        Arc::new(Self { attempts: AtomicU32::new(0), barrier: Barrier::new(2) })
    }

    /// Waits for the other task in the first two attempts. Each task makes one of them.
    async fn meet(&self) {
        if self.attempts.fetch_add(1, Ordering::Relaxed) < 2 {
            self.barrier.wait().await;
        }
    }

    fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_cannot_be_serialized_run_again() {
    let (db, meeting, mut tasks) = (table().await, Meeting::new(), JoinSet::new());
    for _ in 0..2 {
        let (db, meeting) = (db.clone(), meeting.clone());
        tasks.spawn(async move {
            let meeting = &meeting;
            db.transact(SERIALIZABLE, |transaction| async move {
                let (count,) = transaction.run(&COUNT, ()).await?;
                meeting.meet().await;
                transaction.run(&INSERT, (count,)).await?;
                Ok::<_, Error>(count)
            })
            .await
        });
    }
    let mut counts: Vec<i64> = tasks.join_all().await.into_iter().map(|count| count.expect("committed")).collect();
    counts.sort_unstable();
    assert_eq!((counts, all(&db).await), (vec![0, 1], vec![0, 1]));
    assert!(meeting.attempts() > 2, "{} attempts", meeting.attempts());
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_lock_each_other_run_again() {
    let (db, meeting) = (table().await, Meeting::new());
    for n in [1, 2] {
        db.run(&INSERT, (n,)).await.expect("inserted");
    }
    let task = |first: i64, second: i64| -> JoinHandle<Result<(), Error>> {
        let (db, meeting) = (db.clone(), meeting.clone());
        tokio::spawn(async move {
            let meeting = &meeting;
            db.transact("", |transaction| async move {
                transaction.run(&ADD, (first,)).await?;
                meeting.meet().await;
                transaction.send(&ADD, (second,)).await.map(drop)
            })
            .await
        })
    };
    let (one, other) = tokio::join!(task(1, 2), task(2, 1));
    one.expect("no panic").expect("committed");
    other.expect("no panic").expect("committed");
    assert_eq!(all(&db).await, [21, 22]);
    assert!(meeting.attempts() > 2, "{} attempts", meeting.attempts());
}

#[tokio::test]
async fn error_of_the_work_passes_unchanged_and_is_not_repeated() {
    let (db, attempts) = (table().await, &AtomicI64::new(0));
    let refused = db.transact(SERIALIZABLE, |transaction| async move {
        attempts.fetch_add(1, Ordering::Relaxed);
        transaction.run(&INSERT, (1,)).await?;
        let (count,) = transaction.run(&COUNT, ()).await?;
        if count == 1 { Err(Refused::Full(count)) } else { Ok(count) }
    });
    assert!(matches!(refused.await, Err(Refused::Full(1))));
    let twice = db.transact("", |transaction| async move {
        attempts.fetch_add(1, Ordering::Relaxed);
        transaction.run(&INSERT, (1,)).await?;
        transaction.run(&INSERT, (1,)).await?;
        Ok::<_, Refused>(())
    });
    match twice.await {
        Err(Refused::Database(error)) => assert_eq!(error.sqlstate(), Some(&SqlState::UNIQUE_VIOLATION)),
        other => panic!("{other:?}"),
    }
    assert_eq!((attempts.load(Ordering::Relaxed), all(&db).await), (2, vec![]));
    let value = db.transact("read only", |transaction| async move { transaction.run(&COUNT, ()).await }).await;
    assert_eq!(value.expect("committed"), (0,));
}

#[tokio::test]
async fn work_that_always_fails_runs_ten_times() {
    let (db, attempts) = (table().await, &AtomicI64::new(0));
    let failed = db.transact("", |transaction| async move {
        let attempt = attempts.fetch_add(1, Ordering::Relaxed) + 1;
        transaction.send(&INSERT, (attempt,)).await?;
        transaction.send(&CONFLICT, ()).await.map(drop) // does not await the reply, so the commit returns the error
    });
    let error: Error = failed.await.expect_err("it always fails");
    assert_eq!(error.sqlstate(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
    let failed = db.transact("", |transaction| async move {
        let attempt = attempts.fetch_add(1, Ordering::Relaxed) + 1;
        // Replaces the database's error by an error of the caller. The work still runs again, and
        // the call returns the error of the last attempt.
        transaction.run(&CONFLICT, ()).await.map_err(|_| Refused::Full(attempt))
    });
    assert!(matches!(failed.await, Err(Refused::Full(20))));
    assert_eq!((attempts.load(Ordering::Relaxed), all(&db).await), (20, vec![]));
}

#[tokio::test]
async fn a_commit_is_repeated_unless_its_outcome_is_unknown() {
    let (db, attempts) = (table().await, &AtomicI64::new(0));
    for text in AT_COMMIT {
        db.run(&Nothing::new(text), ()).await.expect("created");
    }
    let committed = db.transact("", |transaction| async move {
        let attempt = attempts.fetch_add(1, Ordering::Relaxed) + 1;
        transaction.run(&INSERT, (attempt,)).await
    });
    let inserted: Result<u64, Error> = committed.await;
    assert_eq!(inserted.expect("committed"), 1);
    assert_eq!((attempts.load(Ordering::Relaxed), all(&db).await), (3, vec![3]));
    let lost = db.transact("", |transaction| async move {
        attempts.fetch_add(1, Ordering::Relaxed);
        transaction.run(&INSERT, (100,)).await
    });
    let error: Error = lost.await.expect_err("the connection ended");
    assert!(error.is_outcome_unknown(), "{error}");
    assert_eq!((attempts.load(Ordering::Relaxed), all(&db).await), (4, vec![3]));
}

#[tokio::test(flavor = "multi_thread")]
async fn work_enqueues_in_its_transaction() {
    let Place { queue, db, .. } = place::<i64>(Settings::new("int8")).await;
    let queue = &queue;
    let work = db.transact("", |transaction| async move { queue.enqueue_in(&transaction, 7_i64).await });
    assert!(work.await.expect("committed").is_new());
    assert_eq!(queue.take(1).await.expect("taken")[0].payload, 7);
}

/// The connection of a transaction that has ended belongs to the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_clone_of_an_ended_transaction_does_not_reach_the_next_one() {
    let db = table().await;
    let kept = db.transact("", |transaction| async move {
        transaction.run(&INSERT, (1,)).await?;
        Ok::<_, Error>(transaction)
    });
    let kept = kept.await.expect("committed");
    let next = db.begin().await.expect("begun");
    next.run(&INSERT, (2,)).await.expect("inserted");
    let error = kept.run(&Nothing::new("select * from nowhere"), ()).await.expect_err("ended").to_string();
    assert!(error.contains("the transaction has ended"), "{error}");
    next.commit().await.expect("undisturbed");
    assert_eq!(all(&db).await, [1, 2]);
}
