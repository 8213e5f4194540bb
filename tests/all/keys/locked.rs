//! Another session keeps a message locked that a worker gives back.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, mpsc},
    time::timeout,
};
use trunkline::{Failure, Message, Worker};

use super::{nth, settings};
use crate::fixture::{Ids as _, Place, Runs, SOON, connect, eventually, one_waits, place};

/// The message is behind a failed one, so its release waits for the lock.
#[tokio::test(flavor = "multi_thread")]
async fn locked_message_that_goes_back_stops_no_other_key() {
    let settings = settings().partitions(1).max_batch(1).lease(Duration::from_secs(600));
    let Place { queue, sql, url, db: _db } = place::<i64>(settings).await;
    let three: Vec<_> = (0..3).map(|at| nth(0, at)).collect();
    let ids = queue.enqueue_many(&three).await.expect("enqueued").ids();
    let (gate, (tells, mut told)) = (Arc::new(Semaphore::new(0)), mpsc::unbounded_channel());
    let opens = gate.clone();
    let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
        let (gate, tells) = (opens.clone(), tells.clone());
        async move {
            tells.send(message.payload).expect("the test listens");
            if message.payload > 0 {
                return Ok(());
            }
            gate.acquire().await.expect("open").forget();
            Err(Failure::retry_after(Duration::from_secs(3600), "later"))
        }
    });
    let runs = Runs::start(worker.concurrency(4));
    assert_eq!(timeout(SOON, told.recv()).await.expect("in time"), Some(0));
    let leased = "select count(*) = 3 from trunkline.queue_q where attempt = 1";
    eventually("all are leased", || async { sql.query_one(leased, &[]).await.expect("read").get(0) }).await;
    let session = connect(&url).await;
    session.batch_execute("begin").await.expect("begun");
    session.execute("select from trunkline.queue_q where id = $1 for update", &[&ids[1]]).await.expect("locked");
    gate.add_permits(1);
    eventually("its release waits", || one_waits(&sql)).await;
    queue.enqueue(nth(1, 7)).await.expect("enqueued");
    assert_eq!(timeout(SOON, told.recv()).await.expect("the worker goes on"), Some(7));
    session.batch_execute("rollback").await.expect("unlocked");
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried, summary.released, summary.lost), (1, 1, 2, 0), "{summary:?}");
}
