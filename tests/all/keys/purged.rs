//! A purge beside other sessions deletes what was there, and loses nothing that arrives.

use tokio_postgres::Client;

use super::{nth, settings};
use crate::fixture::{Place, connect, eventually, one_waits, place};

const PURGE: &str = "select trunkline.purge('q')";

async fn count(sql: &Client, what: &str) -> i64 {
    sql.query_one(&format!("select count(*) from {what}"), &[]).await.expect("counted").get(0)
}

#[tokio::test]
async fn message_that_arrives_during_a_purge_is_delivered() {
    let Place { queue, sql, url, .. } = place::<i64>(settings().partitions(1)).await;
    let (purging, locking) = (connect(&url).await, connect(&url).await);
    // Gives two keys backlogs without messages, and locks the second backlog.
    sql.batch_execute("select trunkline.do_line_q('{key 0,key 1}', '{3600,3600}')").await.expect("they rest");
    locking.batch_execute("begin; select from trunkline.line_q where key = 'key 1' for update").await.expect("locked");
    let purge = tokio::spawn(async move { purging.query_one(PURGE, &[]).await.expect("purged") });
    eventually("the purge waits or is done", async || purge.is_finished() || one_waits(&sql).await).await;
    queue.enqueue(nth(0, 1)).await.expect("enqueued");
    let lease = "select payload from trunkline.lease_partition('q', 9)";
    let during = sql.query(lease, &[]).await.expect("leased").len();
    locking.batch_execute("rollback").await.expect("unlocked");
    purge.await.expect("no panic");
    sql.batch_execute("update trunkline.line_q set until = '-infinity'").await.expect("they rest no longer");
    let after = sql.query(lease, &[]).await.expect("leased").len();
    assert_eq!(during + after, 1, "the key goes on");
}

#[tokio::test]
async fn row_that_is_split_meanwhile_is_purged_whole() {
    let Place { queue, sql, url, .. } = place::<i64>(trunkline::Settings::new("int8")).await;
    queue.enqueue_many(&(0..100).collect::<Vec<_>>()).await.expect("enqueued");
    queue.enqueue_many(&(0..100).collect::<Vec<_>>()).await.expect("enqueued");
    let purging = connect(&url).await;
    sql.batch_execute("begin; select from trunkline.lease('q', 1)").await.expect("leased");
    let purge = tokio::spawn(async move { purging.query_one(PURGE, &[]).await.expect("purged").get::<_, i64>(0) });
    let other = connect(&url).await;
    eventually("the purge waits", async || one_waits(&other).await).await;
    sql.batch_execute("commit").await.expect("committed");
    assert_eq!(purge.await.expect("no panic"), 200);
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}

#[tokio::test]
async fn purge_waits_for_no_lower_row_after_a_higher_one() {
    let Place { queue, sql, url, .. } = place::<i64>(trunkline::Settings::new("int8")).await;
    queue.enqueue_many(&(0..10).collect::<Vec<_>>()).await.expect("enqueued");
    queue.enqueue(10).await.expect("enqueued");
    queue.enqueue(11).await.expect("enqueued");
    let lease = "create table l as select id, attempt, payload::int from trunkline.lease('q', 20, '1 hour')";
    sql.batch_execute(lease).await.expect("leased");
    let ack = |payloads: &str| {
        format!(
            "select trunkline.ack_many('q', array_agg(id), array_agg(attempt)) from l where payload in ({payloads})"
        )
    };
    let (splitting, holding, purging, acking) =
        (connect(&url).await, connect(&url).await, connect(&url).await, connect(&url).await);
    splitting.batch_execute(&format!("begin; {}", ack("4"))).await.expect("split");
    holding.batch_execute(&format!("begin; {}", ack("11"))).await.expect("acknowledged");
    let purge = tokio::spawn(async move { purging.query_one(PURGE, &[]).await });
    eventually("the purge waits", async || one_waits(&sql).await).await;
    splitting.batch_execute("commit").await.expect("committed");
    // Waits until the purge has locked a row and waits for the last one. The messages of the first
    // row are not locked.
    let free = "pg_locks l join pg_stat_activity a using (pid)
                where not l.granted and l.locktype = 'transactionid' and a.datname = current_database()";
    eventually("it waits again", async || count(&sql, free).await == 1).await;
    let both = ack("5, 10");
    let acked = tokio::spawn(async move { acking.batch_execute(&both).await });
    eventually("both wait", async || count(&sql, free).await == 2).await;
    holding.batch_execute("commit").await.expect("committed");
    let acked = acked.await.expect("no panic");
    purge.await.expect("no panic").expect("purged");
    let code = acked.err().and_then(|error| error.code().map(|code| code.code().to_owned()));
    assert_ne!(code.as_deref(), Some("40P01"), "no deadlock");
}
