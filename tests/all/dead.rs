//! Tests dead letters, and the errors of a consumer's work.

mod many;
mod worked;

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Client;
use trunkline::{Failure, Message, Queue, Settings, Wait, postgres::Statement};

use crate::{
    costs::pages,
    fixture::{Place, SOON, connect, enqueued, eventually, leased_again, place, run_out, until_asleep},
};

/// Leases and fails all messages, `attempts` times.
async fn kill(queue: &Queue<i64>, attempts: usize) {
    for attempt in 1..=attempts {
        let messages = queue.lease(1000).await.expect("leased");
        queue.retry(&messages, Duration::ZERO, format!("failure {attempt}")).await.expect("held");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_a_dead_letter_after_its_last_retry() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(3)).await;
    let ids = enqueued(&queue, 5).await;
    let enqueued_at = queue.peek(1).await.expect("peeked")[0].enqueued_at;
    kill(&queue, 2).await;
    assert_eq!(queue.stats().await.expect("counted").dead, 0);
    let messages = queue.lease(1000).await.expect("leased");
    queue.retry(&messages, Duration::ZERO, "the last failure").await.expect("held");
    let letters = queue.dead_letters(0, 10).await.expect("read");
    assert_eq!(
        letters.iter().map(|letter| (letter.id, letter.payload)).collect::<Vec<_>>(),
        ids.into_iter().zip(0..).collect::<Vec<_>>()
    );
    for letter in &letters {
        assert_eq!((letter.attempt, letter.error.as_str(), letter.enqueued_at), (3, "the last failure", enqueued_at));
        assert!(letter.dead_at > enqueued_at);
    }
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.dead, stats.messages), (5, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn buried_message_is_dead_at_once_and_its_neighbours_live() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(9)).await;
    let ids = enqueued(&queue, 100).await;
    let messages = queue.lease(100).await.expect("leased");
    let (few, one) =
        tokio::join!(queue.bury(&messages[10..13], "hop\0eless"), queue.bury(&messages[50..51], "no address"));
    few.expect("held");
    one.expect("held");
    let letters = queue.dead_letters(0, 10).await.expect("read");
    let told: Vec<_> =
        letters.iter().map(|letter| (letter.id, letter.payload, letter.attempt, &*letter.error)).collect();
    let hopeless = [10, 11, 12].map(|at| (ids[at], at as i64, 1, "hop\u{fffd}eless"));
    assert_eq!(told, [&hopeless[..], &[(ids[50], 50, 1, "no address")]].concat());
    let neighbours = messages.iter().filter(|message| !letters.iter().any(|letter| letter.id == message.id));
    queue.ack(neighbours).await.expect("held");
    assert!(queue.bury(&messages[10..11], "again").await.expect_err("dead").is_lease_lost());
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.dead, stats.messages), (4, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn message_is_dead_after_its_last_lease_expires() {
    for attempts in [1, 3] {
        let Place { queue, sql, db: _db, .. } = place(Settings::new("int8").max_attempts(attempts)).await;
        let ids = enqueued(&queue, 4).await;
        for attempt in 1..=attempts {
            let messages = leased_again(&queue, 4).await;
            assert!(messages.iter().all(|message| message.attempt.unsigned_abs() == attempt));
            run_out(&sql).await;
        }
        let alive = enqueued(&queue, 1).await;
        let messages = queue.lease(10).await.expect("leased");
        assert_eq!(
            messages.iter().map(|message| message.id).collect::<Vec<_>>(),
            alive,
            "behind the dead, one that lives"
        );
        let letters = queue.dead_letters(0, 10).await.expect("read");
        assert_eq!(
            letters.iter().map(|letter| (letter.id, letter.payload)).collect::<Vec<_>>(),
            ids.into_iter().zip(0..).collect::<Vec<_>>()
        );
        assert!(
            letters.iter().all(|letter| letter.attempt.unsigned_abs() == attempts && letter.error.contains("expired"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_read_page_by_page_replayed_and_discarded() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8").max_attempts(1)).await;
    let ids = enqueued(&queue, 25).await;
    kill(&queue, 1).await;
    let (mut after, mut pages) = (0, Vec::new());
    loop {
        let page = queue.dead_letters(after, 10).await.expect("read");
        let Some(last) = page.last() else { break };
        after = last.id;
        pages.push(page.iter().map(|letter| letter.id).collect::<Vec<_>>());
    }
    assert_eq!(pages, ids.chunks(10).map(<[i64]>::to_vec).collect::<Vec<_>>());

    // A replay of some dead letters keeps their ids and resets their counted attempts. The attempt
    // numbers continue, so that old leases are fenced off. A sleeping consumer wakes up.
    let mut consumer = queue.consumer(Wait::Notify);
    let waiter = tokio::spawn(async move { timeout(SOON, consumer.lease(10)).await.expect("woken").expect("leased") });
    until_asleep(&sql).await;
    assert_eq!(queue.replay(&[ids[3], ids[5], 77]).await.expect("replayed"), 2, "77 is no dead letter");
    let back = waiter.await.expect("no panic");
    assert_eq!(
        back.iter().map(|message| (message.id, message.attempt)).collect::<Vec<_>>(),
        [(ids[3], 2), (ids[5], 2)]
    );
    queue.retry(&back[..1], Duration::ZERO, "again").await.expect("held");
    queue.ack(&back[1..]).await.expect("held");
    assert_eq!(queue.dead_letters(0, 100).await.expect("read").len(), 24, "one died once more");

    assert_eq!(queue.discard(&[ids[0], ids[5], ids[24]]).await.expect("discarded"), 2, "one is alive no more");
    assert_eq!(queue.replay_all().await.expect("replayed"), 22);
    let messages = queue.lease(100).await.expect("leased");
    let expected: Vec<i64> = (1..24).filter(|payload| *payload != 5).collect();
    assert_eq!(messages.iter().map(|message| message.payload).collect::<Vec<_>>(), expected);
    queue.retry(&messages, Duration::ZERO, "for good").await.expect("held");
    assert_eq!(queue.discard_all().await.expect("discarded"), 22);
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.dead, stats.messages), (0, 0));
}

/// While an old snapshot exists, the index keeps the entries of removed dead letters. Each page
/// starts after the previous page's last id, so its scan does not pass these entries.
#[tokio::test(flavor = "multi_thread")]
async fn all_dead_letters_are_removed_page_by_page_from_the_last_id_on() {
    let Place { queue, sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    let (old, other) = (connect(&url).await, connect(&url).await);
    let fill = "insert into trunkline.dead_q (id, enqueued_at, attempt, error, payload)
                select i * 1024, now(), 1, 'no', i from generate_series(1, 25000) i";
    sql.batch_execute(fill).await.expect("filled");
    old.batch_execute("begin isolation level repeatable read; select from trunkline.dead_q").await.expect("it reads");
    other.batch_execute("begin; select from trunkline.dead_q where id = 2048 for update").await.expect("locked");
    assert_eq!(queue.discard_all().await.expect("discarded"), 24_999, "a locked one is left");
    let page = async |after: i64| pages(&sql, &format!("select trunkline.letters_after('q', {after}, 100)")).await;
    page(0).await; // the first call also reads the catalog, so its pages do not count
    let (first, last) = (page(0).await, page(25_000 * 1024).await);
    assert!(last + 50 < first, "{first} pages from the beginning on, {last} at the end");
    old.batch_execute("commit").await.expect("ended");
    other.batch_execute("commit").await.expect("ended");
    assert_eq!(queue.discard_all().await.expect("discarded"), 1);
    sql.batch_execute(fill).await.expect("filled");
    assert_eq!(queue.replay_all().await.expect("replayed"), 25_000);
    assert_eq!(queue.stats().await.expect("counted").due, 25_000);
}

async fn effects(sql: &Client) -> Vec<i64> {
    let rows = sql.query("select payload from effects order by 1", &[]).await.expect("read");
    rows.iter().map(|row| row.get(0)).collect()
}

type Outcome = Result<(), Failure>;

/// Fails the work for one payload. If `sql` is not empty, runs it in the work's transaction.
async fn consume(queue: &Queue<i64>, n: usize, bad: i64, sql: &'static str) {
    let mut consumer = queue.consumer(Wait::Adaptive).retry_after(Duration::ZERO);
    let work = consumer.take_with(n, |transaction, messages| {
        Box::pin(async move {
            for Message { payload, .. } in &messages {
                let insert = Statement::<_, u64>::new("insert into effects values ($1)");
                transaction.run(&insert, (*payload,)).await?;
                if *payload == bad && sql.is_empty() {
                    return Outcome::Err(Failure::retry(format!("{bad} is bad")));
                } else if *payload == bad {
                    // ignores the error of the statement
                    let _ = transaction.run(&Statement::<_, ()>::new(sql), ()).await;
                }
            }
            Ok(())
        })
    });
    if let Err(error) = timeout(SOON, work).await.expect("in time") {
        assert!(error.is_work_failed(), "the database is well: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_fails_charges_only_the_message_that_fails() {
    // The work fails in three ways: it returns an error, ignores a failed statement, or violates a
    // constraint at the commit.
    for (sql, reason) in [
        ("", "4 is bad"),
        ("select 1/0", "division by zero (statement"),
        ("insert into parts values (99)", "foreign key"),
    ] {
        let Place { queue, sql: plain, db: _db, .. } = place(Settings::new("int8").max_attempts(3)).await;
        let tables = "create table effects (payload int8); create table whole (id int8 primary key);
                      create table parts (id int8 references whole deferrable initially deferred)";
        plain.batch_execute(tables).await.expect("created");
        let ids = enqueued(&queue, 8).await;
        while queue.stats().await.expect("counted").dead == 0 || queue.stats().await.expect("counted").messages > 0 {
            if queue.peek(100).await.expect("peeked").iter().all(|message| message.payload == 4) {
                enqueued(&queue, 1).await; // adds a valid message, so that the bad message is not alone
            }
            consume(&queue, 8, 4, sql).await;
            for message in queue.peek(100).await.expect("peeked") {
                assert!(
                    message.payload == 4 || message.attempt == 0,
                    "{reason}: only the bad one is charged: {message:?}"
                );
            }
        }
        let letters = queue.dead_letters(0, 10).await.expect("read");
        assert_eq!(letters.len(), 1, "{reason}");
        assert_eq!((letters[0].id, letters[0].payload, letters[0].attempt), (ids[4], 4, 3), "{reason}");
        assert!(letters[0].error.contains(reason), "{:?}", letters[0].error);
        let done = effects(&plain).await;
        assert!(!done.contains(&4), "{reason}: what failed has no effect");
        let good: Vec<i64> = done.into_iter().filter(|payload| *payload != 0).collect();
        assert_eq!(good, [1, 2, 3, 5, 6, 7], "{reason}: each of the others exactly once");
        let parts: i64 = plain.query_one("select count(*) from parts", &[]).await.expect("read").get(0);
        assert_eq!(parts, 0, "{reason}");
    }
}

/// Another caller takes the message after the rollback and before its attempt is counted. Counting
/// must not wait for that caller. It must not block the process's other statements either, because
/// that caller may need them.
#[tokio::test(flavor = "multi_thread")]
async fn counting_a_failed_attempt_waits_for_no_other_holder() {
    let Place { queue, url, mut sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    enqueued(&queue, 1).await;
    let watch = crate::fixture::connect(&url).await;
    let (began, working) = tokio::sync::oneshot::channel();
    let (fail, failing) = tokio::sync::oneshot::channel::<()>();
    let (mut began, mut failing) = (Some(began), Some(failing));
    let mut consumer = queue.consumer(Wait::Adaptive);
    let worker = tokio::spawn(async move {
        let work = consumer.take_with(1, |_, _| {
            let (began, failing) = (began.take(), failing.take());
            Box::pin(async move {
                began.map(|began| began.send(()));
                if let Some(failing) = failing {
                    let _ = failing.await;
                    return Outcome::Err(Failure::retry("fails once"));
                }
                Ok(())
            })
        });
        work.await
    });
    working.await.expect("the work began");
    let other = sql.transaction().await.expect("begun");
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    {
        let mut lock = std::pin::pin!(other.query("select id from trunkline.queue_q for update", &[]));
        let waiting = || async { watch.query_one(waits, &[]).await.expect("read").get::<_, i64>(0) == 1 };
        tokio::select! {
            _ = &mut lock => panic!("the work holds the row"),
            () = crate::fixture::eventually("the other waits", waiting) => {}
        }
        fail.send(()).expect("the work waits");
        assert_eq!(lock.await.expect("locked after the rollback").len(), 1);
    }
    // While the other session holds the message, no connection of the library waits.
    for _ in 0..200 {
        timeout(SOON, queue.stats())
            .await
            .expect("a statement of the library waits for a stranger's lock")
            .expect("counted");
        tokio::task::yield_now().await;
    }
    other.rollback().await.expect("rolled back");
    timeout(SOON, worker).await.expect("in time").expect("no panic").expect("the second attempt is good");
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_after_failed_work_is_bounded_and_the_attempt_counts() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 1).await;
    let mut consumer = queue.consumer(Wait::Adaptive).retry_after(Duration::MAX);
    let fails = tokio::spawn(async move {
        consumer.take_with(1, |_, _| Box::pin(async { Outcome::Err(Failure::retry("never")) })).await
    });
    let charged = "select exists (select from trunkline.queue_q where attempt = 1 and error = 'never'
                                  and due_at > clock_timestamp() + interval '364 days')";
    eventually("it is charged", || async { sql.query_one(charged, &[]).await.expect("read").get(0) }).await;
    assert!(!fails.is_finished(), "it waits for the next message");
    fails.abort();
}
