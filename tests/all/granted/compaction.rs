//! A consumer can compact its queue, although only the owner may truncate. A producer cannot stop a
//! queue by compacting it. Changes of rights wait for a compaction.

use trunkline::Settings;

use super::{refused, role};
use crate::{
    compaction::waste,
    fixture::{Place, connect, eventually, place},
};

#[tokio::test(flavor = "multi_thread")]
async fn consumer_compacts_and_producer_does_not() {
    let Place { queue, url, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue_many(&[1, 2, 3]).await.expect("enqueued");
    waste(&sql).await;
    let (_producing, producer) = role("compact_producer", "producer", &sql, &url).await;
    let (_consuming, consumer) = role("compact_consumer", "consumer", &sql, &url).await;
    refused(
        &producer,
        &[
            "select trunkline.compact('q', 0)",
            "select trunkline.rewrite(null::trunkline.queue_q[], 'trunkline.queue_q', 0, '1 s')",
        ],
    )
    .await;
    refused(
        &consumer,
        &[
            "truncate trunkline.queue_q",
            "alter table trunkline.queue_q disable trigger refuse_row",
            "select trunkline.rewrite(null::trunkline.queue_q[], 'trunkline.queue_q', 0, '1 s')",
        ],
    )
    .await;
    let row = consumer.query_one("select freed, refused from trunkline.compact('q', 0)", &[]).await.expect("called");
    assert!(row.get::<_, i64>(0) > 0, "{row:?}");
    assert_eq!(queue.take(4).await.expect("taken").len(), 3);
}

/// A compaction truncates a table, and so replaces the row of the catalog that also contains the
/// table's rights.
#[tokio::test(flavor = "multi_thread")]
async fn rights_are_granted_and_revoked_while_a_table_is_compacted() {
    let Place { db, url, sql, .. } = place::<i64>(Settings::new("int8").uniqueness(true)).await;
    db.create_queue("keyed", &Settings::new("int8").partitions(2)).await.expect("created");
    let create = "do $$ begin create role during_compaction; exception when duplicate_object then null; end $$";
    sql.batch_execute(create).await.expect("created");
    let changing = connect(&url).await;
    let pid: i32 = changing.query_one("select pg_backend_pid()", &[]).await.expect("known").get(0);
    for (queue, table) in [("q", "queue_q"), ("q", "unique_q"), ("keyed", "line_keyed"), ("keyed", "lane_keyed")] {
        for change in [
            format!("grant_rights('during_compaction', 'consumer', '{queue}')"),
            format!("pause_queue('{queue}')"),
            format!("revoke_rights('during_compaction', '{queue}')"),
        ] {
            let truncate = format!("begin; truncate only trunkline.{table}");
            sql.batch_execute(&truncate).await.expect("as a compaction does");
            let call = format!("select trunkline.{change}");
            let waits = async || {
                let waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = $1";
                eventually("it waits", async || {
                    sql.query_one(waits, &[&pid]).await.expect("seen").get::<_, Option<bool>>(0) == Some(true)
                })
                .await;
                sql.batch_execute("commit").await.expect("compacted");
            };
            let (changed, ()) = tokio::join!(changing.batch_execute(&call), waits());
            changed.unwrap_or_else(|error| panic!("{change} beside a compaction of {table}: {error:?}"));
        }
        sql.batch_execute(&format!("select trunkline.resume_queue('{queue}')")).await.expect("resumed");
    }
}
