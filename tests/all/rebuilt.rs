//! `trunkline.rebuild` rebuilds all data that is derived from messages. A message with a duplicate
//! id blocks no queue.

use std::{collections::BTreeMap, time::Duration};

use trunkline::{Draft, Limits, Settings, Unique, Worker, testing};

use crate::fixture::{Ids, Place, place};

/// Returns the repairs that `rebuild` reports.
async fn rebuilt(sql: &tokio_postgres::Client) -> BTreeMap<String, i64> {
    let rows =
        sql.query("select what, changed from trunkline.rebuild('q') where changed > 0", &[]).await.expect("rebuilt");
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sequence_behind_dead_letters_stops_no_lease_and_loses_nothing() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8").max_attempts(1)).await;
    let old = queue.enqueue_many(&[1, 2, 3]).await.expect("enqueued").ids();
    let leased = queue.lease(3).await.expect("leased");
    queue.bury(&leased[..2], "first").await.expect("held");
    queue.archive(&leased[2..]).await.expect("held");
    sql.batch_execute(&format!("select setval('trunkline.id_q', {}, false)", old[0]))
        .await
        .expect("as a restore of data alone");
    // The new messages get the ids of the dead letters. The test buries the first one, lets the
    // lease of the second one expire for the last time, and archives the third.
    let new = queue.enqueue_many(&[11, 12, 13]).await.expect("enqueued").ids();
    assert_eq!(new[0], old[0], "the case is what it should be");
    let leased = queue.lease(3).await.expect("leased");
    queue.bury(&leased[..1], "second").await.expect("held");
    queue.archive(&leased[2..]).await.expect("held");
    sql.batch_execute("update trunkline.queue_q set due_at = clock_timestamp()").await.expect("moved");
    queue.enqueue(14).await.expect("the sequence was put right");
    assert_eq!(queue.lease(1).await.expect("the queue goes on")[0].payload, 14);
    let mut dead: Vec<i64> =
        queue.dead_letters(0, 9).await.expect("read").iter().map(|letter| letter.payload).collect();
    dead.sort_unstable();
    assert_eq!(dead, [1, 2, 11, 12], "all are there");
    let mut archived: Vec<i64> = queue.archived(0, 9).await.expect("read").iter().map(|one| one.payload).collect();
    archived.sort_unstable();
    assert_eq!(archived, [3, 13]);
    // Gives a waiting message the id of a dead letter, and replays that dead letter.
    sql.batch_execute(&format!("update trunkline.queue_q set id = {}", old[0])).await.expect("by a hand");
    assert_eq!(queue.replay_all().await.expect("replayed"), 4);
    let mut back: Vec<i64> = queue.take(9).await.expect("taken").iter().map(|message| message.payload).collect();
    back.sort_unstable();
    assert_eq!(back, [1, 2, 11, 12]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sequence_is_past_every_id_wherever_it_was() {
    for (value, is_called) in [(1024, false), (1024, true), (2048, false), (1500, true), (9_999_999, false)] {
        let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
        let ids = queue.enqueue_many(&(0..1500).collect::<Vec<_>>()).await.expect("enqueued").ids();
        let leased = queue.lease(1400).await.expect("leased");
        queue.bury(&leased, "no").await.expect("held");
        sql.batch_execute(&format!("select setval('trunkline.id_q', {value}, {is_called})")).await.expect("set");
        rebuilt(&sql).await;
        let next = queue.enqueue(1).await.expect("enqueued").id();
        assert!(next > *ids.last().expect("some") && next % 1024 == 0 && next >= value, "{value} {is_called}: {next}");
        assert!(rebuilt(&sql).await.is_empty(), "nothing is to be done twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn backlogs_of_keys_and_partitions_are_found_again() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8").partitions(4)).await;
    // Chooses keys of different partitions, of which the one of key 1 will be held.
    let keys = "select array_agg(k.key) from (select distinct on (trunkline.lane_of('key ' || n, 4)) 'key ' || n as key from generate_series(0, 50) n) k";
    let keys: Vec<String> = sql.query_one(keys, &[]).await.expect("chosen").get(0);
    let draft = |nr: i64| Draft::new(nr).key(keys[usize::try_from(nr % 3).expect("small")].as_str());
    // Makes the first message of key 0 wait for its retry, and leases the first message of key 1.
    queue.enqueue(draft(0)).await.expect("enqueued");
    let call = "select trunkline.retry('q', id, attempt, '1 hour', 'later') from trunkline.lease_partition('q')";
    sql.batch_execute(call).await.expect("failed");
    sql.batch_execute("update trunkline.lane_q set held_until = '-infinity', holder = null").await.expect("free");
    queue.enqueue(draft(1)).await.expect("enqueued");
    let leased = sql
        .query("select id, attempt, holder from trunkline.lease_partition('q', 1, '1 hour')", &[])
        .await
        .expect("leased");
    let (id, attempt): (i64, i32) = (leased[0].get(0), leased[0].get(1));
    for nr in 2..60 {
        queue.enqueue(draft(nr)).await.expect("enqueued");
    }
    // Removes all derived data, and scatters the rows over the partitions.
    sql.batch_execute(
        "truncate trunkline.line_q; delete from trunkline.lane_q where lane in (1, 2, -2); update trunkline.lane_q set holder = null, held_until = '-infinity';
         update trunkline.queue_q set lane = (id / 1024) % 4; select setval('trunkline.id_q', 1024)",
    )
    .await
    .expect("as a copy of some tables");
    let done = rebuilt(&sql).await;
    for what in [
        "rows in the partition of other keys",
        "partitions that were missing",
        "partitions with leases and no holder",
        "keys whose backlog was not known",
    ] {
        assert!(done.contains_key(what), "{what}: {done:?}");
    }
    assert!(rebuilt(&sql).await.is_empty(), "nothing is to be done twice");
    // The worker handles the messages of key 2 in order, while keys 0 and 1 wait.
    let handled = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = handled.clone();
    let worker = Worker::new(db.queue::<i64>("q").await.expect("opened"), move |message: trunkline::Message<i64>| {
        seen.lock().expect("no panic").push(message.payload);
        async { Ok::<_, std::convert::Infallible>(()) }
    });
    worker.drain().await.expect("drained");
    let first: Vec<i64> = std::mem::take(&mut *handled.lock().expect("no panic"));
    let of = |key: i64| (0..60).filter(|nr| nr % 3 == key).collect::<Vec<i64>>();
    assert_eq!(first.iter().filter(|nr| *nr % 3 == 2).copied().collect::<Vec<_>>(), of(2));
    assert!(first.iter().all(|nr| *nr % 3 != 0), "behind the retry of key 0: {first:?}");
    assert!(first.iter().all(|nr| *nr % 3 != 1), "behind the lease of key 1: {first:?}");
    sql.batch_execute(&format!("select trunkline.ack('q', {id}, {attempt})")).await.expect("the lease goes on");
    testing::shift(&queue, Duration::from_secs(7200)).await.expect("shifted");
    worker_again(&db, &handled).await;
    let then = handled.lock().expect("no panic").clone();
    for key in [0, 1] {
        let wanted: Vec<i64> = of(key).into_iter().filter(|nr| *nr != 1).collect();
        assert_eq!(then.iter().filter(|nr| *nr % 3 == key).copied().collect::<Vec<_>>(), wanted, "key {key}");
    }
}

async fn worker_again(db: &trunkline::Db, handled: &std::sync::Arc<std::sync::Mutex<Vec<i64>>>) {
    let seen = handled.clone();
    let worker = Worker::new(db.queue::<i64>("q").await.expect("opened"), move |message: trunkline::Message<i64>| {
        seen.lock().expect("no panic").push(message.payload);
        async { Ok::<_, std::convert::Infallible>(()) }
    });
    worker.drain().await.expect("drained");
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_messages_that_are_gone_are_free_and_go() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8").uniqueness(true)).await;
    db.limit_queue("q", &Limits::none().per_second(100.0)).await.expect("limited");
    for nr in 0..3 {
        queue.enqueue(Draft::new(nr).unique(Unique::key(format!("k{nr}")))).await.expect("enqueued");
    }
    sql.batch_execute(
        "alter table trunkline.queue_q disable trigger free_keys; delete from trunkline.queue_q where payload[1] < 2;
         alter table trunkline.queue_q enable trigger free_keys; update trunkline.bucket set filled_at = now() + interval '2 hours'",
    )
    .await
    .expect("by a hand");
    let again = queue.enqueue(Draft::new(0).unique(Unique::key("k0"))).await.expect("enqueued");
    assert!(again.is_new(), "no message has that key");
    let other = queue.enqueue(Draft::new(2).unique(Unique::key("k2"))).await.expect("enqueued");
    assert!(!other.is_new(), "a message has that key");
    let done = rebuilt(&sql).await;
    assert_eq!(done.get("unique keys of messages that are gone"), Some(&1), "{done:?}");
    assert_eq!(done.get("limits in a state that cannot be"), Some(&1), "{done:?}");
    assert_eq!(queue.take(9).await.expect("taken").len(), 2);
}
