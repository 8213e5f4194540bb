//! Concurrent calls that acknowledge and lease: they share transactions, and none of them pays for
//! another.

use std::collections::BTreeSet;

use futures_util::{future::join_all, poll};
use tokio::time::timeout;
use trunkline::{Message, Queue, Settings};

use crate::{
    fixture::{Place, SOON, connect, enqueued, eventually, one_waits, place},
    refusals::refuse,
};

/// Returns the settings of a queue with one message per row.
fn single() -> Settings {
    Settings::new("int8").max_batch(1)
}

/// Acknowledges each of these messages and leases another one, at the same time.
async fn exchange(
    queue: &Queue<i64>,
    messages: &[Message<i64>],
) -> Vec<trunkline::Result<(Vec<Message<i64>>, Vec<i64>)>> {
    let calls = join_all(messages.iter().map(|message| queue.ack_and_lease([message], 1)));
    timeout(SOON, calls).await.expect("in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_share_transactions_and_each_leases_its_own_messages() {
    let Place { queue, sql, db: _db, .. } = place(single()).await;
    enqueued(&queue, 90).await;
    let messages = queue.lease(40).await.expect("leased");
    let number = async || {
        let next = sql.query_one("select pg_current_xact_id()::text::int8", &[]).await.expect("read");
        next.get::<_, i64>(0)
    };
    let before = number().await;
    let exchanged = exchange(&queue, &messages).await;
    let transactions = number().await - before - 1;
    assert!((1..10).contains(&transactions), "{transactions} transactions for 40 calls");
    let mut all = BTreeSet::new();
    for one in exchanged {
        let (leased, lost) = one.expect("exchanged");
        assert!(lost.is_empty() && leased.len() == 1, "{leased:?} {lost:?}");
        assert!(all.insert(leased[0].payload), "leased once");
    }
    assert_eq!(all, (40..80).collect());
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.messages, stats.leased), (50, 40));
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_that_two_calls_end_is_lost_to_one_of_them() {
    let Place { queue, db: _db, .. } = place(single()).await;
    enqueued(&queue, 20).await;
    for message in queue.lease(10).await.expect("leased") {
        let (one, two) = tokio::join!(queue.ack_and_lease([&message], 1), queue.ack_and_lease([&message], 1));
        let (one, two) = (one.expect("exchanged"), two.expect("exchanged"));
        assert_eq!(one.1.len() + two.1.len(), 1, "{one:?} {two:?}");
        queue.release(one.0.iter().chain(&two.0)).await.expect("held");
    }
    assert_eq!(queue.stats().await.expect("counted").messages, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_acknowledgement_fails_no_other_call_of_its_transaction() {
    let Place { queue, sql, db: _db, .. } = place(single()).await;
    enqueued(&queue, 40).await;
    let messages = queue.lease(16).await.expect("leased");
    refuse(&sql, "P0001", "delete").await;
    let mut exchanged = exchange(&queue, &messages).await;
    let error = exchanged.remove(13).expect_err("refused");
    assert!(error.to_string().contains("not this one"), "{error}");
    for one in exchanged {
        let (leased, lost) = one.expect("exchanged");
        assert!(lost.is_empty() && leased.len() == 1, "{leased:?} {lost:?}");
    }
    let stats = queue.stats().await.expect("counted");
    assert_eq!(
        (stats.messages, stats.leased),
        (25, 16),
        "the refused one, fifteen leased by the calls, and nine others"
    );
}

/// Each of the other calls would wait as long as the stranger's transaction.
#[tokio::test(flavor = "multi_thread")]
async fn later_calls_do_not_wait_for_one_whose_message_is_locked() {
    let Place { url, queue, sql, db: _db } = place(single()).await;
    let ids = enqueued(&queue, 20).await;
    let messages = queue.lease(5).await.expect("leased");
    let mut stranger = connect(&url).await;
    let transaction = stranger.transaction().await.expect("begun");
    transaction.execute("select from trunkline.queue_q where id = $1 for update", &[&ids[0]]).await.expect("locked");
    let mut first = Box::pin(queue.ack_and_lease([&messages[0]], 1));
    assert!(poll!(first.as_mut()).is_pending());
    eventually("it waits", || one_waits(&sql)).await;
    for message in &messages[1..3] {
        let exchanged = timeout(SOON, queue.ack_and_lease([message], 1)).await.expect("in time");
        assert_eq!(exchanged.expect("exchanged").0.len(), 1);
    }
    for message in &messages[3..] {
        timeout(SOON, queue.ack([message])).await.expect("in time").expect("held");
    }
    assert!(poll!(first.as_mut()).is_pending(), "the stranger still holds the message");
    transaction.rollback().await.expect("rolled back");
    let (leased, lost) = timeout(SOON, first).await.expect("in time").expect("exchanged");
    assert!(lost.is_empty() && leased.len() == 1, "{leased:?} {lost:?}");
}

/// Ends the leases of these messages as if their worker had crashed. They are due before the
/// others.
async fn expire(sql: &tokio_postgres::Client, messages: &[Message<i64>]) {
    let ids: Vec<i64> = messages.iter().map(|message| message.id).collect();
    let expired = "update trunkline.queue_q
                   set due_at = coalesce((select min(due_at) from trunkline.queue_q where attempt = 0), clock_timestamp()) where id = any ($1)";
    sql.execute(expired, &[&ids]).await.expect("moved");
    sql.batch_execute("notify \"trunkline.q\"").await.expect("told");
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_message_goes_to_one_call_and_the_other_calls_get_others() {
    let Place { queue, sql, db: _db, .. } = place(single()).await;
    enqueued(&queue, 60).await;
    let messages = queue.lease(20).await.expect("leased");
    expire(&sql, &messages[..2]).await;
    let mut leased = BTreeSet::new();
    for one in exchange(&queue, &messages[2..]).await {
        let (messages, lost) = one.expect("exchanged");
        assert!(lost.is_empty() && messages.len() == 1, "{messages:?} {lost:?}");
        assert!(leased.insert(messages[0].payload), "leased once");
    }
    assert!(leased.is_superset(&BTreeSet::from([0, 1])), "the expired ones are due first: {leased:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn call_that_waits_gets_an_expired_message_alone() {
    let Place { queue, sql, db: _db, .. } = place(single()).await;
    enqueued(&queue, 11).await;
    let messages = queue.lease(11).await.expect("leased");
    let (done, others) = messages.split_at(1);
    let mut consumer = queue.consumer(trunkline::Wait::default());
    let call = async { timeout(SOON, consumer.ack_and_lease(done, 10)).await.expect("in time").expect("exchanged") };
    let crash = async {
        eventually("acknowledged", async || queue.stats().await.expect("counted").messages == 10).await;
        expire(&sql, others).await;
    };
    let ((leased, lost), ()) = tokio::join!(call, crash);
    assert!(lost.is_empty());
    assert_eq!(leased.len(), 1, "it may have crashed its worker: {leased:?}");
}
