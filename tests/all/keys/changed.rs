//! A call that cancels or reschedules messages with keys waits for no lock, not even for that of
//! a partition or of a key.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::Settings;

use super::nth;
use crate::fixture::{Ids, Place, SOON, connect, place};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread")]
async fn transactions_cancel_in_opposite_orders_and_none_waits() {
    let Place { queue, db, sql, .. } = place::<i64>(Settings::new("int8").partitions(256)).await;
    let ids = queue.enqueue_many(&[nth(0, 0), nth(1, 0), nth(0, 1), nth(1, 1)]).await.expect("enqueued").ids();
    let lanes = "select count(distinct lane) from trunkline.queue_q";
    assert_eq!(sql.query_one(lanes, &[]).await.expect("counted").get::<_, i64>(0), 2);
    let (one, other) = (db.begin().await.expect("begun"), db.begin().await.expect("begun"));
    let calls = async {
        assert_eq!(queue.cancel_in(&one, &ids[..1]).await.expect("cancelled"), ids[..1]);
        assert_eq!(queue.cancel_in(&other, &ids[1..2]).await.expect("cancelled"), ids[1..2]);
        assert_eq!(queue.cancel_in(&one, &ids[1..2]).await.expect("passed over"), [0; 0]);
        assert_eq!(queue.reschedule_in(&other, &ids[..1], HOUR).await.expect("passed over"), [0; 0]);
        // Cancels in the transaction that has itself locked the partition.
        assert_eq!(queue.cancel_in(&one, &ids[2..]).await.expect("cancelled"), ids[2..3]);
        let cancelled = "select count(*) from trunkline.cancel('q', $1)";
        assert_eq!(sql.query_one(cancelled, &[&ids]).await.expect("passed over").get::<_, i64>(0), 0);
        // A call outside of a transaction is repeated until both open transactions have ended.
        let (again, named) = (queue.clone(), ids.clone());
        let cancelling = tokio::spawn(async move { again.cancel(&named).await });
        assert_eq!(queue.stats().await.expect("counted").messages, 4);
        assert!(!cancelling.is_finished());
        one.commit().await.expect("committed");
        other.rollback().await.expect("rolled back");
        assert_eq!(cancelling.await.expect("no panic").expect("cancelled"), [ids[1], ids[3]]);
    };
    timeout(SOON, calls).await.expect("no call waits for a lock");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_does_not_wait_for_a_failure_of_the_same_key() {
    let Place { queue, sql, url, .. } = place::<i64>(Settings::new("int8").partitions(1)).await;
    let other = connect(&url).await;
    let ids = queue.enqueue_many(&[nth(0, 0), nth(0, 1)]).await.expect("enqueued").ids();
    let fail = "select trunkline.retry('q', $1, 1, '1 hour', 'no')";
    sql.batch_execute("select trunkline.lease_partition('q', 2)").await.expect("leased");
    sql.execute(fail, &[&ids[0]]).await.expect("failed");
    sql.batch_execute("begin").await.expect("begun");
    sql.execute(fail, &[&ids[1]]).await.expect("failed");
    let cancel = "select trunkline.cancel('q', $1)";
    let first = &ids[..1];
    let rows = timeout(SOON, other.query(cancel, &[&first])).await.expect("it waits for no lock").expect("called");
    assert_eq!(rows.len(), 0, "the key's backlog is locked");
    sql.batch_execute("commit").await.expect("committed");
    assert_eq!(other.query(cancel, &[&first]).await.expect("cancelled").len(), 1);
}
