//! A message keeps its key wherever it moves.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio_postgres::Client;
use trunkline::{Draft, Failure, Limits, Message, Worker, testing};

use super::{History, nth, settings, worker};
use crate::fixture::{Ids, Place, Runs, eventually, place};

/// Returns the ids and keys of all messages, in the order of the payloads.
async fn keys(sql: &Client) -> Vec<(i64, String)> {
    let rows =
        "select id + k, keys[k + 1] from trunkline.queue_q, generate_series(0, size - 1) k order by payload[k + 1]";
    let rows = sql.query(rows, &[]).await.expect("read");
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test]
async fn it_is_stored_however_it_was_enqueued() {
    let Place { db, queue, sql, .. } = place::<i64>(settings()).await;
    let mut ids = vec![queue.enqueue(nth(1, 0)).await.expect("enqueued").id()];
    ids.extend(
        queue
            .enqueue_many(&(1..30).map(|at| nth(at as usize % 5, at)).collect::<Vec<_>>())
            .await
            .expect("enqueued")
            .ids(),
    );
    let transaction = db.begin().await.expect("begun");
    let more: Vec<_> = (30..40).map(|at| nth(at as usize % 5, at)).collect();
    ids.extend(queue.enqueue_many_in(&transaction, &more).await.expect("enqueued").ids());
    ids.push(queue.enqueue_in(&transaction, nth(3, 40)).await.expect("enqueued").id());
    transaction.commit().await.expect("committed");
    let expected = (0..=40).map(|at: usize| {
        if at == 0 {
            1
        } else if at == 40 {
            3
        } else {
            at % 5
        }
    });
    let expected: Vec<(i64, String)> = ids.into_iter().zip(expected.map(|key| format!("key {key}"))).collect();
    assert_eq!(keys(&sql).await, expected);
}

#[tokio::test]
async fn order_of_a_key_holds_whatever_columns_its_messages_have() {
    let Place { db, queue, sql, .. } = place::<i64>(settings()).await;
    sql.batch_execute("alter table trunkline.queue_q add column tenant text").await.expect("added");
    let drafts = |from: i64| {
        let draft = |n: i64| {
            let draft = Draft::new(n).key("one");
            if n % 3 == 0 { draft } else { draft.column("tenant", if n % 3 == 1 { "a" } else { "b" }) }
        };
        (from..from + 20).map(draft).collect::<Vec<_>>()
    };
    queue.enqueue_many(drafts(0)).await.expect("enqueued");
    let transaction = db.begin().await.expect("begun");
    queue.enqueue_many_in(&transaction, drafts(20)).await.expect("enqueued");
    let sent = queue.send_enqueue_many(&transaction, drafts(40)).await.expect("sent");
    transaction.commit().await.expect("committed");
    sent.await.expect("enqueued");
    let order =
        "select array_agg(p order by place, id, nr) from trunkline.queue_q, unnest(payload) with ordinality u(p, nr)";
    let order: Vec<i64> = sql.query_one(order, &[]).await.expect("read").get(0);
    assert_eq!(order, (0..60).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_survives_death_and_replay() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    queue.enqueue_many(&(0..4).map(|at| nth(at as usize, at)).collect::<Vec<_>>()).await.expect("enqueued");
    let before = keys(&sql).await;
    let dies = |_: Message<i64>| async { Err::<(), _>(Failure::dead("no use")) };
    Worker::new(queue.clone(), dies).drain().await.expect("drained");
    assert_eq!(queue.stats().await.expect("counted").dead, 4);
    queue.replay_all().await.expect("replayed");
    assert_eq!(keys(&sql).await, before);
    let works = |_: Message<i64>| async { Ok::<(), Failure>(()) };
    assert_eq!(Worker::new(queue.clone(), works).drain().await.expect("drained").done, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn delayed_message_has_its_place_by_its_due_time() {
    let Place { queue, .. } = place::<i64>(settings()).await;
    let hour = Duration::from_secs(3600);
    let late = Draft::new(2).key("key 0").after(hour);
    queue.enqueue(late).await.expect("enqueued");
    queue.enqueue(nth(0, 0)).await.expect("enqueued");
    queue.enqueue(nth(0, 1)).await.expect("enqueued");
    testing::shift(&queue, hour).await.expect("an hour later");
    let history = History::default();
    let runs = Runs::start(worker(queue.clone(), &history, 0.0, 2));
    eventually("all are done", async || history.done() == 3).await;
    runs.stop().await;
    history.check(1, 3);
}

/// Creates a worker that fails the first message of a key, with a retry after an hour. It completes
/// all other messages.
fn fails_first(
    history: &History,
) -> impl Fn(Message<i64>) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync + 'static {
    let history = history.clone();
    move |message: Message<i64>| {
        let history = history.clone();
        Box::pin(async move {
            history.add(&message, true);
            if message.payload == 0 && message.attempts() == 1 {
                return Err(Failure::retry_after(Duration::from_secs(3600), "later"));
            }
            history.add(&message, false);
            Ok(())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_key_goes_on_after_cancel_purge_or_due_time() {
    let Place { db, queue, .. } = place::<i64>(settings().partitions(1)).await;
    for way in ["cancelled", "purged", "due"] {
        let ids = queue.enqueue_many(&(0..3).map(|at| nth(0, at)).collect::<Vec<_>>()).await.expect("enqueued").ids();
        let history = History::default();
        let runs = Runs::start(Worker::new(queue.clone(), fails_first(&history)));
        eventually("it waits for its first", async || {
            let stats = queue.stats().await.expect("counted");
            stats.to_retry > 0 && stats.leased == 0 && stats.messages == 3
        })
        .await;
        let done = match way {
            "cancelled" => {
                assert_eq!(queue.cancel(&ids[..1]).await.expect("cancelled"), ids[..1]);
                2
            }
            "purged" => {
                queue.purge().await.expect("purged");
                queue.enqueue_many(&[nth(0, 1)]).await.expect("enqueued");
                1
            }
            _ => {
                testing::shift(&queue, Duration::from_secs(3600)).await.expect("an hour later");
                3
            }
        };
        eventually(way, async || history.done() == done).await;
        runs.stop().await;
        assert_eq!(queue.stats().await.expect("counted").messages, 0, "{way}");
    }
    drop(db);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_of_the_queue_holds_along_lanes() {
    let Place { db, queue, .. } = place::<i64>(settings()).await;
    db.limit_queue("q", &Limits::none().per_second(5.0).burst(5)).await.expect("limited");
    queue.enqueue_many(&(0..40).map(|at| nth(at as usize, at)).collect::<Vec<_>>()).await.expect("enqueued");
    let history = History::default();
    let began = Instant::now();
    let runs = Runs::start(worker(queue.clone(), &history, 0.0, 8));
    eventually("ten are done", async || history.done() >= 10).await;
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    runs.stop().await;
}

/// The backlog of a resting key moves out of the partition in many short calls. Therefore even a
/// long backlog blocks no caller.
#[tokio::test(flavor = "multi_thread")]
async fn backlog_is_moved_unchanged_in_short_calls() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    let alone =
        "select count(*) from (select trunkline.enqueue('q', n, key => 'key 0') from generate_series(0, 2999) n) x";
    sql.execute(alone, &[]).await.expect("enqueued");
    queue.enqueue_many(&(3000..4000).map(|at| nth(0, at)).collect::<Vec<_>>()).await.expect("enqueued");
    queue.enqueue(nth(1, 0)).await.expect("enqueued");
    sql.execute("select trunkline.do_line_q('{key 0}', '{3600}')", &[]).await.expect("it rests");
    let mut calls = 0;
    loop {
        let found = "select keys[1], (select count(*) from trunkline.queue_q where line <> '') from trunkline.do_lanes_q(100, null, 1)";
        let found = sql.query_opt(found, &[]).await.expect("asked");
        let count = "select count(*), count(*) filter (where line <> '') from trunkline.queue_q";
        let rows = sql.query_one(count, &[]).await.expect("counted");
        let (rows, moved): (i64, i64) = (rows.get(0), rows.get(1));
        assert_eq!(rows, 3002, "none is cut");
        calls += 1;
        assert!(moved <= calls * 512, "{moved} rows in {calls} calls");
        if let Some(found) = found {
            assert_eq!((found.get(0), moved), ("key 1", 3001), "what is behind the backlog, once all of that is moved");
            break;
        }
        let again: f64 = sql.query_one("select trunkline.do_lanesin_q(1)", &[]).await.expect("asked").get(0);
        assert!(again.abs() < f64::EPSILON, "the rest is moved at once");
    }
    assert!(calls < 100, "{calls} calls");

    // A call that only moves rows to backlogs returns no message. A draining worker must not end
    // after such a call.
    sql.batch_execute(
        "update trunkline.line_q set until = clock_timestamp(); update trunkline.queue_q set line = '' where line <> '';
         update trunkline.lane_q set holder = null, held_until = '-infinity' where lane >= 0;
         update trunkline.queue_q set due_at = trunkline.clock() where due_at > clock_timestamp()",
    )
    .await
    .expect("everything is as before");
    let history = History::default();
    let noted = history.clone();
    let handler = move |message: Message<i64>| {
        noted.add(&message, true);
        noted.add(&message, false);
        async { Ok::<(), Failure>(()) }
    };
    let summary = Worker::new(queue.clone(), handler).drain().await.expect("drained");
    assert_eq!((summary.done, history.done()), (4001, 4001));
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}

/// A paused queue moves no messages. So its workers do not call again immediately.
#[tokio::test]
async fn workers_of_a_paused_queue_sleep_before_a_waiting_keys_backlog() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    queue.enqueue(nth(0, 0)).await.expect("enqueued");
    sql.execute("select trunkline.do_line_q('{key 0}', '{3600}')", &[]).await.expect("it rests");
    let again = async || -> Option<bool> {
        sql.query_one("select trunkline.do_lanesin_q(1) = 0", &[]).await.expect("asked").get(0)
    };
    assert_eq!(again().await, Some(true));
    db.pause_queue("q").await.expect("paused");
    assert_ne!(again().await, Some(true));
}

/// Returns true if the holder, which has found nothing, must call again at once.
async fn calls_again(sql: &Client, holder: i64) -> bool {
    let again = "select coalesce(trunkline.do_lanesin_q($1) = 0, false)";
    sql.query_one(again, &[&holder]).await.expect("asked").get(0)
}

/// A limit keeps a worker from moving messages, and so does another worker that requests the
/// partition.
#[tokio::test]
async fn workers_that_may_lease_nothing_sleep_before_a_waiting_keys_backlog() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    queue.enqueue(nth(1, 0)).await.expect("enqueued");
    let leased = sql.query("select from trunkline.do_lanes_q(1, '1 hour', 1)", &[]).await.expect("leased");
    assert_eq!(leased.len(), 1, "the holder keeps the partition");
    queue.enqueue(nth(0, 0)).await.expect("enqueued");
    sql.execute("select trunkline.do_line_q('{key 0}', '{3600}')", &[]).await.expect("it rests");
    assert!(calls_again(&sql, 1).await);

    db.limit_queue("q", &Limits::none().max_leased(1)).await.expect("limited");
    assert!(!calls_again(&sql, 1).await, "a message is leased");
    db.limit_queue("q", &Limits::none().per_second(0.01).burst(1)).await.expect("limited");
    assert!(calls_again(&sql, 1).await, "a message is allowed");
    sql.batch_execute("update trunkline.bucket set tokens = 0, filled_at = clock_timestamp()").await.expect("empty");
    let pause: f64 = sql.query_one("select trunkline.do_lanesin_q(1)", &[]).await.expect("asked").get(0);
    assert!(pause > 1.0 && pause <= 100.0, "until the limit allows a message: {pause}");
    db.limit_queue("q", &Limits::none()).await.expect("unlimited");

    let requested = "update trunkline.lane_q set wanted_until = now() + interval '1 minute' where lane >= 0";
    sql.batch_execute(requested).await.expect("requested");
    assert!(!calls_again(&sql, 1).await, "another worker requests the partition");
    let withdrawn = "update trunkline.lane_q set wanted_until = '-infinity' where lane >= 0";
    sql.batch_execute(withdrawn).await.expect("withdrawn");
    assert!(calls_again(&sql, 1).await);
}

/// The partition with the backlog is free.
#[tokio::test]
async fn only_workers_with_too_few_partitions_call_again_for_a_free_one() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(settings().partitions(4)).await;
    queue.enqueue(nth(0, 0)).await.expect("enqueued");
    sql.execute("select trunkline.do_line_q('{key 0}', '{3600}')", &[]).await.expect("it rests");
    let two_and_one = "update trunkline.lane_q h
                       set holder = case when o.nr < 3 then 1 else 2 end, held_until = now() + interval '1 hour'
                       from (select l.lane, row_number() over (order by l.lane) as nr from trunkline.lane_q l
                             where l.lane >= 0 and l.lane not in (select q.lane from trunkline.queue_q q)) o
                       where h.lane = o.lane";
    assert_eq!(sql.execute(two_and_one, &[]).await.expect("held"), 3);
    assert!(!calls_again(&sql, 1).await, "it has its share");
    assert!(calls_again(&sql, 2).await);
}
