//! An extension of a lease does not wait for other ends of leases.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::Settings;

use crate::fixture::{Place, SOON, connect, enqueued, eventually, place};

const WAITS: &str =
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";

#[tokio::test(flavor = "multi_thread")]
async fn extension_does_not_wait_for_blocked_releases() {
    let Place { url, queue, sql, db } = place(Settings::new("int8").max_batch(1)).await;
    enqueued(&queue, 2).await;
    let held = queue.lease(2).await.expect("leased");
    let locker = connect(&url).await;
    locker.batch_execute("begin").await.expect("begun");
    let mut releasing = Vec::new();
    // Each waiting release occupies a connection. After three releases, both connections that
    // queues share are occupied.
    for name in ["q", "r", "s"] {
        let (queue, lease) = if name == "q" {
            (queue.clone(), held[0].lease())
        } else {
            db.create_queue(name, &Settings::new("int8")).await.expect("created");
            let queue = db.queue::<i64>(name).await.expect("opened");
            enqueued(&queue, 1).await;
            let lease = queue.lease(1).await.expect("leased")[0].lease();
            (queue, lease)
        };
        let lock = format!("select from trunkline.queue_{name} where id = {} for update", lease.id);
        locker.batch_execute(&lock).await.expect("locked");
        releasing.push((queue, lease));
    }
    let releasing: Vec<_> =
        releasing.into_iter().map(|(queue, lease)| tokio::spawn(async move { queue.release([lease]).await })).collect();
    let both_wait = async || sql.query_one(WAITS, &[]).await.expect("asked").get::<_, i64>(0) >= 2;
    eventually("both connections wait for a row", both_wait).await;
    let extending = queue.extend(&held[1..], Duration::from_secs(3600));
    timeout(SOON, extending).await.expect("in time").expect("extended");
    assert!(releasing.iter().all(|releasing| !releasing.is_finished()));
    locker.batch_execute("commit").await.expect("unlocked");
    for releasing in releasing {
        timeout(SOON, releasing).await.expect("in time").expect("no panic").expect("released");
    }
}
