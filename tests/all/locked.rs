//! Sessions of other programs that keep a lock: they stop only the calls that need it.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use tokio_postgres::{Client, error::SqlState};
use trunkline::{Limits, Queue, Settings};

use crate::fixture::{Ids, Place, SOON, connect, enqueued, eventually, place};

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

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_give_up_waiting_open_no_more_connections() {
    let Place { queue, sql, url, db: _db } = place::<i64>(Settings::new("int8")).await;
    let holder = connect(&url).await;
    holder.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    for _ in 0..9 {
        // Longer than a call waits on a shared connection.
        timeout(Duration::from_millis(900), queue.stats()).await.expect_err("the table is locked");
    }
    let waits = waiting(&sql).await;
    assert!(waits <= 6, "{waits} sessions wait: more than the four, and two that are shared");
    holder.batch_execute("commit").await.expect("released");
    eventually("none waits", async || waiting(&sql).await == 0).await;
    // The connections serve later calls that wait.
    holder.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    let calls: Vec<_> = (0..9)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.stats().await })
        })
        .collect();
    eventually("four wait", async || waiting(&sql).await >= 4).await;
    holder.batch_execute("commit").await.expect("released");
    for call in calls {
        timeout(SOON, call).await.expect("in time").expect("no panic").expect("counted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_is_opened_once_its_table_is_unlocked() {
    let Place { queue: _queue, sql, url, db } = place::<i64>(Settings::new("int8")).await;
    let another = trunkline::Db::connect(&url).await.expect("connected");
    let holder = connect(&url).await;
    holder.batch_execute("begin; lock table trunkline.queue_q in access exclusive mode").await.expect("locked");
    let opening = tokio::spawn(async move { another.queue::<i64>("q").await });
    // The shared connection ends its wait after half a second.
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
                 and now() > query_start + interval '600 ms'";
    eventually("it waits for long, or has failed", async || {
        opening.is_finished() || sql.query_one(waits, &[]).await.expect("visible").get::<_, i64>(0) == 1
    })
    .await;
    holder.batch_execute("commit").await.expect("released");
    timeout(SOON, opening).await.expect("in time").expect("no panic").expect("opened");
    drop(db);
}

#[tokio::test(flavor = "multi_thread")]
async fn limit_waits_once_for_another_change_and_stops_no_other_call() {
    let Place { queue, sql, url, db } = place::<i64>(Settings::new("int8")).await;
    let holder = connect(&url).await;
    holder.batch_execute("begin; select from trunkline.queue where name = 'q' for update").await.expect("locked");
    let began = Instant::now();
    let limiting = tokio::spawn(async move { db.limit_queue("q", &Limits::none().max_leased(7)).await });
    eventually("it waits", async || waiting(&sql).await == 1).await;
    for _ in 0..10 {
        timeout(Duration::from_secs(1), queue.stats()).await.expect("at once").expect("counted");
    }
    let error = timeout(SOON, limiting).await.expect("in time").expect("no panic").expect_err("locked");
    assert!(error.to_string().contains("lock timeout"), "{error}");
    assert!(began.elapsed() < Duration::from_millis(5500), "three seconds, once: {:?}", began.elapsed());
}

/// A prepared transaction keeps its locks but has no session that could be ended.
#[tokio::test]
async fn prepared_transaction_in_the_way_is_named() {
    let Place { sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let name: String = sql.query_one("select current_database()", &[]).await.expect("read").get(0);
    let prepare = format!("begin; select from trunkline.queue_q; prepare transaction 'in {name}'");
    sql.batch_execute(&prepare).await.expect("prepared");
    // `drop_queue` and `limit_queue` call this function after they have waited for seconds.
    let error = sql.execute("select trunkline.raise_in_use('q', 'ten seconds')", &[]).await.expect_err("it fails");
    let hint = error.as_db_error().expect("the server's").hint().expect("a hint");
    assert!(hint.contains(&format!("Prepared transactions that use it now: 'in {name}'.")), "{hint}");
    assert!(hint.contains("End it with rollback prepared"), "{hint}");
    sql.batch_execute(&format!("rollback prepared 'in {name}'")).await.expect("ended");
    let error = sql.execute("select trunkline.raise_in_use('q', 'ten seconds')", &[]).await.expect_err("it fails");
    let hint = error.as_db_error().expect("the server's").hint().expect("a hint");
    assert!(hint.contains("End its session with pg_terminate_backend") && !hint.contains("prepared"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_that_another_session_is_creating_exists_afterwards() {
    let Place { sql, url, db, .. } = place::<i64>(Settings::new("int8")).await;
    let holder = connect(&url).await;
    let open = "begin; select trunkline.create_queue('new', 'int8')";
    holder.batch_execute(open).await.expect("created");
    let beside = db.clone();
    let created = tokio::spawn(async move { beside.create_queue("new", &Settings::new("int8")).await });
    let by_hand = connect(&url).await;
    let by_hand =
        tokio::spawn(async move { by_hand.batch_execute("select trunkline.create_queue('new', 'int8')").await });
    eventually("both wait", async || waiting(&sql).await == 2).await;
    holder.batch_execute("commit").await.expect("committed");
    timeout(SOON, created).await.expect("in time").expect("no panic").expect("it exists");
    timeout(SOON, by_hand).await.expect("in time").expect("no panic").expect("it exists");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_call_returns_the_servers_error_and_changes_nothing() {
    let Place { queue, sql, url, db } = place::<i64>(Settings::new("int8")).await;
    enqueued(&queue, 3).await;
    let holder = connect(&url).await;
    holder.batch_execute("begin; select from trunkline.queue_q for update").await.expect("locked");
    let purge = tokio::spawn({
        let queue = queue.clone();
        async move { queue.purge().await.map(drop) }
    });
    let drops = tokio::spawn({
        let db = db.clone();
        async move { db.drop_queue("q").await }
    });
    eventually("both wait", async || waiting(&sql).await == 2).await;
    eventually("both have ended", async || {
        db.cancel_running().await;
        purge.is_finished() && drops.is_finished()
    })
    .await;
    for call in [purge, drops] {
        let error = call.await.expect("no panic").expect_err("cancelled");
        assert_eq!(error.sqlstate(), Some(&SqlState::QUERY_CANCELED), "{error}");
    }
    holder.batch_execute("commit").await.expect("released");
    db.cancel_running().await; // no statement is running
    assert_eq!(timeout(SOON, queue.purge()).await.expect("in time").expect("purged"), 3);
}

/// A row of more than 32 messages is split in two steps. A call that waits for the first step must
/// not overlook the messages of the second.
#[tokio::test(flavor = "multi_thread")]
async fn lease_of_a_row_that_is_split_twice_meanwhile_is_not_lost() {
    let retry = ", array[interval '1 hour', '1 hour'], array['x', 'x']";
    for (verb, more) in [("ack", ""), ("archive", ""), ("release", ""), ("extend", ", '1 minute'"), ("retry", retry)] {
        let Place { queue, sql, url, db: _db } = place::<i64>(Settings::new("int8").max_batch(1024)).await;
        let first = enqueued(&queue, 1).await[0];
        let row = queue.enqueue_many(&(0..1024).collect::<Vec<i64>>()).await.expect("enqueued").ids()[0];
        assert_eq!(queue.lease(2000).await.expect("leased").len(), 1025);
        let (holder, call, other) = (connect(&url).await, connect(&url).await, connect(&url).await);
        let lock = format!("begin; select from trunkline.queue_q where id = {first} for update");
        holder.batch_execute(&lock).await.expect("locked");
        let (rest, ids) = (row + 10, format!("array[{first}, {}], array[1, 1014], array[1, 1]", row + 10));
        let called = tokio::spawn(async move {
            let all = format!("select sum(size) from trunkline.do_{verb}_q({ids}{more})");
            call.query_one(&all, &[]).await.expect("called").get::<_, i64>(0)
        });
        eventually("it waits for the first row", async || waiting(&sql).await == 1).await;
        let ack =
            |from: i64, size: i64| format!("select from trunkline.do_ack_q(array[{from}], array[{size}], array[1])");
        other.batch_execute(&ack(row, 10)).await.expect("the first step");
        other.batch_execute(&format!("begin; {}", ack(rest, 3))).await.expect("the second step");
        holder.batch_execute("commit").await.expect("unlocked");
        let blocks =
            "select count(*) from pg_stat_activity a, pg_stat_activity b where b.pid = any (pg_blocking_pids(a.pid))
                      and b.query like '%do_ack_q%' and b.datname = current_database() and a.pid <> b.pid";
        let is_met = async || sql.query_one(blocks, &[]).await.expect("visible").get::<_, i64>(0) == 1;
        eventually("it waits for the second step", is_met).await;
        other.batch_execute("commit").await.expect("acknowledged");
        let met = timeout(SOON, called).await.expect("in time").expect("no panic");
        assert_eq!(met, 1 + 1014 - 3, "{verb}: all that are still leased");
    }
}
