//! An asynchronous standby is promoted without the last commits of its primary.

use trunkline::{Db, Queue, Settings};

use super::{HOUR, jump, server::Server};
use crate::fixture::{connect, eventually};

/// The number of rows whose commits are lost. It is larger than the number of values by which
/// PostgreSQL logs a sequence ahead.
const LOST: i64 = 40;

async fn enqueue(queue: &Queue<i64>, payloads: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut ids = Vec::new();
    for payload in payloads {
        ids.push(queue.enqueue(payload).await.expect("enqueued").id());
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_commits_repeat_ids_and_attempts_unless_sequences_jump() {
    let (mut primary, mut standby) = (Server::start(None, &[]), Server::start(None, &[]));
    let db = Db::connect(&primary.url()).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8").lease(HOUR)).await.expect("created");
    drop(db);
    standby.follows(&mut primary);
    let db = Db::connect(&primary.url()).await.expect("connected");
    let queue = db.queue::<i64>("q").await.expect("opened");
    enqueue(&queue, [0]).await;
    let looks = connect(&standby.url()).await;
    eventually("the standby has followed", async || {
        let count = "select count(*) from trunkline.queue_q";
        looks.query_one(count, &[]).await.expect("read").get::<_, i64>(0) == 1
    })
    .await;
    drop(looks);
    standby.stop();

    let lost = enqueue(&queue, 1..=LOST).await;
    let leased = queue.lease(100).await.expect("leased");
    let stale = leased.into_iter().find(|message| message.id == lost[lost.len() - 1]).expect("it is due");
    assert_eq!((stale.payload, stale.attempt), (LOST, 1));
    drop((queue, db));
    primary.stop();
    standby.start_again();
    let sql = connect(&standby.url()).await;
    assert!(sql.query_one("select pg_promote()", &[]).await.expect("promoted").get::<_, bool>(0));

    let db = Db::connect(&standby.url()).await.expect("connected");
    let queue = db.queue::<i64>("q").await.expect("opened");
    enqueue(&queue, 101..=100 + LOST).await;
    let leased = queue.lease(100).await.expect("leased");
    let other = leased.into_iter().find(|message| message.id == stale.id).expect("the id is used again");
    assert!(other.payload > 100, "{other:?}");
    queue.ack([&stale]).await.expect("the stale lease names the other message");
    assert!(queue.ack([&other]).await.expect_err("it is gone").is_lease_lost());

    sql.batch_execute(jump()).await.expect("advanced");
    let next = enqueue(&queue, [200]).await[0];
    assert!(next > stale.id + 1024 * 999_999_000 && next % 1024 == 0, "{next}");
}
