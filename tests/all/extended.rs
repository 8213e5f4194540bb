//! An extension of a lease does not wait for other ends of leases.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::Settings;

use crate::fixture::{Place, SOON, connect, enqueued, eventually, place};

#[tokio::test(flavor = "multi_thread")]
async fn extension_does_not_wait_for_a_blocked_release() {
    let Place { url, queue, sql, db: _db } = place(Settings::new("int8").max_batch(1)).await;
    enqueued(&queue, 2).await;
    let held = queue.lease(2).await.expect("leased");
    let locker = connect(&url).await;
    let lock = format!("begin; select from trunkline.queue_q where id = {} for update", held[0].id);
    locker.batch_execute(&lock).await.expect("locked");
    let releasing = tokio::spawn({
        let (queue, lease) = (queue.clone(), held[0].lease());
        async move { queue.release([lease]).await }
    });
    let waits =
        "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())";
    eventually("it waits for the row", async || sql.query_one(waits, &[]).await.expect("asked").get(0)).await;
    let extending = queue.extend(&held[1..], Duration::from_secs(3600));
    timeout(SOON, extending).await.expect("in time").expect("extended");
    assert!(!releasing.is_finished());
    locker.batch_execute("commit").await.expect("unlocked");
    timeout(SOON, releasing).await.expect("in time").expect("no panic").expect("released");
}
