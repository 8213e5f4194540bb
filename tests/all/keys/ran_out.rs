//! Leases through partitions return messages whose leases have expired. Each of these messages may
//! have crashed its worker.

use tokio_postgres::Client;
use trunkline::Settings;

use super::{nth, settings};
use crate::fixture::{Place, place, run_out};

/// Creates four messages with expired leases, each in its own partition. Each of the other four
/// partitions has a message that was never leased.
async fn four_ran_out(settings: Settings) -> Place<i64> {
    let place = place::<i64>(settings).await;
    let one_each = "select distinct on (trunkline.lane_of('key ' || k, 8)) k from generate_series(0, 99) k order by trunkline.lane_of('key ' || k, 8), k";
    let keys: Vec<i32> = place.sql.query(one_each, &[]).await.expect("read").iter().map(|row| row.get(0)).collect();
    assert_eq!(keys.len(), 8);
    let drafts: Vec<_> = keys.iter().map(|key| nth(*key as usize, 0)).collect();
    place.queue.enqueue_many(&drafts[..4]).await.expect("enqueued");
    let leased = place.sql.query("select id from trunkline.do_lanes_q(100, '1 minute', 7)", &[]).await.expect("leased");
    assert_eq!(leased.len(), 4);
    crash(&place.sql).await;
    place.queue.enqueue_many(&drafts[4..]).await.expect("enqueued");
    place
}

/// Expires all leases and frees all partitions.
async fn crash(sql: &Client) {
    run_out(sql).await;
    sql.batch_execute("update trunkline.lane_q set held_until = clock_timestamp()").await.expect("the lanes are free");
}

/// Counts the messages that a call returns: the messages marked as expired, the messages that were
/// leased before, and all messages.
async fn brought(sql: &Client, call: &str) -> (i64, i64, i64) {
    let counted = format!(
        "select count(*) filter (where b.ran_out), count(*) filter (where b.attempt > 1), count(*) from trunkline.{call} b"
    );
    let row = sql.query_one(&counted, &[]).await.expect("leased");
    (row.get(0), row.get(1), row.get(2))
}

#[tokio::test]
async fn messages_expired_once_come_together_and_twice_expired_ones_alone() {
    let Place { sql, .. } = four_ran_out(settings()).await;
    let worker = "do_lanes_q(100, '1 minute', 9)";
    assert_eq!(brought(&sql, worker).await, (0, 4, 8), "all that was never leased, and all that was once");
    crash(&sql).await;
    assert_eq!(
        brought(&sql, worker).await,
        (1, 5, 5),
        "four that ran out for the first time, and one that did so again"
    );
    for _ in 0..3 {
        assert_eq!(brought(&sql, worker).await, (1, 1, 1), "each the next, because it runs that alone");
    }
    assert_eq!(brought(&sql, worker).await, (0, 0, 0));
}

#[tokio::test]
async fn messages_without_a_spare_attempt_come_alone_after_one_expiry() {
    let Place { sql, .. } = four_ran_out(settings().max_attempts(2)).await;
    let worker = "do_lanes_q(100, '1 minute', 9)";
    assert_eq!(brought(&sql, worker).await, (1, 1, 5), "all that was never leased, and one that was");
    for _ in 0..3 {
        assert_eq!(brought(&sql, worker).await, (1, 1, 1));
    }
    assert_eq!(brought(&sql, worker).await, (0, 0, 0));
}

#[tokio::test]
async fn sql_lease_gets_expired_messages_alone() {
    let Place { sql, .. } = four_ran_out(settings()).await;
    let (mut alone, mut others) = (0, 0);
    while alone + others < 8 {
        match brought(&sql, "do_lanes_q(100, '1 minute', 9, '-infinity', 8)").await {
            (1, 1, 1) => alone += 1,
            (0, 0, count @ 1..) => others += count,
            brought => panic!("{brought:?}"),
        }
    }
    assert_eq!((alone, others), (4, 4));
}
