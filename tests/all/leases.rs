//! Tests the guarantees of a lease, and the cost of splits.

use std::time::{Duration, SystemTime};

use futures_util::{future::join_all, poll};
use tokio::time::timeout;
use trunkline::{Dequeue, Draft, Error, Lease, Message, Queue, Settings, Wait};

use crate::fixture::{Place, SOON, connect, enqueued, eventually, place, run_out};

fn payloads(messages: &[Message<i64>]) -> Vec<i64> {
    messages.iter().map(|message| message.payload).collect()
}

async fn leased(queue: &Queue<i64>, n: usize) -> Vec<Message<i64>> {
    queue.lease(n).await.expect("leased")
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_lease_comes_back_with_its_attempt_counted() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8").max_attempts(100)).await;
    enqueued(&queue, 1).await;
    for attempt in 1..5 {
        assert_eq!(queue.peek(1).await.expect("peeked")[0].attempt, attempt - 1);
        assert_eq!(leased(&queue, 1).await[0].attempt, attempt);
        assert_eq!(queue.peek(1).await.expect("peeked")[0].attempt, attempt, "charged when the lease begins");
        assert_eq!(leased(&queue, 1).await, [], "no other caller gets it");
        run_out(&sql).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_ends_by_the_clock() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").lease(Duration::from_secs(3))).await;
    enqueued(&queue, 1).await;
    let first = leased(&queue, 1).await;
    let second = timeout(SOON, queue.consumer(Wait::Notify).lease(1)).await.expect("it comes back").expect("leased");
    assert_eq!((second[0].id, second[0].attempt), (first[0].id, 2));
    let first = queue.lease(Dequeue::up_to(1).lease_for(Duration::from_secs(3600))).await.expect("asked");
    assert_eq!(first, [], "leased for its three seconds");
    let third = timeout(SOON, queue.consumer(Wait::Adaptive).lease(1)).await.expect("it comes back").expect("leased");
    assert_eq!(third[0].attempt, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_can_have_its_own_length_and_be_extended() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8").lease(Duration::from_secs(30))).await;
    enqueued(&queue, 6).await;
    let left =
        "select extract(epoch from due_at - clock_timestamp())::float8 from trunkline.messages_q where payload = $1";
    let sql = &sql;
    let seconds = |payload: i64| async move { sql.query_one(left, &[&payload]).await.expect("there").get::<_, f64>(0) };
    leased(&queue, 1).await;
    assert!((25.0..=30.0).contains(&seconds(0).await));
    let longer = queue.lease(Dequeue::up_to(4).lease_for(Duration::from_secs(600))).await.expect("leased");
    assert!((590.0..=600.0).contains(&seconds(2).await));
    queue.extend(&longer[1..2], Duration::from_secs(7200)).await.expect("held");
    assert!((7190.0..=7200.0).contains(&seconds(2).await), "the one that was extended");
    assert!((590.0..=600.0).contains(&seconds(1).await) && (590.0..=600.0).contains(&seconds(3).await), "and no other");
    for out_of_bounds in [Duration::ZERO, Duration::from_secs(366 * 86_400)] {
        queue.extend(&longer[..1], out_of_bounds).await.expect_err("out of bounds");
        queue.lease(Dequeue::up_to(1).lease_for(out_of_bounds)).await.expect_err("out of bounds");
    }
    queue.ack(&longer).await.expect("all of them are held still");
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_with_an_expired_lease_returns_one_message_per_row() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 50).await;
    let ids = enqueued(&queue, 10).await;
    let messages = leased(&queue, 60).await;
    queue.ack(&messages[..50]).await.expect("held");
    run_out(&sql).await;
    enqueued(&queue, 8).await; // never leased, so the row of these messages stays whole
    let one = leased(&queue, 1).await;
    let rows = sql.query("select id, size, attempt from trunkline.queue_q order by id", &[]).await.expect("read");
    let rows: Vec<(i64, i32, i32)> = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let (singles, batch) = rows.split_at(10);
    assert_eq!(one[0].attempt, 2);
    assert_eq!(
        singles.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(),
        ids.iter().map(|id| (*id, 1)).collect::<Vec<_>>()
    );
    assert_eq!(singles.iter().filter(|row| row.2 == 1).count(), 9, "only what is leased again is charged again");
    assert_eq!(batch.iter().map(|row| (row.1, row.2)).collect::<Vec<_>>(), [(8, 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_message_of_a_hundred_retries_alone() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 100).await;
    let messages = leased(&queue, 100).await;
    let (ack, retry) = tokio::join!(
        queue.ack(messages.iter().filter(|message| message.payload != 42)),
        queue.retry(&messages[42..43], Duration::from_secs(60), "not today")
    );
    ack.expect("held");
    retry.expect("held");
    let left = queue.peek(100).await.expect("peeked");
    assert_eq!((left.len(), left[0].payload, left[0].error.as_deref()), (1, 42, Some("not today")));
    assert_eq!(leased(&queue, 10).await, [], "not before its time");
    let due_in: f64 = sql
        .query_one("select extract(epoch from due_at - clock_timestamp())::float8 from trunkline.queue_q", &[])
        .await
        .expect("there")
        .get(0);
    assert!((50.0..=60.0).contains(&due_in), "{due_in}");
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.to_retry, stats.leased, stats.due, stats.waiting()), (1, 0, 0, 1));
    run_out(&sql).await;
    let again = leased(&queue, 10).await;
    assert_eq!((payloads(&again), again[0].attempt, again[0].id), (vec![42], 2, messages[42].id));
    assert_eq!(queue.peek(1).await.expect("peeked")[0].error, None, "a new attempt has begun");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_wakes_its_waiter_when_it_is_due() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 3).await;
    let messages = leased(&queue, 3).await;
    let mut consumer = queue.consumer(Wait::Notify);
    let waiter = tokio::spawn(async move { timeout(SOON, consumer.take(3)).await.expect("woken").expect("taken") });
    queue.retry(&messages[1..2], Duration::from_millis(100), "soon").await.expect("held");
    assert_eq!(payloads(&waiter.await.expect("no panic")), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_message_is_kept_until_it_is_pruned() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
    let ids = enqueued(&queue, 10).await;
    let first = leased(&queue, 10).await;
    queue.retry(&first, Duration::ZERO, "again").await.expect("held");
    let messages = leased(&queue, 10).await;
    let (before, after): (SystemTime, SystemTime) =
        (messages[0].enqueued_at, SystemTime::now() + Duration::from_secs(5));
    queue.archive(&messages[2..5]).await.expect("held");
    queue.ack(&messages[5..]).await.expect("held");
    let archived = queue.archived(0, 2).await.expect("read");
    assert_eq!(
        archived.iter().map(|kept| (kept.id, kept.payload, kept.attempt)).collect::<Vec<_>>(),
        [(ids[2], 2, 2), (ids[3], 3, 2)]
    );
    assert!(archived.iter().all(|kept| kept.enqueued_at == before && (before..after).contains(&kept.archived_at)));
    assert_eq!(queue.archived(ids[3], 10).await.expect("read").len(), 1, "the next page");
    sql.execute(
        "update trunkline.archive_q set archived_at = archived_at - interval '1 hour' where id <> $1",
        &[&ids[3]],
    )
    .await
    .expect("aged");
    assert_eq!(queue.prune(Duration::from_secs(1800)).await.expect("pruned"), 2);
    assert_eq!(queue.archived(0, 10).await.expect("read")[0].id, ids[3]);

    assert_eq!(queue.stats().await.expect("counted").leased, 2);
    enqueued(&queue, 5).await;
    assert_eq!(queue.purge().await.expect("purged"), 7, "leased and due");
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.messages, stats.archived), (0, 1));
    assert!(queue.ack(&messages[..1]).await.expect_err("purged").is_lease_lost());
}

/// The consumer is dropped at any moment: before its statement, while the statement runs, or while
/// the answer is in transit.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_is_dropped_while_it_waits_loses_nothing() {
    for leases in [false, true] {
        let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8").max_attempts(1)).await;
        let producer = {
            let queue = queue.clone();
            tokio::spawn(async move {
                for payload in 0..400 {
                    queue.enqueue(payload).await.expect("enqueued");
                }
            })
        };
        let (mut got, mut calls) = (Vec::new(), 0_u64);
        let all = async {
            while got.len() < 400 {
                calls += 1;
                let mut consumer = queue.consumer(if calls.is_multiple_of(2) { Wait::Notify } else { Wait::Adaptive });
                // Drops some calls immediately, some while their statement runs, and some together
                // with their answer. Every sixteenth call is not dropped.
                let patience = if calls % 16 == 0 { SOON } else { Duration::from_micros(calls * 7 % 11 * 150) };
                let messages = match leases {
                    false => timeout(patience, consumer.take(3)).await,
                    true => timeout(patience, consumer.lease(3)).await,
                };
                let Ok(messages) = messages else { continue };
                let messages = messages.expect("dequeued");
                if leases {
                    queue.ack(&messages).await.expect("held");
                }
                got.extend(payloads(&messages));
            }
        };
        let complete = timeout(8 * SOON, all).await.is_ok();
        producer.await.expect("no panic");
        got.sort_unstable();
        assert!(complete, "leases: {leases}: got {} of 400; {:?}", got.len(), queue.stats().await);
        assert_eq!(got, (0..400).collect::<Vec<_>>());
        assert_eq!(queue.stats().await.expect("counted").dead, 0, "a call that was dropped is no attempt");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn splitting_costs_linear_time_over_the_life_of_a_batch() {
    for leases in [false, true] {
        let Place { queue, db, sql, url } = place::<i64>(Settings::new("int8")).await;
        enqueued(&queue, 1000).await;
        for payload in 0..1000 {
            let message = match leases {
                false => queue.take(1).await.expect("taken"),
                true => leased(&queue, 1).await,
            };
            assert_eq!(payloads(&message), [payload]);
            if leases {
                queue.ack(&message).await.expect("held");
            }
        }
        drop((queue, db, sql)); // backends report their statistics when they end
        let sql = connect(&url).await;
        let written = "select n_tup_ins + n_tup_upd + n_tup_del from pg_stat_user_tables where relname = 'queue_q'";
        let mut writes = 0;
        eventually("the statistics arrive", || async {
            let gone: i64 = sql
                .query_one("select n_live_tup + n_tup_del from pg_stat_user_tables where relname = 'queue_q'", &[])
                .await
                .expect("there")
                .get(0);
            gone >= 1000
        })
        .await;
        writes += sql.query_one(written, &[]).await.expect("there").get::<_, i64>(0);
        // Allows for two writes per message, a lease and a delete. In addition, each row is split
        // twice, into 32 pieces.
        assert!((1000..4000).contains(&writes), "{writes} row writes for 1,000 messages");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_of_bounds_is_a_clear_error() {
    let Place { queue, db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 2).await;
    let message = leased(&queue, 1).await;
    for error in [
        queue.lease(Dequeue::up_to(1).lease_for(Duration::MAX)).await.expect_err("lease"),
        queue
            .ack_and_lease([Lease { id: 1024, attempt: 9 }], Dequeue::up_to(1).lease_for(Duration::MAX))
            .await
            .expect_err("lease"),
        queue.extend(&message, Duration::MAX).await.expect_err("extend"),
        queue.retry(&message, Duration::MAX, "no").await.expect_err("retry"),
        queue.enqueue(Draft::new(1).after(Duration::MAX)).await.expect_err("delay"),
        db.create_queue("other", &Settings::new("int8").lease(Duration::MAX)).await.expect_err("settings"),
    ] {
        assert!(error.to_string().contains("out of bounds"), "{error}");
    }
    assert_eq!(queue.prune(Duration::MAX).await.expect("nothing is that old"), 0);
}

/// A call with an impossible lease is refused individually, and does not share its statement with
/// other calls.
#[tokio::test(flavor = "multi_thread")]
async fn impossible_id_fails_no_other_caller() {
    let Place { queue, mut sql, db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 50).await;
    let messages = leased(&queue, 50).await;
    let never_given = |error: Error| {
        assert!(!error.is_lease_lost() && error.to_string().contains("no queue has given"), "{error}");
    };
    for id in [i64::MIN, -1, 0, 1023, i64::MAX - 1, i64::MAX] {
        let bogus = [Lease { id, attempt: 1 }, Lease { id, attempt: 2 }, Lease { id: 1024, attempt: 9 }];
        never_given(queue.ack(bogus).await.expect_err("ack"));
        never_given(queue.archive(bogus).await.expect_err("archive"));
        never_given(queue.release(bogus).await.expect_err("release"));
        never_given(queue.retry(bogus, Duration::ZERO, "no").await.expect_err("retry"));
        never_given(queue.bury(bogus, "no").await.expect_err("bury"));
        never_given(queue.extend(bogus, Duration::from_secs(9)).await.expect_err("extend"));
        never_given(queue.ack_and_lease(bogus, 1).await.expect_err("ack_and_lease"));
        let transaction = sql.transaction().await.expect("begun");
        never_given(queue.ack_in(&transaction, bogus).await.expect_err("ack_in"));
        transaction.commit().await.expect("it is whole");
        let transaction = db.begin().await.expect("begun");
        never_given(queue.send_ack(&transaction, bogus).await.map(drop).expect_err("send_ack"));
    }
    let (bogus, honest) = (
        queue.ack([Lease { id: i64::MAX, attempt: 1 }]),
        join_all(messages.iter().map(|message| queue.ack([message]))),
    );
    let (refused, ends) = tokio::join!(bogus, honest);
    never_given(refused.expect_err("no such lease"));
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
}

/// The server refuses one call because of a user's trigger. The other calls in its statement still
/// succeed.
#[tokio::test(flavor = "multi_thread")]
async fn refused_call_fails_alone_in_a_shared_statement() {
    let Place { url, queue, sql, db: _db } = place(Settings::new("int8").max_batch(1)).await;
    let ids = enqueued(&queue, 4).await;
    let messages = leased(&queue, 4).await;
    let refuses = format!(
        "create function public.refuse() returns trigger language plpgsql as
         $$ begin if old.id = {} then raise exception 'not this one'; end if; return old; end $$;
         create trigger refuse before delete on trunkline.queue_q for each row execute function public.refuse()",
        ids[2]
    );
    sql.batch_execute(&refuses).await.expect("created");
    let mut own = connect(&url).await;
    let transaction = own.transaction().await.expect("begun");
    transaction.execute("select from trunkline.queue_q where id = $1 for update", &[&ids[0]]).await.expect("locked");
    let first = tokio::spawn({
        let (queue, lease) = (queue.clone(), messages[0].lease());
        async move { queue.ack([lease]).await }
    });
    let waits = "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%do_ack_q%'
                                and datname = current_database())";
    eventually("it waits", || async { sql.query_one(waits, &[]).await.expect("visible").get(0) }).await;
    // Makes calls that join one statement while the first statement waits.
    let mut gathered: Vec<_> = messages[1..].iter().map(|message| Box::pin(queue.ack([message]))).collect();
    for call in &mut gathered {
        assert!(poll!(call.as_mut()).is_pending());
    }
    transaction.rollback().await.expect("rolled back");
    first.await.expect("no panic").expect("held");
    let ends = timeout(SOON, join_all(gathered)).await.expect("in time");
    assert!(ends[0].is_ok() && ends[2].is_ok(), "{ends:?}");
    let error = ends[1].as_ref().expect_err("refused");
    assert!(error.to_string().contains("not this one"), "{error}");
    assert_eq!(queue.stats().await.expect("counted").messages, 1);
}

/// The two calls may or may not share a statement.
#[tokio::test(flavor = "multi_thread")]
async fn lease_is_ended_by_one_of_two_simultaneous_calls() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    enqueued(&queue, 60).await;
    for message in queue.lease(60).await.expect("leased") {
        let lease = [message.lease()];
        let (one, two) = match message.payload % 3 {
            0 => tokio::join!(queue.ack(lease), queue.ack(lease)),
            1 => tokio::join!(queue.ack(lease), queue.retry(lease, Duration::ZERO, "no")),
            _ => tokio::join!(queue.bury(lease, "one"), queue.bury(lease, "two")),
        };
        let refused =
            [&one, &two].into_iter().filter(|ended| ended.as_ref().is_err_and(trunkline::Error::is_lease_lost)).count();
        assert_eq!((refused, one.is_ok() || two.is_ok()), (1, true), "{one:?} {two:?}");
    }
}
