//! Another session keeps a message of a worker locked. Other messages of that worker are not
//! affected.

use std::{future::pending, time::Duration};

use trunkline::{Failure, Message, Settings, Worker};

use crate::fixture::{Place, Runs, connect, eventually, place};

#[tokio::test(flavor = "multi_thread")]
async fn locked_message_holds_up_no_other_renewal() {
    let Place { queue, sql, url, db: _db } = place::<i64>(Settings::new("int8").lease(Duration::from_secs(4))).await;
    let locked = queue.enqueue(1).await.expect("enqueued").id();
    let other = queue.enqueue(2).await.expect("enqueued").id();
    let worker = Worker::new(queue.clone(), |_: Message<i64>| pending::<Result<(), Failure>>());
    let runs = Runs::start(worker.concurrency(2).shutdown_after(Duration::ZERO));
    let both = "select count(*) = 2 from trunkline.queue_q where attempt = 1";
    eventually("both are leased", || async { sql.query_one(both, &[]).await.expect("read").get(0) }).await;
    let session = connect(&url).await;
    session.batch_execute("begin").await.expect("begun");
    session.execute("select from trunkline.queue_q where id = $1 for update", &[&locked]).await.expect("locked");
    // Checks that the lease is renewed. Otherwise it would end within four seconds.
    let renewed = "select attempt = 1 and due_at > trunkline.clock() + interval '2 seconds'
                     and due_at > $2::timestamptz + interval '6 seconds' from trunkline.queue_q where id = $1";
    let until: std::time::SystemTime =
        sql.query_one("select due_at from trunkline.queue_q where id = $1", &[&other]).await.expect("read").get(0);
    eventually("the other lease was renewed twice", || async {
        sql.query_one(renewed, &[&other, &until]).await.expect("still leased").get(0)
    })
    .await;
    session.batch_execute("rollback").await.expect("unlocked");
    runs.stop().await;
}
