//! Tests takes whose messages no caller receives, and handles whose queue or schema is gone.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use tokio::time::timeout;
use trunkline::{Dequeue, Queue, RetryPolicy, Settings, Wait, Worker, postgres::Statement};

use crate::fixture::{Place, Runs, SOON, dropped_under_way, eventually, move_time, place};

#[tokio::test(flavor = "multi_thread")]
async fn dropped_take_in_makes_the_commit_fail() {
    let Place { queue, db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    let transaction = db.begin().await.expect("begun");
    transaction.run(&Statement::<(), (i32,)>::new("select 1"), ()).await.expect("begun on the server");
    {
        let mut taking = pin!(queue.take_in(&transaction, 1));
        poll_fn(|context| {
            assert!(taking.as_mut().poll(context).is_pending(), "no answer can have come");
            Poll::Ready(())
        })
        .await;
    }
    let error = transaction.commit().await.expect_err("no caller has the message");
    assert!(error.to_string().contains("take again"), "{error}");
    let again = async || queue.take(1).await.expect("taken").len() == 1;
    eventually("the message is back", again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn received_take_in_commits_after_another_call_was_dropped_idle() {
    let Place { queue, db, .. } = place::<i64>(Settings::new("int8")).await;
    let mut consumer = queue.consumer(Wait::Notify);
    let transaction = db.begin().await.expect("begun");
    // Drops a call that waits. No message was due, so the transaction has taken nothing.
    timeout(Duration::from_millis(1), consumer.take_in(&transaction, 1)).await.expect_err("nothing is due");
    queue.enqueue(1).await.expect("enqueued");
    assert_eq!(consumer.take_in(&transaction, 1).await.expect("taken").len(), 1);
    transaction.commit().await.expect("committed");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn take_with_needs_a_number_of_messages() {
    let Place { queue, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    let mut consumer = queue.consumer(Wait::Notify);
    let work = consumer.take_with(0, |_, _| Box::pin(async { Ok::<(), std::io::Error>(()) }));
    let error = timeout(SOON, work).await.expect("at once").expect_err("refused");
    assert!(error.to_string().contains("at least one message"), "{error}");
    assert_eq!(queue.stats().await.expect("counted").messages, 1);
}

/// Takes a message with work whose statement ends the session. If `ignores` is set, the work
/// ignores the statement's error. The outcome is known, and costs no attempt.
async fn session_ends_before_the_commit(ignores: bool) {
    let Place { queue, db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    let mut consumer = queue.consumer(Wait::Notify);
    let end = Statement::<(), (bool,)>::new("select pg_terminate_backend(pg_backend_pid())");
    let work = consumer.take_with(1, |transaction, _| {
        let end = end.clone();
        Box::pin(async move {
            let error = transaction.run(&end, ()).await.expect_err("the session ended");
            if ignores { Ok(()) } else { Err(error) }
        })
    });
    let error = timeout(SOON, work).await.expect("in time").expect_err("the session ended");
    assert!(error.is_closed() && !error.is_outcome_unknown(), "{error}");
    drop(db);
    let message = &consumer.lease(1).await.expect("leased")[0];
    assert_eq!(message.attempt, 1, "no attempt was counted before");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_connection_before_the_commit_is_no_unknown_outcome() {
    session_ends_before_the_commit(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_that_could_not_be_sent_costs_no_attempt() {
    session_ends_before_the_commit(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn longest_poll_is_no_overflow() {
    let Place { queue, .. } = place::<i64>(Settings::new("int8")).await;
    let mut consumer = queue.consumer(Wait::Poll(Duration::MAX));
    let request = || Dequeue::up_to(1).within(Duration::from_millis(1));
    assert!(consumer.lease(request()).await.expect("nothing is due").is_empty());
    queue.enqueue(1).await.expect("enqueued");
    assert_eq!(timeout(SOON, consumer.take(1)).await.expect("in time").expect("taken").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_dropped_schema_miss_their_queue() {
    let Place { queue, db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    let worker = Worker::new(queue.clone(), |_| async { Ok::<(), trunkline::Failure>(()) });
    db.teardown().await.expect("gone");
    let missing = [
        queue.take(1).await.map(drop),
        queue.peek(1).await.map(drop),
        queue.dead_letters(0, 1).await.map(drop),
        queue.archived(0, 1).await.map(drop),
        queue.find(1024).await.map(drop),
        queue.replay_all().await.map(drop),
        queue.prune(Duration::ZERO).await.map(drop),
        queue.cancel(&[1024]).await.map(drop),
        queue.enqueue(2).await.map(drop),
    ];
    for (at, outcome) in missing.into_iter().enumerate() {
        let error = outcome.expect_err("nothing is there");
        assert!(error.is_no_queue(), "{at}: {error}");
    }
    let error = timeout(SOON, worker.run(std::future::pending())).await.expect("it ends").expect_err("no queue");
    assert!(error.is_no_queue(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn take_in_that_cannot_read_its_answer_makes_the_commit_fail() {
    let Place { queue, db, .. } = place::<i64>(Settings::new("int8")).await;
    db.drop_queue("q").await.expect("dropped");
    db.create_queue("q", &Settings::new("text")).await.expect("created");
    let again: Queue<String> = db.queue("q").await.expect("opened");
    again.enqueue("one".to_owned()).await.expect("enqueued");
    let transaction = db.begin().await.expect("begun");
    let error = queue.take_in(&transaction, 1).await.expect_err("the payload is no number");
    assert!(error.is_wrong_type(), "{error}");
    transaction.commit().await.expect_err("no caller has the message");
    let back = async || again.take(1).await.expect("taken").len() == 1;
    eventually("the message is back", back).await;
}

/// The server refuses the message for longer than one task tries to put it back.
#[tokio::test]
async fn taken_message_whose_return_is_refused_comes_back_later() {
    let Place { queue, sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    sql.batch_execute(
        "create sequence public.tries;
         create function public.refuses() returns trigger language plpgsql as
             $$ begin perform nextval('public.tries'); raise exception 'not now'; end $$;
         create trigger refuses before insert on trunkline.queue_q for each row execute function public.refuses()",
    )
    .await
    .expect("created");
    dropped_under_way(&url, &sql, queue.take(1)).await;
    // In small steps: a statement that is under way must not reach its time limit.
    eventually("the last try is refused", async || {
        move_time(Duration::from_secs(1)).await;
        sql.query_one("select last_value >= 7 from public.tries", &[]).await.expect("counted").get(0)
    })
    .await;
    sql.batch_execute("drop trigger refuses on trunkline.queue_q").await.expect("dropped");
    eventually("the message is back", async || !queue.take(1).await.expect("taken").is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_release_is_no_success() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    let functions = "select p.oid::regprocedure::text from pg_proc p where p.proname = 'do_release_q'";
    let release: String = sql.query_one(functions, &[]).await.expect("found").get(0);
    sql.batch_execute(&format!("alter function {release} rename to do_other_q")).await.expect("renamed");
    let worker = Worker::with_attempt(queue.clone(), |_message, attempt| async move {
        attempt.release().await.expect_err("the server has no such function");
        Ok::<(), trunkline::Failure>(()) // the handler ignores the error, and returns `Ok`
    });
    let runs = Runs::start(worker.retry(RetryPolicy::fixed(Duration::from_secs(3600))));
    eventually("the message waits for its retry", async || queue.stats().await.expect("counted").to_retry == 1).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried), (0, 1), "{summary:?}");
}
