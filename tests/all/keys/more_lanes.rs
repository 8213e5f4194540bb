//! The number of a queue's partitions grows while the queue is in use.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::try_join_all;
use tokio_postgres::{Client, error::SqlState};
use trunkline::{Changes, Db, Draft, Failure, Message, Queue, Result, Settings, Worker};

use super::{History, nth, settings, worker};
use crate::fixture::{Ids, Place, Runs, grows_to, place};

/// Counts messages that are in the wrong partition for their key.
const ASTRAY: &str = "select count(*) from trunkline.queue_q q, unnest(q.keys) k(key), trunkline.queue s
                      where q.lane <> s.first_lane + trunkline.lane_of(k.key, s.lanes)";

async fn astray(sql: &Client) -> i64 {
    sql.query_one(ASTRAY, &[]).await.expect("read").get(0)
}

async fn raise(db: &Db, lanes: u32) {
    db.alter_queue("q", &Changes::new().partitions(lanes)).await.expect("altered");
}

async fn opened(url: &str) -> Queue<i64> {
    Db::connect(url).await.expect("connected").queue("q").await.expect("opened")
}

async fn enqueued_in(queue: &Queue<i64>, drafts: &[Draft<i64>]) -> Result<()> {
    let transaction = queue.db().begin().await?;
    queue.enqueue_many_in(&transaction, drafts).await?;
    transaction.commit().await
}

/// Some producers and workers opened the queue before the change, and some opened it afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_keys_holds_while_there_come_more_lanes() {
    const KEYS: usize = 60;
    const EACH: i64 = 60;
    let Place { db, queue, url, sql } = place::<i64>(settings().partitions(2)).await;
    let history = History::default();
    let mut running = Vec::new();
    for _ in 0..2 {
        running.push(Runs::start(worker(opened(&url).await, &history, 0.1, 8)));
    }
    let producing = tokio::spawn(async move {
        for place in 0..EACH {
            match place % 3 {
                0 => {
                    let all: Vec<_> = (0..KEYS).map(|key| nth(key, place)).collect();
                    drop(queue.enqueue_many(&all).await.expect("enqueued"));
                }
                1 => drop(try_join_all((0..KEYS).map(|key| queue.enqueue(nth(key, place)))).await.expect("enqueued")),
                _ => {
                    let all: Vec<_> = (0..KEYS).map(|key| nth(key, place)).collect();
                    while let Err(error) = enqueued_in(&queue, &all).await {
                        assert_eq!(error.sqlstate().map(SqlState::code), Some("TL002"), "it was under way: {error}");
                    }
                }
            }
        }
    });
    for (part, lanes) in [(8, 4), (4, 16), (2, 256)] {
        grows_to("some are done", KEYS * EACH as usize / part, || history.done()).await;
        raise(&db, lanes).await;
        assert_eq!(astray(&sql).await, 0);
        running.push(Runs::start(worker(opened(&url).await, &history, 0.1, 8)));
    }
    producing.await.expect("all are enqueued");
    assert_eq!(astray(&sql).await, 0);
    grows_to("all are done", KEYS * EACH as usize, || history.done()).await;
    for runs in running {
        runs.stop().await;
    }
    history.check(KEYS, EACH);
    let left = "select count(*) from trunkline.line_q l, trunkline.queue s where l.lane < s.first_lane";
    assert_eq!(sql.query_one(left, &[]).await.expect("read").get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn older_handle_enqueues_after_partitions_are_added() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(2)).await;
    let mut ids = BTreeSet::new();
    for lanes in [6, 12] {
        raise(&db, lanes).await;
        // Enqueues messages that share rows, and that fill several rows at a time.
        ids.extend(try_join_all((0..300).map(|key| queue.enqueue(nth(key, 0)))).await.expect("enqueued").ids());
        raise(&db, lanes * 2).await;
        let many = (0..3000).map(|key| nth(key % 500, 1)).collect::<Vec<_>>();
        ids.extend(queue.enqueue_many(&many).await.expect("enqueued").ids());
        let one = "select trunkline.enqueue('q', 7::int8, key => 'key 3')";
        ids.insert(sql.query_one(one, &[]).await.expect("enqueued").get(0));
    }
    assert_eq!(astray(&sql).await, 0);
    let stored = sql.query("select id + k from trunkline.queue_q, generate_series(0, size - 1) k", &[]).await;
    assert_eq!(stored.expect("read").iter().map(|row| row.get(0)).collect::<BTreeSet<i64>>(), ids);
    assert_eq!(ids.len(), 6602);
    // The handle now knows the new number of partitions. So it stores the messages in one row per
    // partition, and not in one row per key.
    let before: i64 = sql.query_one("select count(*) from trunkline.queue_q", &[]).await.expect("read").get(0);
    queue.enqueue_many(&(0..240).map(|key| nth(key, 2)).collect::<Vec<_>>()).await.expect("enqueued");
    let after: i64 = sql.query_one("select count(*) from trunkline.queue_q", &[]).await.expect("read").get(0);
    assert!(after - before <= 24, "{} rows", after - before);
}

/// The handle knows partitions whose numbers the new queue has, too, for other keys.
#[tokio::test(flavor = "multi_thread")]
async fn older_handle_enqueues_after_the_queue_is_created_again() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(16)).await;
    let all: Vec<_> = (0..100).map(|key| nth(key, 0)).collect();
    for (lanes, is_one_call) in [(64, false), (12, true)] {
        db.drop_queue("q").await.expect("dropped");
        db.create_queue("q", &settings().partitions(lanes)).await.expect("created");
        let ids = if is_one_call {
            queue.enqueue_many(&all).await.expect("enqueued").ids()
        } else {
            try_join_all((0..100).map(|key| queue.enqueue(nth(key, 0)))).await.expect("enqueued").ids()
        };
        assert_eq!(ids.into_iter().collect::<BTreeSet<_>>().len(), 100);
        assert_eq!(astray(&sql).await, 0);
        let stored = "select sum(size) from trunkline.queue_q";
        assert_eq!(sql.query_one(stored, &[]).await.expect("read").get::<_, i64>(0), 100);
    }
}

/// Some messages are leased, failed, dead or delayed when the number of partitions changes.
#[tokio::test(flavor = "multi_thread")]
async fn messages_in_every_state_go_along() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(1).max_attempts(1)).await;
    queue.enqueue_many(&(0..9).map(|key| nth(key, 0)).collect::<Vec<_>>()).await.expect("enqueued");
    let dies = |_: Message<i64>| async { Err::<(), _>(Failure::dead("no use")) };
    Worker::new(queue.clone(), dies).drain().await.expect("drained");
    db.alter_queue("q", &Changes::new().max_attempts(5)).await.expect("altered");
    let delayed: Vec<_> = (0..9).map(|key| nth(key, 1).after(Duration::from_secs(3600))).collect();
    queue.enqueue_many(&delayed).await.expect("enqueued");
    queue.enqueue_many(&(0..9).map(|key| nth(key, 2)).collect::<Vec<_>>()).await.expect("enqueued");
    let leased = "select holder, id, attempt, key from trunkline.lease_partition('q', 9) order by id";
    let leased = sql.query(leased, &[]).await.expect("leased");
    let (holder, failed): (i64, i64) = (leased[0].get(0), leased[1].get(1));
    sql.query("select trunkline.retry('q', $1, 1, '1 hour')", &[&failed]).await.expect("it was its own");
    raise(&db, 8).await;
    assert_eq!(astray(&sql).await, 0);
    let others = "select count(*) from trunkline.lease_partition('q', 9)";
    assert_eq!(sql.query_one(others, &[]).await.expect("asked").get::<_, i64>(0), 0, "all lanes are the holder's");
    for row in leased.iter().filter(|row| row.get::<_, i64>(1) != failed) {
        sql.query("select trunkline.ack('q', $1, $2)", &[&row.get::<_, i64>(1), &row.get::<_, i32>(2)])
            .await
            .expect("it is its own still");
    }
    sql.query("select trunkline.release_partition('q', $1)", &[&holder]).await.expect("given back");
    assert_eq!(queue.replay_all().await.expect("replayed"), 9);
    assert_eq!(astray(&sql).await, 0);
    let works = |_: Message<i64>| async { Ok::<(), Failure>(()) };
    assert_eq!(
        Worker::new(queue.clone(), works).drain().await.expect("drained").done,
        8,
        "one waits behind its failure"
    );
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.to_retry, stats.delayed), (1, 9));
}

/// Puts back a row whose partition no longer exists, as if it had been taken before the change, or
/// had become a dead letter before it.
#[tokio::test]
async fn row_put_back_gets_the_current_partitions_of_its_keys() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(2)).await;
    raise(&db, 16).await;
    let back = "select trunkline.do_back_q(5120, now(), 0, 0, null, 20, array(select generate_series(0, 19))::int8[], null,
                    jsonb_build_object('lane', '17', 'keys', array(select 'key ' || k % 5 from generate_series(0, 19) k)::text))";
    sql.query(back, &[]).await.expect("put back");
    assert_eq!(astray(&sql).await, 0);
    let ids =
        "select array_agg(q.id + k order by q.payload[k + 1]) from trunkline.queue_q q, generate_series(0, size - 1) k";
    let ids: Vec<i64> = sql.query_one(ids, &[]).await.expect("read").get(0);
    assert_eq!(ids, (5120..5140).collect::<Vec<_>>(), "each has its id");
    let works = |_: Message<i64>| async { Ok::<(), Failure>(()) };
    assert_eq!(Worker::new(queue, works).drain().await.expect("drained").done, 20);
}

#[tokio::test]
async fn impossible_partition_numbers_are_refused_with_advice() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(64)).await;
    queue.enqueue(nth(0, 0)).await.expect("enqueued");
    for (lanes, told) in
        [(32, "multiple of 64"), (100, "multiple of 64"), (257, "partitions 0 to 256"), (0, "multiple of 64")]
    {
        let error = db.alter_queue("q", &Changes::new().partitions(lanes).max_attempts(3)).await.expect_err("refused");
        assert_eq!(error.sqlstate().map(SqlState::code), Some("22023"), "{error}");
        assert!(error.to_string().contains(told), "{lanes}: {error}");
    }
    raise(&db, 64).await;
    let now_is = db.describe_queue("q").await.expect("described");
    assert_eq!((now_is.partitions, now_is.max_attempts), (64, 20), "nothing was changed");
    db.create_queue("plain", &Settings::new("int8")).await.expect("created");
    let error = db.alter_queue("plain", &Changes::new().partitions(64)).await.expect_err("it has no keys");
    assert!(error.to_string().contains("create_queue(..., partitions => 64)"), "{error}");
    // This row was inserted manually. It has several keys, and its partition does not exist.
    let row = "insert into trunkline.queue_q (size, payload, lane, keys) values (3, '{1, 2, 3}', 500, '{a, b, c}')";
    let error = sql.execute(row, &[]).await.expect_err("refused");
    assert_eq!(error.code().map(SqlState::code), Some("TL002"));
}

#[tokio::test(flavor = "multi_thread")]
async fn change_behind_a_long_transaction_ends_with_advice() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(2)).await;
    sql.batch_execute("begin; select from trunkline.queue_q").await.expect("the table is in use");
    let error = db.alter_queue("q", &Changes::new().partitions(4)).await.expect_err("it cannot be locked");
    assert!(error.to_string().contains("queue 'q' is in use") && error.to_string().contains("ten seconds"), "{error}");
    let pid: i32 = sql.query_one("select pg_backend_pid()", &[]).await.expect("the session's id").get(0);
    assert!(error.to_string().contains(&format!("Sessions that use it now: {pid}.")), "{error}");
    queue.enqueue(Draft::new(1).key("a")).await.expect("others go on");
    sql.batch_execute("rollback").await.expect("free");
    raise(&db, 4).await;
}
