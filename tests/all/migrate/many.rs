//! Migrates many queues on a server with few locks.

use trunkline::Db;
use trunkline_embedded::Cluster;

use super::two_attempts;
use crate::fixture::{connect, settled};

/// A queue has about forty functions. If a migration locked all functions, a server with default
/// settings would have enough locks for only a few hundred queues. This test's server would have
/// enough for only forty.
#[tokio::test(flavor = "multi_thread")]
async fn many_queues_migrate_with_few_locks() {
    let cluster = tokio::task::spawn_blocking(|| {
        let settings = Cluster::temporary().setting("fsync", "off").setting("max_locks_per_transaction", "10");
        settings.setting("max_connections", "20").start().expect("a private PostgreSQL starts")
    });
    let cluster = cluster.await.expect("no panic");
    let url = settled(&cluster.url("postgres"));
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.migrate().await.expect("migrated");
    for nr in 0..40 {
        db.create_queue(&format!("q{nr}"), &two_attempts()).await.expect("created");
    }
    sql.batch_execute(
        "delete from trunkline.version where version > 25; -- the last step before the shared functions
         alter table trunkline.queue_q39 set (autovacuum_vacuum_cost_delay = 2);
         alter table trunkline.queue_q38 reset (autovacuum_vacuum_cost_delay);
         update trunkline.version set functions = 'an earlier release''s';
         comment on function trunkline.do_ack_q39(bigint[], int[], int[]) is 'as it was'",
    )
    .await
    .expect("changed");
    db.migrate().await.expect("migrated");
    let described = "select obj_description(oid, 'pg_proc') from pg_proc where proname = 'do_ack_q39'";
    let described: Option<String> = sql.query_one(described, &[]).await.expect("the catalog is read").get(0);
    assert_eq!(described, None);
    let delays = "select substring(array_to_string(reloptions, ',') from 'cost_delay=(.*)') from pg_class
                  where relname in ('queue_q38', 'queue_q39') order by relname";
    let delays: Vec<String> =
        sql.query(delays, &[]).await.expect("the catalog is read").iter().map(|row| row.get(0)).collect();
    assert_eq!(delays, ["0", "2"], "what an operator has set stays");
}
