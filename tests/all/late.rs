//! A worker whose lease has ended can change nothing.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Client;
use trunkline::{Lease, Message, Queue, Settings};

use crate::fixture::{Place, SOON, enqueued, leased_again, place, run_out};

/// Returns the rows of the queue, its dead letters and its archive, as text.
async fn lines(sql: &Client) -> Vec<String> {
    let all = "select q::text from trunkline.queue_q q union all select d::text from trunkline.dead_q d
               union all select a::text from trunkline.archive_q a order by 1";
    sql.query(all, &[]).await.expect("read").iter().map(|row| row.get(0)).collect()
}

/// Tries every way to end a lease, with and without a transaction. Each call must be refused for
/// exactly these messages.
async fn is_late(queue: &Queue<i64>, sql: &mut Client, leases: &[Lease]) {
    let mut ids: Vec<i64> = leases.iter().map(|lease| lease.id).collect();
    ids.sort_unstable();
    let before = lines(sql).await;
    for (end, outcome) in [
        ("ack", queue.ack(leases).await),
        ("retry", queue.retry(leases, Duration::ZERO, "late").await),
        ("extend", queue.extend(leases, Duration::from_secs(60)).await),
        ("archive", queue.archive(leases).await),
        ("bury", queue.bury(leases, "late").await),
        ("release", queue.release(leases).await),
    ] {
        let error = outcome.expect_err(end);
        assert!(error.is_lease_lost(), "{end}: {error}");
        assert_eq!(error.lost_ids(), ids, "{end}");
    }
    let transaction = sql.transaction().await.expect("begun");
    let error = queue.ack_in(&transaction, leases).await.expect_err("late");
    assert!(error.is_lease_lost() && error.lost_ids() == ids, "{error:?}");
    transaction.commit().await.expect("an ack that finds nothing leaves the transaction whole");
    assert_eq!(lines(sql).await, before, "a late worker changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_outlived_its_lease_changes_nothing() {
    let Place { queue, mut sql, db: _db, .. } = place(Settings::new("int8")).await;
    for size in [1, 5] {
        enqueued(&queue, size).await;
        let first: Vec<Lease> = queue.lease(10).await.expect("leased").iter().map(Message::lease).collect();
        assert_eq!(first.len() as i64, size);
        run_out(&sql).await;
        // An expired lease is lost even before another worker has the message, because leases end
        // by time.
        is_late(&queue, &mut sql, &first).await;
        let second = leased_again(&queue, first.len()).await;
        assert_eq!(
            second.iter().map(Message::lease).collect::<Vec<_>>(),
            first.iter().map(|lease| Lease { id: lease.id, attempt: 2 }).collect::<Vec<_>>()
        );
        is_late(&queue, &mut sql, &first).await; // the first worker is late while the second one works
        queue.ack(&second).await.expect("the lease is held");
        is_late(&queue, &mut sql, &first).await; // after the second worker finished
        assert_eq!(queue.stats().await.expect("counted").messages, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_ends_once() {
    let Place { queue, mut sql, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 4).await;
    let messages = queue.lease(4).await.expect("leased");
    let leases: Vec<Lease> = messages.iter().map(Message::lease).collect();
    queue.ack([leases[0], leases[0]]).await.expect("the same message twice in a call is one");
    is_late(&queue, &mut sql, &leases[..1]).await;
    queue.retry(&leases[1..2], Duration::from_secs(60), "mine").await.expect("given back");
    is_late(&queue, &mut sql, &leases[1..2]).await;
    queue.archive(&leases[2..3]).await.expect("archived");
    is_late(&queue, &mut sql, &leases[2..3]).await;
    queue.extend(&leases[3..], Duration::from_secs(60)).await.expect("extended");
    queue.ack(&leases[3..]).await.expect("an extended lease is held");
    is_late(&queue, &mut sql, &leases).await;
}

/// A lease that was given back stays invalid, even for the same attempt number or in an identical
/// queue.
#[tokio::test(flavor = "multi_thread")]
async fn a_released_lease_cannot_acknowledge_the_next_holders_message() {
    let Place { queue, mut sql, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 1).await;
    let first = queue.lease(1).await.expect("leased");
    queue.release(&first).await.expect("released");
    let second = queue.lease(1).await.expect("leased");
    is_late(&queue, &mut sql, &[first[0].lease()]).await;
    queue.ack(&second).await.expect("held");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_leases_end_beside_lost_ones_in_one_call() {
    let Place { queue, mut sql, db: _db, .. } = place(Settings::new("int8")).await;
    let ids = enqueued(&queue, 10).await;
    let messages = queue.lease(10).await.expect("leased");
    queue.ack([&messages[2], &messages[7]]).await.expect("held");
    let error = queue.ack(&messages[1..9]).await.expect_err("two of them are gone");
    assert_eq!(error.lost_ids(), [ids[2], ids[7]]);
    let left: Vec<i64> = queue.peek(10).await.expect("peeked").iter().map(|message| message.id).collect();
    assert_eq!(left, [ids[0], ids[9]]);

    // Ends leases in a transaction, whose outcome is up to the caller. After a rollback, the valid
    // leases are still held.
    let transaction = sql.transaction().await.expect("begun");
    let error = queue.ack_in(&transaction, &messages[8..]).await.expect_err("one of them is gone");
    assert_eq!(error.lost_ids(), [ids[8]]);
    transaction.rollback().await.expect("rolled back");
    queue.ack([&messages[0], &messages[9]]).await.expect("held");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgement_in_a_transaction_follows_it() {
    let Place { queue, mut sql, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 10).await;
    let messages = queue.lease(10).await.expect("leased");
    let transaction = sql.transaction().await.expect("begun");
    queue.ack_in(&transaction, &messages[4..6]).await.expect("held");
    transaction.rollback().await.expect("rolled back");
    assert_eq!(queue.stats().await.expect("counted").leased, 10);
    let transaction = sql.transaction().await.expect("begun");
    queue.ack_in(&transaction, &messages[4..6]).await.expect("held");
    // Ends other leases of the same row. These calls do not wait for the open transaction.
    let neighbours = async {
        queue.ack(&messages[3..4]).await?;
        queue.retry(&messages[6..7], Duration::from_secs(9), "later").await?;
        queue.extend(&messages[7..8], Duration::from_secs(90)).await?;
        queue.archive([&messages[0], &messages[9]]).await
    };
    timeout(SOON, neighbours).await.expect("no call waits for another transaction's commit").expect("held");
    transaction.commit().await.expect("committed");
    let left = queue.peek(10).await.expect("peeked");
    let mut payloads: Vec<i64> = left.iter().map(|message| message.payload).collect();
    payloads.sort_unstable();
    assert_eq!(payloads, [1, 2, 6, 7, 8]);
}

/// The new holder's transaction is open when the late worker sends its request. The answer does not
/// depend on that transaction.
#[tokio::test(flavor = "multi_thread")]
async fn late_worker_does_not_wait_for_the_new_holders_transaction() {
    let Place { queue, mut sql, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 10).await;
    let first = queue.lease(10).await.expect("leased");
    // all messages fail in the same way, so they stay in one row
    queue.retry(&first, Duration::ZERO, "all of them").await.expect("given back");
    let second = queue.lease(10).await.expect("leased");
    let transaction = sql.transaction().await.expect("begun");
    queue.ack_in(&transaction, &second).await.expect("held");
    let error = timeout(SOON, queue.ack(&first[4..6])).await.expect("no waiting").expect_err("late");
    assert_eq!(error.lost_ids(), [first[4].id, first[5].id]);
    transaction.commit().await.expect("committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_message_of_a_batch_can_be_acknowledged_alone() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 1024).await;
    let messages = queue.lease(1024).await.expect("leased");
    let calls = messages.iter().map(|message| {
        let (queue, lease) = (queue.clone(), message.lease());
        tokio::spawn(async move { queue.ack([lease]).await })
    });
    for call in futures_util::future::join_all(calls).await {
        call.expect("no panic").expect("held");
    }
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}
