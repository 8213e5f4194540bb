//! Thousands of keys of one partition wait for their retries. Messages of other keys pass them.

use trunkline::Settings;

use crate::fixture::{Place, place};

/// The server ends a lease that compares all waiting keys with each other, or with each message.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_wait_cost_a_lease_no_more_than_one_look_at_each() {
    let Place { sql, db: _db, .. } = place::<i64>(Settings::new("int8").partitions(1)).await;
    sql.batch_execute(
        "insert into trunkline.queue_q (due_at, attempt, error, size, payload, lane, keys, line)
         select now() + interval '1 hour', 1, 'failed', 1, '{1}', 0, array['failed ' || i], 'failed ' || i from generate_series(1, 8000) i;
         insert into trunkline.line_q (lane, key, until)
         select 0, 'failed ' || i, now() + interval '1 hour' from generate_series(1, 8000) i;
         -- Every tenth row begins with a message that has to wait.
         insert into trunkline.queue_q (size, payload, lane, keys)
         select 100, array_fill(i::bigint, array[100]), 0,
                array(select case when k = 1 and i % 10 = 0 then 'failed ' || i else 'key ' || k end from generate_series(1, 100) k)
         from generate_series(1, 200) i;
         set statement_timeout = '20 s'",
    )
    .await
    .expect("filled");
    // A call moves a few messages to the backlogs of their keys.
    let lease = "select sum(l.size) from generate_series(0, 39) i, trunkline.do_lanes_q(1000, null, 7 + 0 * i) l";
    assert_eq!(sql.query_one(lease, &[]).await.expect("leased").get::<_, i64>(0), 19_980);
    let waiting = "select count(*) from trunkline.queue_q where line <> ''";
    assert_eq!(sql.query_one(waiting, &[]).await.expect("counted").get::<_, i64>(0), 8020);
}
