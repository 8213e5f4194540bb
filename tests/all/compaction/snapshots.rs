//! Transactions above read committed whose snapshot is older than a compaction. The snapshot shows
//! the copied table as empty.

use tokio_postgres::{Client, error::SqlState};

use super::{draft, freed, old_snapshot, settings, waste};
use crate::fixture::{Place, eventually, place};

/// Copies a table as a compaction does, however small the table is.
async fn copied(sql: &Client, table: &str) {
    let file = format!("select pg_relation_filenode('trunkline.{table}')");
    let number = async || -> u32 { sql.query_one(&file, &[]).await.expect("read").get(0) };
    let before = number().await;
    let copy = format!(
        "begin; lock table only trunkline.{table} in share update exclusive mode;
         select trunkline.rewrite(null::trunkline.{table}[], 'trunkline.{table}', 0, '2 s'); commit"
    );
    eventually("it is copied", || async {
        sql.batch_execute(&copy).await.expect("called");
        number().await != before
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unique_key_of_a_hidden_message_is_not_claimed_again() {
    let Place { queue, url, sql, db: _db } = place::<i64>(settings("uniqueness")).await;
    queue.enqueue(draft("uniqueness", 1)).await.expect("enqueued");
    waste(&sql).await;
    let old = old_snapshot(&url).await;
    freed(&sql).await;
    let again = "select outcome from trunkline.enqueue_unique('q', 2::int8, 'u1')";
    let error = old.query(again, &[]).await.expect_err("its snapshot shows no message");
    assert_eq!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE), "{error:?}");
    old.batch_execute("rollback; begin isolation level repeatable read").await.expect("begun again");
    assert_eq!(old.query_one(again, &[]).await.expect("enqueued").get::<_, String>(0), "duplicate");

    // A claim without a message, as after a restore, is free in such a transaction, too.
    sql.batch_execute("insert into trunkline.unique_q (key, id) values ('orphan', 7)").await.expect("inserted");
    old.batch_execute("commit; begin isolation level repeatable read").await.expect("begun again");
    let orphan = "select outcome from trunkline.enqueue_unique('q', 3::int8, 'orphan')";
    assert_eq!(old.query_one(orphan, &[]).await.expect("enqueued").get::<_, String>(0), "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn key_order_is_not_decided_by_an_older_snapshot() {
    let Place { queue, url, sql, db: _db } = place::<i64>(settings("keys")).await;
    for n in [0, 7] {
        queue.enqueue(draft("keys", n)).await.expect("enqueued"); // both have the same key
    }
    let lease = "select holder, id, attempt from trunkline.lease_partition('q', 1)";
    let first = sql.query_one(lease, &[]).await.expect("leased");
    let (holder, id, attempt): (i64, i64, i32) = (first.get(0), first.get(1), first.get(2));
    let is_refused = async |table: &str, call: &str| {
        let old = old_snapshot(&url).await;
        copied(&sql, table).await;
        let error = old.query(call, &[]).await.expect_err(call);
        assert_eq!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE), "{call}: {error:?}");
    };
    let release = format!("select trunkline.release_partition('q', {holder})");
    // The snapshot shows no lease, no partition, and no key that waits for a retry.
    is_refused("queue_q", &release).await;
    is_refused("lane_q", &format!("select trunkline.extend('q', {id}, {attempt}, '1 minute')")).await;
    let retry = format!("select trunkline.retry('q', {id}, {attempt}, '1 hour'); {release}");
    sql.batch_execute(&retry).await.expect("retried and released");
    is_refused("line_q", lease).await;
    assert!(sql.query(lease, &[]).await.expect("asked").is_empty(), "the second waits behind the first");
}
