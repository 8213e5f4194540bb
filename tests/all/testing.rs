//! Tests the test helpers for users: a clock that can be moved, and assertions about enqueued
//! messages.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use tokio::time::timeout;
use trunkline::{
    Draft, Failure, Limits, Queue, Settings, State, Wait, Worker,
    testing::{assert_enqueued, assert_not_enqueued, enqueued, shift},
};

use crate::fixture::{Ids, Place, SOON, ids, leased_again, place, until_asleep};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

async fn after(queue: &Queue<i64>, delay: Duration) -> i64 {
    queue.enqueue(Draft::new(7).after(delay)).await.expect("enqueued").id()
}

#[tokio::test(flavor = "multi_thread")]
async fn shifted_messages_are_due_in_order_and_wake_consumers() {
    for wait in [Wait::Notify, Wait::Adaptive] {
        let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
        let third = after(&queue, MINUTE * 3).await;
        let (first, second) = (after(&queue, MINUTE).await, after(&queue, MINUTE * 2).await);
        let far = after(&queue, HOUR * 2).await;
        let mut consumer = queue.consumer(wait);
        let waiter = tokio::spawn(async move { consumer.take(9).await });
        until_asleep(&sql).await;
        assert_eq!(shift(&queue, HOUR).await.expect("shifted"), 4);
        let taken = timeout(SOON, waiter).await.expect("it is woken").expect("no panic").expect("taken");
        assert_eq!(ids(&taken), [first, second, third], "{wait:?}");
        assert!(taken[0].enqueued_at < SystemTime::now() - MINUTE * 59, "it is an hour older");
        let left = queue.find(far).await.expect("looked for").expect("it is there");
        let due_in = left.due_at.and_then(|due| due.duration_since(SystemTime::now()).ok()).expect("later");
        assert!(left.state == State::Delayed && (MINUTE * 59..=HOUR).contains(&due_in), "{due_in:?}");
        let told = "select trunkline.shift('q', '1 hour')";
        assert_eq!(sql.query_one(told, &[]).await.expect("shifted").get::<_, i64>(0), 1);
        assert_eq!(ids(&queue.take(9).await.expect("taken")), [far], "no floor is above");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_run_out_and_failures_are_due_again() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8").lease(HOUR)).await;
    queue.enqueue_many([1, 2, 3]).await.expect("enqueued");
    let leased = queue.lease(3).await.expect("leased");
    queue.retry(&leased[..1], DAY, "no").await.expect("held");
    shift(&queue, MINUTE * 30).await.expect("shifted");
    queue.ack(&leased[1..2]).await.expect("half of it is left");
    shift(&queue, MINUTE * 30).await.expect("shifted");
    assert!(queue.ack(&leased[2..]).await.expect_err("it has run out").is_lease_lost());
    let again = queue.lease(3).await.expect("leased");
    assert_eq!(again.iter().map(|message| (message.id, message.attempt)).collect::<Vec<_>>(), [(leased[2].id, 2)]);
    shift(&queue, DAY).await.expect("shifted");
    let both = leased_again(&queue, 2).await;
    assert_eq!(
        ids(&both).into_iter().collect::<BTreeSet<_>>(),
        [leased[0].id, leased[2].id].into(),
        "the failed one, and the lease again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn shift_ages_kept_messages_and_leaves_due_ones_in_order() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let all = queue.enqueue_many([1, 2, 3, 4]).await.expect("enqueued").ids();
    let leased = queue.lease(2).await.expect("leased");
    queue.archive(&leased[..1]).await.expect("held");
    queue.bury(&leased[1..], "no").await.expect("held");
    let later = after(&queue, HOUR).await;
    assert_eq!(queue.prune(DAY).await.expect("pruned"), 0);
    shift(&queue, DAY * 2).await.expect("shifted");
    let dead = queue.dead_letters(0, 9).await.expect("listed");
    assert!(dead[0].dead_at < SystemTime::now() - DAY, "{dead:?}");
    assert_eq!(queue.prune(DAY).await.expect("pruned"), 1);
    assert_eq!(ids(&queue.take(9).await.expect("taken")), [all[2], all[3], later]);
    let error = sql.batch_execute("select trunkline.shift('q', '-1 s')").await.expect_err("out of bounds");
    assert!(error.as_db_error().is_some_and(|error| error.hint().is_some()), "{error:?}");
    let error = shift(&queue, DAY * 36_501).await.expect_err("out of bounds");
    assert!(error.to_string().contains("36,500"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_drains_does_what_has_become_due() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    for hours in 1..=24 {
        after(&queue, HOUR * hours).await;
    }
    let worker = || Worker::new(queue.clone(), |_message| async { Ok::<(), Failure>(()) });
    for (hours, done) in [(0, 0), (6, 6), (6, 6), (12, 12)] {
        shift(&queue, HOUR * hours).await.expect("shifted");
        assert_eq!(worker().drain().await.expect("worked").done, done, "after {hours} hours");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn enqueued_messages_are_listed_found_or_missed() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    assert_not_enqueued(&queue, |_any| true).await;
    let late = after(&queue, HOUR).await;
    let some = queue.enqueue_many(100..300).await.expect("enqueued").ids();
    queue.lease(1).await.expect("leased");
    let all = enqueued(&queue).await.expect("listed");
    assert_eq!(all.iter().map(|message| message.id).collect::<Vec<_>>(), [&[late], &some[..]].concat());
    let found = assert_enqueued(&queue, |message| message.payload > 150).await;
    assert_eq!((found.id, found.payload), (some[51], 151), "the first");
    assert_not_enqueued(&queue, |message| message.attempt > 1).await;
}

/// Runs a failing assertion in its own task, and returns its panic message.
async fn panics<R: std::fmt::Debug + Send + 'static>(assertion: impl Future<Output = R> + Send + 'static) -> String {
    let panic = tokio::spawn(assertion).await.expect_err("it fails").into_panic();
    panic.downcast_ref::<String>().expect("a text").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_assertion_says_where_and_lists_what_was_there() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(Draft::new(7).with("tenant", "acme")).await.expect("enqueued");
    after(&queue, HOUR).await;
    let other = queue.clone();
    let text = panics(async move { assert_enqueued(&other, |message| message.payload == 8).await }).await;
    for part in
        ["tests/all/testing.rs:", "no message in queue \"q\" is as expected", "it holds 2 messages", "acme", "due in 3"]
    {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let other = queue.clone();
    let text = panics(async move { assert_not_enqueued(&other, |message| !message.metadata.is_empty()).await }).await;
    assert!(text.contains("tests/all/testing.rs:") && text.contains("it holds 1 message:"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn shift_refills_the_rate_of_the_queue() {
    let Place { db, sql, .. } = place::<i64>(Settings::new("int8")).await;
    db.limit_queue("q", &Limits::none().per_second(0.01).burst(1)).await.expect("limited");
    let queue: Queue<i64> = db.queue("q").await.expect("opened");
    queue.enqueue_many([1, 2]).await.expect("enqueued");
    let take = async || sql.query("select id from trunkline.take('q', 2)", &[]).await.expect("taken").len();
    assert_eq!((take().await, take().await), (1, 0));
    shift(&queue, HOUR).await.expect("shifted");
    assert_eq!(take().await, 1);
}
