//! An error of a consumer's work reaches the caller and the hooks as a value.

use std::{
    num::ParseIntError,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::timeout;
use trunkline::{Consumer, Error, Failure, Settings, Wait, postgres::Statement};

use crate::fixture::{Ids, Place, SOON, place};

/// Works on one message as `work` specifies for its payload, and returns the error of the call.
async fn error_of<E: Into<Failure> + Send + 'static>(
    consumer: &mut Consumer<String>,
    work: impl Fn(&str) -> Result<(), E> + Send + Sync,
) -> Error {
    let failing = consumer.take_with(1, |_, messages| {
        let outcome = work(&messages[0].payload);
        Box::pin(std::future::ready(outcome)) as trunkline::Work<'_, (), E>
    });
    timeout(SOON, failing).await.expect("in time").expect_err("it fails for good")
}

#[tokio::test(flavor = "multi_thread")]
async fn works_error_reaches_the_caller_and_the_hooks_as_a_value() {
    let Place { queue, db: _db, .. } = place::<String>(Settings::new("text").max_attempts(2)).await;
    let ids = queue.enqueue_many(["x".to_owned()]).await.expect("enqueued").ids();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = seen.clone();
    let mut consumer =
        queue.consumer(Wait::Adaptive).retry_after(Duration::ZERO).after_attempt(move |lease, outcome| {
            let kind = outcome.err().and_then(Failure::downcast_ref::<ParseIntError>).map(ToString::to_string);
            record.lock().expect("no panic").push((lease.id, kind));
        });
    let error = error_of(&mut consumer, |payload| payload.parse::<i64>().map(drop)).await;
    assert!(error.is_work_failed() && !error.is_outcome_unknown() && !error.is_closed(), "{error}");
    let text = format!(
        "the work on message {} of queue \"q\" failed, and the message is a dead letter now: invalid digit found in string",
        ids[0]
    );
    assert_eq!(error.to_string(), text);
    let parse = error.downcast_ref::<ParseIntError>().expect("the work's own error");
    assert_eq!(parse.kind(), &std::num::IntErrorKind::InvalidDigit);
    assert!(error.downcast_ref::<std::fmt::Error>().is_none());
    let kind = Some("invalid digit found in string".to_owned());
    assert_eq!(*seen.lock().expect("no panic"), [(ids[0], kind.clone()), (ids[0], kind)], "after each attempt");
    let dead = queue.dead_letters(0, 9).await.expect("read");
    assert_eq!((dead.len(), dead[0].attempt), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn work_decides_about_its_message_like_a_handler() {
    let Place { queue, sql, db: _db, .. } = place::<String>(Settings::new("text").max_attempts(9)).await;
    queue.enqueue_many(["later".to_owned(), "never".to_owned()]).await.expect("enqueued");
    let mut consumer = queue.consumer(Wait::Adaptive);
    let error = error_of(&mut consumer, |payload| {
        Err::<(), _>(match payload {
            "later" => Failure::retry_after(Duration::from_secs(3600), "at night"),
            _ => Failure::dead("for good"),
        })
    });
    let error = error.await;
    assert!(error.is_work_failed() && error.to_string().ends_with("for good"), "{error}");
    let dead = queue.dead_letters(0, 9).await.expect("read");
    assert_eq!(dead.iter().map(|dead| (&*dead.payload, dead.attempt)).collect::<Vec<_>>(), [("never", 1)]);
    let waits =
        "select attempt, error, round(extract(epoch from due_at - clock_timestamp()) / 60)::int from trunkline.queue_q";
    let row = sql.query_one(waits, &[]).await.expect("it waits");
    assert_eq!((row.get(0), row.get(1), row.get(2)), (1, "at night", 60));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_error_at_the_commit_is_the_works_error() {
    let Place { queue, sql, db: _db, .. } = place::<String>(Settings::new("text").max_attempts(1)).await;
    let tables = "create table whole (id int8 primary key);
                  create table parts (id int8 references whole deferrable initially deferred)";
    sql.batch_execute(tables).await.expect("created");
    queue.enqueue("x".to_owned()).await.expect("enqueued");
    let mut consumer = queue.consumer(Wait::Adaptive);
    let work = consumer.take_with(1, |transaction, _| {
        Box::pin(async move {
            transaction.run(&Statement::<_, u64>::new("insert into parts values ($1)"), (7_i64,)).await.map(drop)
        })
    });
    let error = timeout(SOON, work).await.expect("in time").expect_err("there is no such whole");
    assert!(error.is_work_failed(), "{error}");
    let code = error.downcast_ref::<Error>().and_then(Error::sqlstate).map(tokio_postgres::error::SqlState::code);
    assert_eq!(code, Some("23503"));
}
