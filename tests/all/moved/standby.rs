//! A compaction reaches a hot standby, like any other `truncate`.

use tokio_postgres::error::SqlState;
use trunkline::{Db, Queue, Settings};

use super::{compacted, server::Server};
use crate::fixture::{connect, eventually};

/// A reader that blocks a compaction is cancelled after `max_standby_streaming_delay`. Afterwards
/// all messages exist. An older snapshot sees an empty queue.
#[tokio::test(flavor = "multi_thread")]
async fn standby_has_all_messages_after_a_compaction_and_cancels_who_reads_them() {
    let mut here = Server::start(None, &[]);
    let mut standby = Server::start(None, &[("max_standby_streaming_delay", "1s")]);
    let db = Db::connect(&here.url()).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    drop(db);
    standby.follows(&mut here);
    let db = Db::connect(&here.url()).await.expect("connected");
    let queue: Queue<i64> = db.queue("q").await.expect("opened");
    for n in 0..50 {
        queue.enqueue(n).await.expect("enqueued");
    }
    queue.take(20).await.expect("taken");
    let sql = connect(&here.url()).await;
    let (reads, older, looks) =
        (connect(&standby.url()).await, connect(&standby.url()).await, connect(&standby.url()).await);
    let left = "select coalesce(sum(size), 0)::int8 from trunkline.queue_q";
    let count = async || looks.query_one(left, &[]).await.expect("read").get::<_, i64>(0);
    eventually("the standby has followed", async || count().await == 30).await;
    older.batch_execute("begin isolation level repeatable read; select 1 from trunkline.queue").await.expect("held");
    reads.batch_execute("begin; select from trunkline.queue_q").await.expect("read");

    compacted(&sql, "q").await;
    let written: String = sql.query_one("select pg_current_wal_lsn()::text", &[]).await.expect("asked").get(0);
    let is_replayed = "select pg_last_wal_replay_lsn() >= $1::text::pg_lsn";
    eventually("the standby has replayed it", async || {
        looks.query_one(is_replayed, &[&written]).await.expect("asked").get(0)
    })
    .await;
    let error = reads.query_one(left, &[]).await.expect_err("cancelled");
    let says = error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    assert!(error.is_closed() || says.contains("conflict with recovery"), "{says}");
    assert!(error.code().is_none_or(|code| *code == SqlState::T_R_SERIALIZATION_FAILURE), "{error:?}");
    assert_eq!(count().await, 30);
    assert_eq!(older.query_one(left, &[]).await.expect("read").get::<_, i64>(0), 0, "documented in operations.md");
    assert_eq!(queue.take(50).await.expect("taken").len(), 30);
}
