//! Sessions of other programs that keep a lock: they stop only the calls that need it.

use tokio::time::timeout;
use tokio_postgres::Client;
use trunkline::{Queue, Settings};

use crate::fixture::{Place, SOON, connect, enqueued, eventually, place};

/// Creates another queue beside `q`.
async fn another(db: &trunkline::Db, name: &str) -> Queue<i64> {
    db.create_queue(name, &Settings::new("int8")).await.expect("created");
    db.queue(name).await.expect("opened")
}

/// Counts the sessions that wait for a lock.
async fn waiting(sql: &Client) -> i64 {
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    sql.query_one(waits, &[]).await.expect("visible").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_messages_of_two_queues_stop_no_third_one() {
    let Place { queue, sql, url, db } = place::<i64>(Settings::new("int8")).await;
    let (other, free) = (another(&db, "other").await, another(&db, "free").await);
    for queue in [&queue, &other, &free] {
        enqueued(queue, 1).await;
    }
    let held = [queue.lease(1).await.expect("leased"), other.lease(1).await.expect("leased")];
    let holder = connect(&url).await;
    let lock = "begin; select from trunkline.queue_q for update; select from trunkline.queue_other for update";
    holder.batch_execute(lock).await.expect("locked");
    let mut queues = [queue, other].into_iter();
    let [first, second] = held.map(|messages| {
        let queue = queues.next().expect("a queue for each");
        tokio::spawn(async move { queue.ack(&messages).await })
    });
    eventually("both wait", async || waiting(&sql).await == 2).await;
    let taken = timeout(SOON, free.take(1)).await.expect("in time").expect("taken");
    assert_eq!(taken.len(), 1);
    assert!(!first.is_finished() && !second.is_finished(), "they wait for the holder");
    holder.batch_execute("commit").await.expect("released");
    for ack in [first, second] {
        timeout(SOON, ack).await.expect("in time").expect("no panic").expect("acknowledged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_table_stops_only_the_enqueues_and_dequeues_of_its_queue() {
    let Place { queue, sql, url, db } = place::<i64>(Settings::new("int8")).await;
    let free = another(&db, "free").await;
    let holder = connect(&url).await;
    holder.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    let enqueues: Vec<_> = (0..2)
        .map(|payload| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.enqueue(payload).await })
        })
        .collect();
    let many = tokio::spawn({
        let queue = queue.clone();
        async move { queue.enqueue_many(&[2, 3]).await }
    });
    let dequeues: Vec<_> = (0..2)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.take(9).await })
        })
        .collect();
    eventually("they wait", async || waiting(&sql).await >= 3).await;
    for payload in 0..10 {
        timeout(SOON, free.enqueue(payload)).await.expect("in time").expect("enqueued");
        let taken = timeout(SOON, free.take(1)).await.expect("in time").expect("taken");
        assert_eq!(taken[0].payload, payload);
    }
    assert!(!many.is_finished() && enqueues.iter().all(|enqueue| !enqueue.is_finished()), "they wait");
    holder.batch_execute("commit").await.expect("released");
    timeout(SOON, many).await.expect("in time").expect("no panic").expect("enqueued");
    for enqueue in enqueues {
        timeout(SOON, enqueue).await.expect("in time").expect("no panic").expect("enqueued");
    }
    let mut payloads: Vec<i64> = Vec::new();
    for dequeue in dequeues {
        let taken = timeout(SOON, dequeue).await.expect("in time").expect("no panic").expect("taken");
        payloads.extend(taken.iter().map(|message| message.payload));
    }
    payloads.extend(queue.take(9).await.expect("taken").iter().map(|message| message.payload));
    payloads.sort_unstable();
    assert_eq!(payloads, [0, 1, 2, 3], "each once");
}
