//! Tests the options of [`Dequeue`]: every call honours the options that are meaningful for it, and
//! refuses the others.

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use trunkline::{Dequeue, Lease, Settings, Wait};

use crate::fixture::{Place, SOON, enqueued, place, run_out};

#[tokio::test(flavor = "multi_thread")]
async fn every_lease_takes_the_lease_time_of_its_request() {
    let Place { queue, sql, db, .. } = place(Settings::new("int8").lease(Duration::from_secs(30))).await;
    enqueued(&queue, 4).await;
    let hour = |n: usize| Dequeue::up_to(n).lease_for(Duration::from_secs(3600));
    let mut consumer = queue.consumer(Wait::Adaptive);
    let first = consumer.lease(hour(1)).await.expect("leased");
    consumer.ack_and_lease(Vec::<Lease>::new(), hour(1)).await.expect("leased");
    queue.ack_and_lease(&first, hour(1)).await.expect("leased");
    let transaction = db.begin().await.expect("begun");
    let sent = queue.send_lease(&transaction, hour(1)).await.expect("sent");
    transaction.commit().await.expect("committed");
    assert_eq!(sent.await.expect("leased").len(), 1);
    let long = "select count(*) from trunkline.messages_q where due_at > clock_timestamp() + interval '59 minutes'";
    assert_eq!(sql.query_one(long, &[]).await.expect("counted").get::<_, i64>(0), 3);
}

#[tokio::test]
async fn options_without_meaning_for_a_call_are_refused() {
    let Place { queue, db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    let (leases, waits) = (Dequeue::up_to(1).lease_for(SOON), Dequeue::up_to(1).within(SOON));
    let mut consumer = queue.consumer(Wait::Adaptive);
    let transaction = db.begin().await.expect("begun");
    let refusals = [
        queue.take(leases).await.err(),
        queue.take_in(&transaction, leases).await.err(),
        queue.offer_take(leases).await.err(),
        consumer.take(leases).await.err(),
        consumer.take_in(&transaction, leases).await.err(),
        consumer.offer_take(leases).await.err(),
    ];
    for error in refusals {
        assert!(error.expect("refused").to_string().contains("a take has no lease"));
    }
    let refusals = [
        queue.take(waits).await.err(),
        queue.lease(waits).await.err(),
        queue.take_in(&transaction, waits).await.err(),
        queue.send_lease(&transaction, waits).await.err(),
        queue.ack_and_lease(Vec::<Lease>::new(), waits).await.err(),
        queue.offer_lease(waits).await.err(),
    ];
    for error in refusals {
        assert!(error.expect("refused").to_string().contains("call a consumer"));
    }
    let refused = consumer.take_in(&transaction, waits).await.expect_err("refused").to_string();
    assert!(refused.contains("await `Consumer::ready` with a timeout, then call `Queue::take_in`"), "{refused}");
    transaction.rollback().await.expect("rolled back");
    assert_eq!(queue.take(1).await.expect("taken")[0].payload, 1, "no refused call touched it");
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgement_is_reported_though_the_wait_after_it_fails() {
    let Place { db, queue, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    let leased = queue.lease(1).await.expect("leased");
    let waits = Arc::new(Notify::new());
    let told = waits.clone();
    let mut consumer = queue.consumer(Wait::Notify).before_wait(move || told.notify_one());
    let (outcome, ()) = tokio::join!(consumer.ack_and_lease(&leased, 1), async {
        waits.notified().await;
        db.drop_queue("q").await.expect("dropped");
    });
    let (none, lost) = outcome.expect("acknowledged");
    assert!(none.is_empty() && lost.is_empty());
    let error = consumer.ack_and_lease(Vec::<trunkline::Lease>::new(), 1).await.expect_err("there is no queue");
    assert!(error.is_no_queue(), "{error}");
}

/// The messages behind an exhausted one are read in steps that grow.
#[tokio::test(flavor = "multi_thread")]
async fn largest_number_of_messages_is_accepted_beside_an_exhausted_one() {
    for settings in [Settings::new("int8"), Settings::new("int8").priorities(2)] {
        let Place { queue, sql, db: _db, .. } = place(settings.max_attempts(1)).await;
        enqueued(&queue, 1).await;
        let leased = sql.query("select id from trunkline.lease('q', 1, '1 hour')", &[]).await.expect("leased");
        let second = enqueued(&queue, 1).await;
        run_out(&sql).await;
        let taken = sql.query("select id from trunkline.take('q', 2147483647)", &[]).await.expect("taken");
        assert_eq!((leased.len(), taken.len()), (1, 1));
        assert_eq!(taken[0].get::<_, i64>(0), second[0]);
        assert_eq!(queue.stats().await.expect("counted").dead, 1);
    }
}
