//! Waiting messages of a draining shard move to the other shards. Each message moves exactly once,
//! no matter which step is interrupted.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::try_join_all;
use tokio::time::timeout;
use trunkline::{Dequeue, Draft, Message, Metadata, State, Wait, shards, testing};

use super::{Three, counts, numbers, three};
use crate::fixture::{SOON, connect, eventually, superuser};

/// Returns all messages of the queue, as ids by payload.
async fn there(three: &Three) -> BTreeMap<i64, Vec<String>> {
    let mut there = BTreeMap::<i64, Vec<String>>::new();
    for part in three.queue.queues() {
        for one in part.of.peek(100_000).await.expect("read") {
            there.entry(one.payload).or_default().push(format!("{}:{}", part.shard, one.id));
        }
    }
    there
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_messages_move_whole_and_leased_ones_are_waited_for() {
    let three = three(numbers().max_attempts(5)).await;
    for url in &three.urls {
        let column = "alter table trunkline.queue_q add tenant text default current_setting('test.tenant', true)";
        superuser(url).await.batch_execute(column).await.expect("added");
    }
    let part = three.queue.queues().swap_remove(1);
    let id = part.shard;
    let sql = superuser(&three.url(id).await).await;
    sql.batch_execute("set test.tenant = 'acme'; select trunkline.enqueue('q', 0::bigint)").await.expect("enqueued");
    let metadata = Metadata::new().with("tenant", "acme");
    part.enqueue_many((1..100).map(|n| Draft::new(n).metadata(metadata.clone()))).await.expect("enqueued");
    let delayed = Draft::new(100).after(Duration::from_secs(3600));
    let delayed = part.enqueue(delayed).await.expect("enqueued").id();
    let due_at = part.find(delayed).await.expect("looked for").expect("it waits").due_at;
    let leased = part.lease(12).await.expect("leased");
    part.retry(&leased[..2], Duration::from_secs(1800), "not yet").await.expect("given back");
    part.bury(&leased[2..3], "never").await.expect("buried");

    let shards = three.shards.clone();
    let draining = tokio::spawn(async move { shards.drain_and_move(id, |_| ()).await });
    eventually("the rest has moved", || async { part.stats().await.expect("counted").messages == 9 }).await;
    assert!(!draining.is_finished(), "leases are waited for");
    part.ack(&leased[3..10]).await.expect("acknowledged");
    part.release(&leased[10..]).await.expect("given back");
    let left = timeout(SOON, draining).await.expect("in time").expect("no panic").expect("drained");
    assert!(left.is_drained());
    assert_eq!((left.sum().messages, left.sum().dead, left.moving), (0, 1, 0));

    let there = there(&three).await;
    let missing: Vec<i64> = leased[2..10].iter().map(|message| message.payload).collect();
    let expected: Vec<i64> = (0..=100).filter(|n| !missing.contains(n)).collect();
    assert_eq!(there.keys().copied().collect::<Vec<_>>(), expected);
    assert!(there.values().all(|ids| ids.len() == 1 && !ids[0].starts_with(&id.to_string())), "{there:?}");
    let find = async |n: i64| {
        let id = there[&n][0].parse().expect("an id");
        three.queue.find(id).await.expect("looked for").expect("it is there").of
    };
    assert_eq!(find(100).await.due_at, due_at);
    let retried = find(leased[0].payload).await;
    assert_eq!((retried.attempt, retried.error.as_deref()), (1, Some("not yet")));
    assert_eq!(find(50).await.metadata, metadata);
    let released = find(leased[10].payload).await;
    assert_eq!(released.state, State::Due, "what was given back does not look like a lease that expired");
    let (shard, first) = there[&0][0].split_once(':').expect("an id");
    let sql = connect(&three.url(shard.parse().expect("a shard")).await).await;
    let first: i64 = first.parse().expect("a number");
    let text = "select q.tenant from trunkline.queue_q q join trunkline.moved m on m.became = q.id where q.id = $1";
    let tenant = sql.query_one(text, &[&first]).await.expect("one row");
    assert_eq!(tenant.get::<_, &str>(0), "acme");
}

#[tokio::test(flavor = "multi_thread")]
async fn priorities_and_the_order_go_along() {
    let three = three(numbers().priorities(3)).await;
    let part = three.queue.queues().swap_remove(0);
    for n in 0..90 {
        part.enqueue(Draft::new(n).priority((n % 3) as u8)).await.expect("enqueued");
    }
    timeout(SOON, three.shards.drain_and_move(part.shard, |_| ())).await.expect("in time").expect("drained");
    let mut seen = Vec::new();
    for part in &three.queue.queues()[1..] {
        let taken: Vec<i64> = part.of.take(100).await.expect("taken").iter().map(|message| message.payload).collect();
        assert!(taken.len() > 20, "in turns: {}", taken.len());
        for priority in 0..3 {
            let of: Vec<i64> = taken.iter().copied().filter(|n| n % 3 == priority).collect();
            assert!(of.is_sorted() && !of.is_empty(), "{of:?}");
        }
        assert_eq!(taken[0] % 3, 2, "the highest first: {taken:?}");
        seen.extend(taken);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..90).collect::<Vec<_>>());
}

/// The first message has a longer delay, and is due after the second one.
#[tokio::test(flavor = "multi_thread")]
async fn due_messages_keep_the_order_of_their_delays() {
    for (settings, key, verb) in [
        (numbers(), None, "take"),
        (numbers().priorities(3), None, "take"),
        (numbers().partitions(4), Some("one"), "lease_partition"),
    ] {
        let three = three(settings).await;
        let part = three.queue.queues().swap_remove(0);
        for (n, minutes) in [(1_i64, 10), (2, 5)] {
            let draft = Draft::new(n).after(Duration::from_secs(60 * minutes));
            let draft = if let Some(key) = key { draft.key(key) } else { draft };
            part.enqueue(draft).await.expect("enqueued");
        }
        testing::shift(&part.of, Duration::from_secs(3600)).await.expect("both are due");
        timeout(SOON, three.shards.drain_and_move(part.shard, |_| ())).await.expect("in time").expect("drained");
        let mut order = Vec::new();
        for part in &three.queue.queues()[1..] {
            let sql = connect(&three.url(part.shard).await).await;
            let text = format!("select payload::bigint from trunkline.{verb}('q', 9)");
            order.extend(sql.query(&text, &[]).await.expect("read").iter().map(|row| row.get::<_, i64>(0)));
        }
        assert_eq!(order, [2, 1], "{verb}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_delays_and_retries_go_along() {
    let three = three(numbers().partitions(8).max_attempts(5)).await;
    let part = three.queue.queues().swap_remove(0);
    let key = |n: i64| format!("key {}", n % 5);
    let fails = part.enqueue(Draft::new(100).key("fails")).await.expect("enqueued").id();
    let sql = connect(&three.url(part.shard).await).await;
    let failed =
        "select trunkline.retry('q', l.id, l.attempt, '1 hour', 'not yet'), trunkline.release_partition('q', l.holder)
                  from trunkline.lease_partition('q') l";
    sql.batch_execute(failed).await.expect("it waits for its retry");
    part.enqueue(Draft::new(101).key("fails")).await.expect("enqueued");
    part.enqueue_many((0..20).map(|n| Draft::new(n).key(key(n)))).await.expect("enqueued");
    part.enqueue(Draft::new(20).key("delayed").after(Duration::from_secs(3600))).await.expect("enqueued");
    timeout(SOON, three.shards.drain_and_move(part.shard, |_| ())).await.expect("in time").expect("drained");

    let (mut seen, mut waiting) = (BTreeMap::<String, Vec<i64>>::new(), Vec::new());
    for part in &three.queue.queues()[1..] {
        let sql = connect(&three.url(part.shard).await).await;
        let text = "select key, payload::bigint from trunkline.lease_partition('q')";
        loop {
            let rows = sql.query(text, &[]).await.expect("leased");
            if rows.is_empty() {
                break;
            }
            for row in rows {
                seen.entry(row.get(0)).or_default().push(row.get(1));
            }
        }
        for one in part.of.peek(100).await.expect("read") {
            let state = part.of.find(one.id).await.expect("looked for").expect("it is there").state;
            if one.payload == 100 || one.payload == 20 || one.payload == 101 {
                waiting.push((one.payload, state));
            }
        }
    }
    waiting.sort_unstable_by_key(|(payload, _)| *payload);
    assert_eq!(waiting, [(20, State::Delayed), (100, State::Retrying), (101, State::Due)], "{fails}");
    assert_eq!(seen.len(), 5, "{seen:?}");
    for (name, numbers) in seen {
        assert!(
            numbers.is_sorted() && numbers.len() == 4 && numbers.iter().all(|n| key(*n) == name),
            "{name}: {numbers:?}"
        );
    }
}

/// A server that was restored to an earlier time gives ids again.
#[tokio::test(flavor = "multi_thread")]
async fn messages_whose_ids_have_moved_before_move_too() {
    let three = three(numbers()).await;
    let part = three.queue.queues().swap_remove(0);
    let sql = superuser(&three.url(part.shard).await).await;
    for n in [0, 4] {
        sql.batch_execute("select setval('trunkline.id_q', 102400, false)").await.expect("set back");
        for n in n..n + 4 {
            part.enqueue(n).await.expect("enqueued");
        }
        timeout(SOON, three.shards.drain_and_move(part.shard, |_| ())).await.expect("in time").expect("drained");
        three.shards.resume(part.shard).await.expect("resumed");
    }
    assert_eq!(there(&three).await.into_keys().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
}

/// Stops a move between two of its steps with a lock on a table. Then drops the move, as a kill
/// would.
async fn interrupted(three: &Three, id: shards::Id, lock: &str, on: &str, is_there: impl AsyncFn() -> bool) {
    let locker = superuser(on).await;
    locker.batch_execute(&format!("begin; lock table trunkline.{lock} in share mode")).await.expect("locked");
    let shards = shards::Set::connect(&three.urls).await.expect("connected");
    let draining = tokio::spawn(async move { shards.drain_and_move(id, |_| ()).await });
    eventually("it is between two steps", || is_there()).await;
    draining.abort();
    assert!(draining.await.expect_err("aborted").is_cancelled());
    // Releases the lock for which the drain's last statement waits. The statement then completes,
    // as it would for a killed client.
    locker.batch_execute("commit").await.expect("unlocked");
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_move_is_completed_and_nothing_comes_twice() {
    let three = three(numbers()).await;
    let id = three.ids()[2];
    let part = three.queue.on(id).expect("open");
    for url in &three.urls {
        // Creates the tables, as an earlier drain would have done.
        let sql = include_str!("../../../sql/statements/move_tables.sql");
        superuser(url).await.batch_execute(sql).await.expect("made");
    }
    let source = three.url(id).await;
    part.enqueue_many(0..300).await.expect("enqueued");
    for n in 300..400 {
        part.enqueue(n).await.expect("enqueued");
    }
    // Interrupts a move between its first and its second step: a lock prevents the receiving shard
    // from recording the messages. They have left their queue, and no other queue has them.
    let others = three.queue.queues().into_iter().filter(|part| part.shard != id).map(|part| part.shard);
    let others: Vec<String> = futures_util::future::join_all(others.map(|other| three.url(other))).await;
    let [one, other] = &others[..] else { panic!("two") };
    let locker = superuser(other).await;
    locker.batch_execute("begin; lock table trunkline.moved in share mode").await.expect("locked");
    let left = async || three.shards.left(id).await.expect("looked").moving > 0;
    interrupted(&three, id, "moved", one, left).await;
    locker.batch_execute("commit").await.expect("unlocked");
    assert!(three.shards.left(id).await.is_ok_and(|left| !left.is_drained()));
    // Interrupts the next move between its second and its third step: the messages are in the other
    // queue, and still in `trunkline.moving`.
    let came = async || {
        let came = "select count(*) from trunkline.moved";
        let mut count = 0;
        for url in &others {
            count += connect(url).await.query_one(came, &[]).await.expect("counted").get::<_, i64>(0);
        }
        count > 32
    };
    let waiting = superuser(&source).await;
    waiting
        .batch_execute(
            "create function slow() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock(7); return old; end';
             create trigger slow before delete on trunkline.moving for each row execute function slow()",
        )
        .await
        .expect("made");
    let locker = superuser(&source).await;
    locker.batch_execute("select pg_advisory_lock(7)").await.expect("locked");
    let shards = shards::Set::connect(&three.urls).await.expect("connected");
    let draining = tokio::spawn(async move { shards.drain_and_move(id, |_| ()).await });
    let stuck = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and wait_event = 'advisory' and datname = current_database()";
    eventually("it cannot say that they have come", || async {
        waiting.query_one(stuck, &[]).await.expect("counted").get::<_, i64>(0) > 0
    })
    .await;
    draining.abort();
    let _ = draining.await;
    // Ends the drain's session, so that its statement is rolled back, as after the client was
    // killed.
    waiting
        .batch_execute("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'advisory' and datname = current_database()")
        .await
        .expect("terminated");
    eventually("it is gone", || async { waiting.query_one(stuck, &[]).await.expect("counted").get::<_, i64>(0) == 0 })
        .await;
    waiting.batch_execute("drop trigger slow on trunkline.moving").await.expect("dropped");
    locker.batch_execute("select pg_advisory_unlock(7)").await.expect("unlocked");
    assert!(three.shards.left(id).await.expect("looked").moving > 0, "they are on both, as far as the marks show");
    // Checks that the messages are not delivered again, because they have been consumed on the new
    // shard.
    let (mut seen, mut consumer): (Vec<i64>, _) = (Vec::new(), three.queue.consumer(Wait::Adaptive));
    while seen.len() < 20 {
        let taken = timeout(SOON, consumer.take(20 - seen.len())).await.expect("in time").expect("taken");
        seen.extend(taken.iter().map(|one| one.of.payload));
    }
    drop(consumer);

    let left = timeout(SOON, three.shards.drain_and_move(id, |_| ())).await.expect("in time").expect("drained");
    assert!(left.is_drained());
    assert!(came().await);
    let there = there(&three).await;
    assert!(there.values().all(|ids| ids.len() == 1), "none twice: {there:?}");
    seen.extend(there.keys());
    seen.sort_unstable();
    assert_eq!(seen, (0..400).collect::<Vec<_>>(), "none lost, none twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn simultaneous_moves_under_load_move_each_message_once() {
    let three = three(numbers()).await;
    let id = three.ids()[0];
    let part = three.queue.on(id).expect("open");
    try_join_all((0..20).map(|nr| part.enqueue_many(nr * 100..(nr + 1) * 100))).await.expect("enqueued");
    for n in 2_000..2_200 {
        part.enqueue(n).await.expect("enqueued");
    }
    let other = shards::Set::connect(&three.urls).await.expect("connected");
    let (one, two) = tokio::join!(
        timeout(SOON, three.shards.drain_and_move(id, |_| ())),
        timeout(SOON, other.drain_and_move(id, |_| ()))
    );
    assert!(
        one.expect("in time").expect("drained").is_drained() && two.expect("in time").expect("drained").is_drained()
    );
    let mut consumer = three.queue.consumer(Wait::Adaptive);
    let mut seen = Vec::new();
    while seen.len() < 2_200 {
        let some = consumer.take(Dequeue::up_to(500).within(SOON)).await.expect("taken");
        assert!(!some.is_empty(), "{} are there, and no more", seen.len());
        assert!(!counts(some.iter().map(shards::Sharded::<Message<i64>>::id)).contains_key(&id));
        seen.extend(some.iter().map(|one| one.payload));
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..2_200).collect::<Vec<_>>());
    assert_eq!(three.queue.stats().await.sum.messages, 0, "nor are there more");
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_on_no_other_shard_stays_where_it_is() {
    let three = three(numbers()).await;
    let id = three.ids()[0];
    let db = three.shards.db(id).expect("reached");
    db.create_queue("alone", &numbers()).await.expect("created");
    let alone = db.queue::<i64>("alone").await.expect("opened");
    alone.enqueue(1).await.expect("enqueued");
    let error = timeout(SOON, three.shards.drain_and_move(id, |_| ())).await.expect("in time").expect_err("nowhere");
    assert!(error.to_string().contains("\"alone\" is on no other shard"), "{error}");
    assert_eq!(alone.stats().await.expect("counted").due, 1);
    three.shards.resume(id).await.expect("resumed");
    assert_eq!(alone.take(1).await.expect("taken").len(), 1);
}
