//! Priorities add to a message's age. The tests check which messages overtake, by how much, and in
//! which order within a priority. A message keeps its priority.

mod earliest;
mod order;

use std::time::Duration;

use tokio_postgres::Client;
use trunkline::{Db, Draft, Message, Queue, Settings, Wait};

use crate::{
    fixture::{Ids, Place, SOON, connect, place, run_out, within},
    floor::library_cost_of,
};

const MINUTE: Duration = Duration::from_secs(60);

fn settings() -> Settings {
    Settings::new("int8").priorities(4).max_attempts(2)
}

fn of(payload: i64, priority: u8) -> Draft<i64> {
    Draft::new(payload).priority(priority)
}

fn payloads(messages: &[Message<i64>]) -> Vec<i64> {
    messages.iter().map(|message| message.payload).collect()
}

/// Moves a message's due time back by `seconds`.
async fn older(sql: &Client, payload: i64, seconds: f64) {
    let moved = "update trunkline.queue_q set due_at = due_at - $2 * interval '1 second' where $1 = any (payload)";
    assert_eq!(sql.execute(moved, &[&payload, &seconds]).await.expect("moved"), 1);
}

/// Opens a fresh handle, whose floors are below the messages that the test moved.
async fn reopened(url: &str) -> Queue<i64> {
    Db::connect(url).await.expect("connected").queue("q").await.expect("opened")
}

async fn lane(sql: &Client, payload: i64) -> i16 {
    sql.query_one("select lane from trunkline.queue_q where $1 = any (payload)", &[&payload])
        .await
        .expect("there")
        .get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn higher_priority_overtakes_only_within_its_aging() {
    let Place { queue, sql, url, .. } = place::<i64>(settings()).await;
    for (payload, priority) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
        queue.enqueue(of(payload, priority)).await.expect("enqueued");
    }
    // Makes the lowest priority 50 s older than the next one. The highest priority is still ahead,
    // although its message has just arrived.
    older(&sql, 0, 50.0).await;
    let queue = reopened(&url).await;
    assert_eq!(payloads(&queue.take(1).await.expect("taken")), [3]);
    // Makes the lowest priority 130 s older, which is more than two steps of aging. So its message
    // comes first, regardless of the number of other messages.
    older(&sql, 0, 80.0).await;
    let queue = reopened(&url).await;
    queue.enqueue_many(&(100..200).map(|payload| of(payload, 2)).collect::<Vec<_>>()).await.expect("enqueued");
    assert_eq!(payloads(&queue.take(4).await.expect("taken")), [0, 2, 100, 101]);
}

#[tokio::test(flavor = "multi_thread")]
async fn priority_keeps_its_order_and_strict_queues_let_lower_wait() {
    let Place { queue, sql, url, .. } = place::<i64>(settings().aging(Duration::MAX)).await;
    let drafts: Vec<Draft<i64>> = (0..3000).map(|payload| of(payload, (payload % 4) as u8)).collect();
    let ids = queue.enqueue_many(&drafts).await.expect("enqueued").ids();
    assert_eq!(ids.len(), 3000);
    // Messages of the same priority share rows, regardless of their positions in the list. Ids are
    // returned in the caller's order.
    assert_eq!(queue.stats().await.expect("counted").rows, 4);
    for (payload, id) in (0..).zip(&ids).step_by(997) {
        assert_eq!(queue.find(*id).await.expect("looked for").expect("there").payload, payload);
    }
    older(&sql, 0, 36_000.0).await;
    let queue = reopened(&url).await;
    let mut taken = Vec::new();
    while taken.len() < 3000 {
        taken.extend(payloads(&queue.take(700).await.expect("taken")));
    }
    let expected: Vec<i64> =
        (0..4).rev().flat_map(|priority| (0..3000).filter(move |payload| payload % 4 == priority)).collect();
    assert_eq!(taken, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_callers_of_several_priorities_share_rows() {
    let Place { queue, .. } = place::<i64>(settings()).await;
    let calls = (0..2000).map(|payload| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.enqueue(of(payload, (payload % 4) as u8)).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("no panic").expect("enqueued");
    }
    let stats = queue.stats().await.expect("counted");
    assert!(stats.messages == 2000 && stats.rows < 500, "{stats:?}");
    let mut taken = payloads(&queue.take(5000).await.expect("taken"));
    taken.sort_unstable();
    assert_eq!(taken, (0..2000).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn message_keeps_its_priority_through_splits_retries_death_and_replay() {
    let Place { queue, sql, .. } = place::<i64>(settings()).await;
    queue.enqueue_many(&(0..100).map(|payload| of(payload, 2)).collect::<Vec<_>>()).await.expect("enqueued");
    let leased = queue.lease(10).await.expect("leased");
    assert_eq!((payloads(&leased)[9], lane(&sql, 50).await), (9, 2), "the rest was cut off");
    queue.retry(&leased[..2], Duration::ZERO, "no").await.expect("held");
    assert_eq!(lane(&sql, 0).await, 2);
    queue.release(&leased[2..3]).await.expect("held");
    assert_eq!(lane(&sql, 2).await, 2);
    queue.bury(&leased[3..4], "never").await.expect("held");
    queue.ack(&leased[4..9]).await.expect("held");
    assert_eq!(queue.replay(&[leased[3].id]).await.expect("replayed"), 1);
    assert_eq!(lane(&sql, 3).await, 2);
    // Lets the message's last lease expire. The next lease call buries the message, and a replay
    // returns it to the queue.
    run_out(&sql).await;
    let again = queue.lease(1).await.expect("leased").remove(0);
    sql.batch_execute("update trunkline.queue_q set attempt = 2, released = 0 where attempt = 1").await.expect("spent");
    run_out(&sql).await;
    queue.lease(200).await.expect("leased");
    let dead = queue.dead_letters(0, 100).await.expect("listed");
    assert!(dead.iter().any(|letter| letter.id == again.id), "{dead:?}");
    assert_eq!(queue.replay(&[again.id]).await.expect("replayed"), 1);
    assert_eq!(lane(&sql, again.payload).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_verbs_know_priorities() {
    let Place { queue, sql, db, .. } = place::<i64>(settings()).await;
    // The same holds in transactions, with pipelining, and in SQL.
    let transaction = db.begin().await.expect("begun");
    let ids = queue.enqueue_many_in(&transaction, [of(1, 1), of(2, 3), of(3, 1)]).await.expect("enqueued").ids();
    let sent = queue.send_enqueue(&transaction, of(4, 2)).await.expect("sent");
    transaction.commit().await.expect("committed");
    sent.await.expect("enqueued");
    assert_eq!(queue.find(ids[1]).await.expect("looked for").expect("there").payload, 2);
    sql.batch_execute(
        "select trunkline.enqueue('q', 5::int8, priority => 3); select trunkline.enqueue('q', '6', priority => 0);
         select trunkline.enqueue_many('q', array[7, 8]::int8[], priority => 2); select trunkline.enqueue_many('q', '{9}', priority => 1)",
    )
    .await
    .expect("enqueued");
    let by_lane = "select array_agg(p order by p) from (select lane, unnest(payload) p from trunkline.queue_q) m group by lane order by lane";
    let lanes: Vec<Vec<i64>> = sql.query(by_lane, &[]).await.expect("read").iter().map(|row| row.get(0)).collect();
    assert_eq!(lanes, [vec![6], vec![1, 3, 9], vec![4, 7, 8], vec![2, 5]]);

    let peeked = queue.peek(100).await.expect("looked at");
    assert_eq!(
        peeked.iter().map(|peeked| peeked.payload).collect::<Vec<_>>(),
        [1, 3, 2, 4, 5, 6, 7, 8, 9],
        "as they are due"
    );
    let transaction = db.begin().await.expect("begun");
    assert_eq!(payloads(&queue.take_in(&transaction, 3).await.expect("taken")), [2, 5, 4]);
    transaction.rollback().await.expect("rolled back");
    let rows = sql.query("select payload from trunkline.lease('q', 2)", &[]).await.expect("leased");
    assert_eq!(rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["2", "5"]);
    let (messages, _) = queue.ack_and_lease(Vec::<trunkline::Lease>::new(), 3).await.expect("leased");
    assert_eq!(payloads(&messages), [4, 7, 8]);
    let rows = sql.query("select payload from trunkline.take('q', 100, wait => '1 second')", &[]).await.expect("taken");
    assert_eq!(rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["1", "3", "9", "6"]);
    assert_eq!(queue.stats().await.expect("counted").leased, 5);
    let description = db.describe_queue("q").await.expect("described");
    assert_eq!((description.priorities, description.aging), (4, MINUTE));
}

/// Every call that shows a message shows its priority.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_tells_its_priority() {
    let Place { queue, sql, db, .. } = place::<i64>(settings()).await;
    let ids = queue.enqueue_many([of(0, 0), of(1, 1), of(2, 2), of(3, 3)]).await.expect("enqueued").ids();
    let peeked = queue.peek(9).await.expect("looked at");
    assert!(
        peeked.len() == 4 && peeked.iter().all(|peeked| i64::from(peeked.priority) == peeked.payload),
        "{peeked:?}"
    );
    for call in [
        "messages('q')",
        "messages_q",
        "messages('q', first_id => 1)",
        "messages('q', due_before => now() + interval '1 day')",
    ] {
        let told = format!("select count(*) filter (where priority = payload::text::int) from trunkline.{call}");
        assert_eq!(sql.query_one(&told, &[]).await.expect(call).get::<_, i64>(0), 4, "{call}");
    }
    let leased = queue.lease(2).await.expect("leased");
    queue.bury(&leased[..1], "no").await.expect("held");
    queue.archive(&leased[1..]).await.expect("held");
    let (dead, archived) = (queue.dead_letters(0, 9).await.expect("read"), queue.archived(0, 9).await.expect("read"));
    assert_eq!((dead[0].payload, dead[0].priority, archived[0].payload, archived[0].priority), (3, 3, 2, 2));
    for (id, priority) in ids.into_iter().zip(0..) {
        assert_eq!(queue.find(id).await.expect("looked for").expect("there").priority, priority);
        let found = sql.query_one("select priority from trunkline.find('q', $1)", &[&id]).await.expect("there");
        assert_eq!(found.get::<_, i32>(0), i32::from(priority));
    }
    // In a queue without priorities the result is 0, even if a user's own column is called `lane`.
    db.create_queue("plain", &Settings::new("int8")).await.expect("created");
    sql.batch_execute("alter table trunkline.queue_plain add lane text default 'fast'").await.expect("added");
    let plain: Queue<i64> = db.queue("plain").await.expect("opened");
    let ids = plain.enqueue_many([1, 2, 3]).await.expect("enqueued").ids();
    plain.bury(&plain.lease(1).await.expect("leased"), "no").await.expect("held");
    assert_eq!(plain.dead_letters(0, 1).await.expect("read")[0].priority, 0);
    assert_eq!(plain.find(ids[0]).await.expect("looked for").expect("there").priority, 0);
    assert_eq!(plain.peek(1).await.expect("looked at")[0].priority, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_may_take_turns_as_often_as_they_like() {
    let Place { queue, .. } = place::<i64>(settings().max_batch(1).aging(Duration::from_micros(10))).await;
    for payload in 0..100 {
        queue.enqueue(of(payload, (payload % 4) as u8)).await.expect("enqueued");
    }
    let (leased, _) = queue.ack_and_lease(Vec::<trunkline::Lease>::new(), 100).await.expect("leased");
    assert_eq!(leased.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_wake_for_delayed_messages_of_every_priority() {
    let Place { queue, .. } = place::<i64>(settings()).await;
    for wait in [Wait::Notify, Wait::Adaptive, Wait::Poll(Duration::from_millis(5))] {
        for priority in 0..4 {
            let mut consumer = queue.consumer(wait);
            let waiting = tokio::spawn(async move { consumer.lease(1).await });
            queue.enqueue(of(7, priority).after(Duration::from_millis(50))).await.expect("enqueued");
            let leased =
                tokio::time::timeout(SOON, waiting).await.expect("in time").expect("no panic").expect("leased");
            queue.ack(&leased).await.expect("held");
        }
    }
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn backlog_of_one_priority_holds_no_floor_of_another() {
    let Place { queue, sql, url, db } = place::<i64>(settings().max_batch(1)).await;
    queue.enqueue_many(&(0..10).map(|payload| of(payload, 0)).collect::<Vec<_>>()).await.expect("enqueued");
    let fresh = library_cost_of(&db, &queue, &url, &sql, "3").await;
    let old = connect(&url).await;
    old.batch_execute("begin isolation level repeatable read; select 1 from trunkline.queue").await.expect("held");
    // Creates many dead rows of the highest priority, which no vacuum can remove.
    for _ in 0..20 {
        let drafts: Vec<Draft<i64>> = (0..500).map(|payload| of(payload, 3)).collect();
        queue.enqueue_many(&drafts).await.expect("enqueued");
        assert_eq!(queue.take(500).await.expect("taken").len(), 500);
    }
    // Waits long, because probes take at most a hundredth of the time. So after a slow probe on a
    // busy machine, the next probe is late.
    within(Duration::from_secs(90), "the floor of that lane has followed", async || {
        library_cost_of(&db, &queue, &url, &sql, "3").await < 3.0 * fresh + 20.0
    })
    .await;
    old.batch_execute("rollback").await.expect("let go");
    assert_eq!(queue.take(100).await.expect("taken").len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_priority_is_refused_and_harms_no_other_caller() {
    let Place { queue, db, sql, .. } = place::<i64>(settings()).await;
    for (what, outcome) in [
        ("enqueue", queue.enqueue(of(1, 4)).await.map(drop)),
        ("enqueue_many", queue.enqueue_many([of(1, 0), of(2, 9)]).await.map(drop)),
        ("enqueue_in", {
            let transaction = db.begin().await.expect("begun");
            queue.enqueue_in(&transaction, of(1, 4)).await.map(drop)
        }),
    ] {
        let error = outcome.expect_err(what).to_string();
        assert!(error.contains("from 0 to 3"), "{what}: {error}");
    }
    for call in [
        "enqueue('q', '1', priority => 4)",
        "enqueue('q', '1', priority => -1)",
        "enqueue_many('q', '{1}', priority => null)",
    ] {
        let error = sql.batch_execute(&format!("select trunkline.{call}")).await.expect_err(call);
        let hint = error.as_db_error().and_then(|error| error.hint()).expect("a hint").to_owned();
        assert!(hint.contains("priorities are 0 to 3"), "{call}: {hint}");
    }
    db.create_queue("plain", &Settings::new("int8")).await.expect("created");
    let plain: Queue<i64> = db.queue("plain").await.expect("opened");
    let error = plain.enqueue(of(1, 1)).await.expect_err("it has none").to_string();
    assert!(error.contains("Settings::priorities"), "{error}");
    plain.enqueue(of(1, 0)).await.expect("the lowest is there everywhere");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
    for bad in [settings().priorities(0), settings().priorities(11), settings().aging(Duration::ZERO)] {
        let error = db.create_queue("bad", &bad).await.expect_err("out of bounds").to_string();
        assert!(error.contains("priorities 1 to 10"), "{error}");
    }
    db.alter_queue("q", &trunkline::Changes::new().aging(MINUTE * 2)).await.expect("altered");
    assert_eq!(db.describe_queue("q").await.expect("described").aging, MINUTE * 2);
}

/// One statement leases all due messages that it can lease. It does not wait for locked rows.
/// Messages that must be isolated are returned alone.
#[tokio::test(flavor = "multi_thread")]
async fn locked_messages_are_skipped_and_expired_ones_come_alone() {
    let Place { queue, sql, url, .. } = place::<i64>(settings()).await;
    for (payload, priority) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
        queue.enqueue(of(payload, priority)).await.expect("enqueued");
    }
    let other = connect(&url).await;
    other.batch_execute("begin; select from trunkline.queue_q where payload[1] = 2 for update").await.expect("locked");
    let leased = tokio::time::timeout(SOON, queue.lease(10)).await.expect("no wait").expect("leased");
    assert_eq!(payloads(&leased), [3, 1, 0]);
    other.batch_execute("rollback").await.expect("rolled back");
    let rest = queue.lease(10).await.expect("leased");
    assert_eq!(payloads(&rest), [2]);
    queue.ack(&leased[..2]).await.expect("held");
    queue.retry(&rest, Duration::ZERO, "no").await.expect("held");
    // Expires the remaining leases. Now one message has failed, and the lease of another one has
    // expired without an end.
    run_out(&sql).await;
    let one_by_one = "select payload[1], ran_out from trunkline.do_lease_q(10, rows => 10, apart => true)";
    for (payload, ran_out) in [(2, false), (0, true)] {
        let rows = sql.query(one_by_one, &[]).await.expect("leased");
        let told: Vec<(i64, bool)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(told, [(payload, ran_out)]);
    }
}

/// A transaction that has locked the first message of a priority must not keep messages of lower
/// priorities from others, even if their row has to be split.
#[tokio::test(flavor = "multi_thread")]
async fn locked_message_of_a_higher_priority_stops_no_take_that_splits_a_row() {
    let Place { queue, sql, db, .. } = place::<i64>(settings()).await;
    queue.enqueue_many((0..100).map(|payload| of(payload, 0))).await.expect("enqueued");
    queue.enqueue(of(1000, 2)).await.expect("enqueued");
    sql.batch_execute("begin; select from trunkline.queue_q where lane = 2 for update").await.expect("locked");
    let transaction = db.begin().await.expect("begun");
    assert_eq!(payloads(&queue.take_in(&transaction, 3).await.expect("taken")), [0, 1, 2]);
    transaction.commit().await.expect("committed");
    sql.batch_execute("commit").await.expect("unlocked");
}
