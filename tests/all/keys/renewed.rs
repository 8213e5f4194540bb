//! A lease releases a partition while another session renews the leases of the same worker.

use super::{nth, settings};
use crate::fixture::{Place, connect, eventually, one_waits, place};

#[tokio::test(flavor = "multi_thread")]
async fn lease_that_releases_a_partition_never_deadlocks_with_a_renewal() {
    let Place { queue, sql, url, db: _db } = place::<i64>(settings()).await;
    let key = "select min(k) from generate_series(0, 99) k where trunkline.lane_of('key ' || k, 8) = 5";
    let key: i32 = sql.query_one(key, &[]).await.expect("read").get(0);
    queue.enqueue(nth(key as usize, 0)).await.expect("enqueued");
    // The worker holds two partitions, and another worker has asked for the first of them.
    sql.batch_execute(
        "update trunkline.lane_q set holder = 7, held_until = clock_timestamp() + interval '1 minute',
             wanted_until = case lane when 2 then clock_timestamp() + interval '1 minute' else '-infinity' end
         where lane in (2, 5)",
    )
    .await
    .expect("held");
    let renewal = connect(&url).await;
    renewal.batch_execute("begin; select from trunkline.lane_q where lane = 2 for update").await.expect("locked");
    let leases = connect(&url).await;
    let leasing =
        tokio::spawn(async move { leases.query("select id from trunkline.do_lanes_q(9, '1 minute', 7)", &[]).await });
    eventually("the lease waits", || one_waits(&sql)).await;
    let next = "select from trunkline.lane_q where lane = 5 for update; commit";
    renewal.batch_execute(next).await.expect("no deadlock");
    assert_eq!(leasing.await.expect("no panic").expect("no deadlock").len(), 1);
    let left = "select array_agg(lane::int) from trunkline.lane_q where holder = 7";
    assert_eq!(sql.query_one(left, &[]).await.expect("read").get::<_, Vec<i32>>(0), [5]);
}
