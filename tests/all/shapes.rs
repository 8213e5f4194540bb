//! Users change tables and functions. A result with an unexpected shape is an error, not a panic.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;
use trunkline::{Db, Error, Queue, Settings};

use crate::fixture::{Place, SOON, place};

fn is_told(way: &str, error: &Error) {
    assert!(error.to_string().contains("the server's answer does not match the statement"), "{way}: {error}");
    assert!(error.is_outcome_unknown(), "{way}: it may have happened");
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_ends_of_wrong_shape_are_reported_to_every_caller() {
    for (size, told) in [("size bigint", "column \"size\""), ("size int", "-1 messages from 5 on")] {
        let Place { queue, sql, db, .. } = place::<i64>(Settings::new("int8").max_batch(1)).await;
        queue.enqueue_many(&[1, 2, 3, 4, 5, 6]).await.expect("enqueued");
        let leased = queue.lease(6).await.expect("leased");
        let other = format!(
            "drop function trunkline.do_ack_q(bigint[], int[], int[]);
             create function trunkline.do_ack_q(ids bigint[], sizes int[], attempts int[])
             returns table (id bigint, {size}, attempt int) language sql as 'select 5, -1, 1'"
        );
        sql.batch_execute(&other).await.expect("replaced");
        let acks = join_all(leased[..3].iter().map(|message| queue.ack([message])));
        for outcome in timeout(SOON, acks).await.expect("no call waits without an end") {
            let error = outcome.expect_err("another shape");
            is_told("ack", &error);
            assert!(error.to_string().contains(told), "{error}");
        }
        let transaction = db.begin().await.expect("begun");
        is_told("ack_in", &queue.ack_in(&transaction, &leased[3..4]).await.expect_err("another shape"));
        transaction.rollback().await.expect("rolled back");
        let error = queue.ack_and_lease(&leased[4..5], 1).await.expect_err("another shape");
        is_told("ack_and_lease", &error);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_in_another_shape_are_told_to_every_caller() {
    let Place { queue, sql, db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    sql.batch_execute("drop view trunkline.messages_q; alter table trunkline.queue_q alter id type int4")
        .await
        .expect("altered");
    let calls = join_all((0..20).map(|payload| queue.enqueue(payload)));
    for outcome in timeout(SOON, calls).await.expect("no call waits without an end") {
        is_told("enqueue", &outcome.expect_err("another shape"));
    }
    is_told("enqueue_many", &queue.enqueue_many(&[1, 2]).await.expect_err("another shape"));
    let ids = "drop function trunkline.do_batch_q;
               create function trunkline.do_batch_q(payloads int8[], delay interval, metadata jsonb[], due timestamptz)
               returns setof text language sql as $$ select 'x' $$";
    sql.batch_execute(ids).await.expect("replaced");
    let transaction = db.begin().await.expect("begun");
    is_told("enqueue_in", &queue.enqueue_in(&transaction, 1).await.expect_err("another shape"));
    let sent = queue.send_enqueue_many(&transaction, &[1]).await.expect("sent");
    sent.await.expect_err("another shape");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_in_another_shape_is_told() {
    let Place { sql, db, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute("alter table trunkline.version alter version type int8").await.expect("altered");
    is_told("schema_version", &db.schema_version().await.expect_err("another shape"));
    is_told("queue", &db.queue::<i64>("q").await.expect_err("another shape"));
    is_told("migrate", &db.migrate().await.expect_err("another shape"));
}

/// A connection caches statements by their texts. Except for the creation time, the texts for both
/// queues are equal.
#[tokio::test(flavor = "multi_thread")]
async fn recreated_queue_with_another_type_works_through_old_connections() {
    let Place { queue, db, .. } = place::<String>(Settings::new("text")).await;
    cycle(&db, &queue, "seven".to_owned()).await;
    db.drop_queue("q").await.expect("dropped");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let created: Queue<i64> = db.queue("q").await.expect("opened");
    cycle(&db, &created, 7).await;
    let error = queue.enqueue("seven".to_owned()).await.expect_err("texts are none of its numbers");
    assert_eq!(error.sqlstate().map(tokio_postgres::error::SqlState::code), Some("42804"), "{error}");
    assert_eq!(created.stats().await.expect("counted").messages, 0);
}

/// Runs every statement that depends on the payload's type.
async fn cycle<T: trunkline::Payload + Clone + PartialEq + std::fmt::Debug>(db: &Db, queue: &Queue<T>, payload: T) {
    queue.enqueue(payload.clone()).await.expect("enqueued");
    queue.enqueue_many(&vec![payload.clone(); 3]).await.expect("enqueued");
    queue.enqueue_many(&vec![payload.clone(); 3000]).await.expect("enqueued in a transaction");
    let transaction = db.begin().await.expect("begun");
    queue.enqueue_in(&transaction, payload.clone()).await.expect("enqueued");
    transaction.commit().await.expect("committed");
    let leased = queue.lease(2).await.expect("leased");
    queue.retry(&leased[..1], Duration::ZERO, "again").await.expect("held");
    queue.bury(&leased[1..], "dead").await.expect("held");
    assert_eq!(queue.dead_letters(0, 9).await.expect("read")[0].payload, payload);
    assert_eq!(queue.replay_all().await.expect("replayed"), 1);
    assert_eq!(queue.peek(1).await.expect("peeked")[0].payload, payload);
    let taken = queue.take(4000).await.expect("taken");
    assert!(taken.len() == 3005 && taken.iter().all(|message| message.payload == payload));
}

/// The error is that of the statement that made the transaction fail, and not the error of later
/// statements, which only reports the failed transaction.
#[tokio::test(flavor = "multi_thread")]
async fn unfitting_type_in_a_transaction_is_reported_as_such() {
    let Place { queue, sql, .. } = place::<i64>(Settings::new("int8").max_batch(1)).await;
    queue.enqueue_many(&[1; 9]).await.expect("enqueued");
    let refuses = "create function public.refuse() returns trigger language plpgsql as
                   $$ begin raise exception 'it does not fit' using errcode = '42804'; end $$;
                   create trigger refuse before insert on trunkline.queue_q
                   for each row when (new.payload[1] = 13) execute function public.refuse()";
    sql.batch_execute(refuses).await.expect("created");
    for count in [1, 20] {
        let error = queue.enqueue_many(&vec![13; count]).await.expect_err("refused");
        assert!(error.to_string().contains("it does not fit"), "{count}: {error}");
    }
}
