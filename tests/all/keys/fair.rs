//! Keys do not wait for each other, and workers share the partitions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use trunkline::{Db, Failure, Message, Worker};

use super::{History, nth, settings, worker};
use crate::fixture::{Place, Runs, eventually, grows_to, place};

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_holds_up_its_own_key_and_nobody_else() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    for place in 0..5 {
        queue.enqueue_many(&[nth(0, place), nth(1, place)]).await.expect("enqueued");
    }
    let (history, first) = (History::default(), Arc::new(AtomicUsize::new(0)));
    let (noted, failed) = (history.clone(), first.clone());
    let handler = move |message: Message<i64>| {
        let (history, first) = (noted.clone(), failed.clone());
        async move {
            history.add(&message, true);
            if message.key.as_deref() == Some("key 0") && first.fetch_add(1, Ordering::Relaxed) == 0 {
                return Err(Failure::retry_after(Duration::from_secs(3600), "the first of all"));
            }
            history.add(&message, false);
            Ok(())
        }
    };
    let runs = Runs::start(Worker::new(queue.clone(), handler).concurrency(4));
    eventually("the other key is done", async || history.done() == 5).await;
    // Waits until the worker has given back the messages behind the failed message.
    eventually("the rest waits", async || {
        let stats = queue.stats().await.expect("counted");
        stats.messages == 5 && stats.leased == 0
    })
    .await;
    assert_eq!(first.load(Ordering::Relaxed), 1);
    // waits behind the failed message, unlike the next message, which has another key
    queue.enqueue(nth(0, 5)).await.expect("enqueued");
    queue.enqueue(nth(1, 5)).await.expect("enqueued");
    eventually("the other key goes on", async || {
        let stats = queue.stats().await.expect("counted");
        history.done() == 6 && stats.messages == 6 && stats.leased == 0
    })
    .await;
    sql.batch_execute(
        "update trunkline.queue_q set due_at = trunkline.clock() where due_at > clock_timestamp();
         update trunkline.line_q set until = clock_timestamp()",
    )
    .await
    .expect("the hour has passed");
    eventually("all are done", async || history.done() == 12).await;
    runs.stop().await;
    history.check(2, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_key_backlog_does_not_hold_up_its_partition() {
    let Place { queue, .. } = place::<i64>(settings().partitions(1)).await;
    queue.enqueue_many(&(0..3000).map(|place| nth(0, place)).collect::<Vec<_>>()).await.expect("enqueued");
    queue.enqueue_many(&(0..10).map(|place| nth(1, place)).collect::<Vec<_>>()).await.expect("enqueued");
    let history = History::default();
    let (noted, others, ahead) = (history.clone(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, reached) = (others.clone(), ahead.clone());
    let handler = move |message: Message<i64>| {
        let (history, others, ahead) = (noted.clone(), counted.clone(), reached.clone());
        async move {
            history.add(&message, true);
            tokio::time::sleep(Duration::from_millis(1)).await; // simulates work
            history.add(&message, false);
            if message.key.as_deref() == Some("key 1") && others.fetch_add(1, Ordering::SeqCst) == 9 {
                ahead.store(history.done(), Ordering::SeqCst);
            }
            Ok::<(), Failure>(())
        }
    };
    let runs = Runs::start(Worker::new(queue.clone(), handler).concurrency(8));
    eventually("the small one is done", async || others.load(Ordering::SeqCst) == 10).await;
    assert!(ahead.load(Ordering::SeqCst) < 1000, "{} were done before", ahead.load(Ordering::SeqCst));
    grows_to("all are done", 3010, || history.done()).await;
    runs.stop().await;
    assert_eq!(history.done(), 3010, "each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_share_the_lanes_evenly_as_they_come_and_go() {
    let Place { queue, url, sql, .. } = place::<i64>(settings()).await;
    let producing = tokio::spawn({
        let queue = queue.clone();
        async move {
            for place in 0.. {
                let all: Vec<_> = (0..40).map(|key| nth(key, place)).collect();
                if queue.enqueue_many(&all).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await; // the producer's rate
            }
        }
    });
    let shares = async || {
        let held =
            "select count(*) from trunkline.lane_q where held_until > clock_timestamp() group by holder order by 1";
        let rows = sql.query(held, &[]).await.expect("read");
        rows.iter().map(|row| row.get(0)).collect::<Vec<i64>>()
    };
    let history = History::default();
    let first = Runs::start(worker(queue.clone(), &history, 0.0, 4));
    eventually("the first has all lanes that are in use", async || shares().await.iter().sum::<i64>() >= 7).await;
    let another = Db::connect(&url).await.expect("connected").queue("q").await.expect("opened");
    let second = Runs::start(worker(another, &history, 0.0, 4));
    eventually("each has its half", async || shares().await == [4, 4]).await;
    first.stop().await;
    eventually("the second has all", async || shares().await.iter().max() >= Some(&7)).await;
    producing.abort();
    second.stop().await;
    eventually("no worker holds any", async || shares().await.is_empty()).await;
}

/// A worker leases only messages that it can start. Otherwise it would lease the messages of busy
/// keys repeatedly.
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_of_few_keys_is_leased_once_or_twice() {
    const KEYS: usize = 5;
    const EACH: i64 = 2000;
    let Place { queue, .. } = place::<i64>(settings().partitions(4)).await;
    for first in (0..EACH).step_by(10) {
        let drafts: Vec<_> = (first..first + 10).flat_map(|place| (0..KEYS).map(move |key| nth(key, place))).collect();
        queue.enqueue_many(&drafts).await.expect("enqueued");
    }
    let (history, leases) = (History::default(), Arc::new(AtomicUsize::new(0)));
    let (noted, counted) = (history.clone(), leases.clone());
    let handler = move |message: Message<i64>| {
        noted.add(&message, true);
        noted.add(&message, false);
        counted.fetch_add(message.attempt as usize, Ordering::Relaxed);
        async { Ok::<(), Failure>(()) }
    };
    Worker::new(queue, handler).drain().await.expect("drained");
    history.check(KEYS, EACH);
    let (leases, messages) = (leases.load(Ordering::Relaxed), KEYS * EACH as usize);
    assert!(leases <= 2 * messages, "{leases} leases of {messages} messages");
}

/// Key 0 has its own backlog, and the backlog of the partition is never empty. A call that leases
/// one message reads the backlogs of keys first with a probability of a quarter. So 80 calls in a
/// row miss key 0 with a probability of 1e-10.
#[tokio::test]
async fn consumer_of_one_message_at_a_time_reaches_a_key_with_its_own_backlog() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    queue.enqueue(nth(0, 0)).await.expect("enqueued");
    let fail =
        "select trunkline.retry('q', l.id, l.attempt, '1 hour', 'later'), trunkline.release_partition('q', l.holder)
                from trunkline.lease_partition('q', 1) l";
    sql.batch_execute(fail).await.expect("failed");
    queue.enqueue_many(&(0..100).map(|place| nth(1, place)).collect::<Vec<_>>()).await.expect("enqueued");
    sql.batch_execute(
        "update trunkline.queue_q set due_at = trunkline.clock() where due_at > clock_timestamp();
         update trunkline.line_q set until = clock_timestamp()",
    )
    .await
    .expect("the hour has passed");
    let one = "select l.key, trunkline.ack('q', l.id, l.attempt), trunkline.release_partition('q', l.holder)
               from trunkline.lease_partition('q', 1) l";
    let mut keys = Vec::new();
    for _ in 0..80 {
        let rows = sql.query(one, &[]).await.expect("leased");
        keys.push(rows.first().expect("a message is due").get::<_, String>(0));
    }
    assert_eq!(keys.iter().filter(|key| *key == "key 0").count(), 1, "{keys:?}");
}

/// A backlog in one partition does not use up the number of messages that a call may lease, even if
/// the call reads that partition first.
#[tokio::test]
async fn backlog_leaves_room_for_due_messages_in_other_partitions() {
    let Place { queue, sql, .. } = place::<i64>(settings()).await;
    queue.enqueue_many(&(0..2000).map(|place| nth(0, place)).collect::<Vec<_>>()).await.expect("enqueued");
    let elsewhere = "select k from generate_series(1, 99) k
                     where trunkline.lane_of('key ' || k, 8) <> trunkline.lane_of('key 0', 8) limit 5";
    let others = sql.query(elsewhere, &[]).await.expect("read");
    let others: Vec<i32> = others.iter().map(|row| row.get(0)).collect();
    assert_eq!(others.len(), 5);
    sql.batch_execute("select trunkline.do_line_q(array['key 0'], array[0])").await.expect("a line of its own");
    let mut of_backlog = 0;
    for round in 0..20 {
        let drafts: Vec<_> = others.iter().map(|&key| nth(key as usize, round)).collect();
        queue.enqueue_many(&drafts).await.expect("enqueued");
        let leased = "select m.key from trunkline.do_lanes_q(40, '1 minute', 7) b, unnest(b.keys) m(key)";
        let leased = sql.query(leased, &[]).await.expect("leased");
        let count = leased.iter().filter(|row| row.get::<_, &str>(0) == "key 0").count();
        assert_eq!(leased.len() - count, 5, "round {round}");
        of_backlog += count;
    }
    // Each of the 20 calls also leases 5 to 30 messages of the backlog.
    assert!((100..=600).contains(&of_backlog), "{of_backlog}");
}
