//! Messages with the same key are handled one after another, in the order in which they are due.
//! Nothing that happens to the messages or the workers changes this order.

mod by_hand;
mod changed;
mod fair;
mod histories;
mod held_back;
mod lanes_in_sql;
mod locked;
mod many_waiting;
mod more_lanes;
mod moved;
mod over_the_end;
mod purged;
mod ran_out;
mod rate;
mod renewed;
mod shown;
mod unreadable;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use trunkline::{Changes, Db, Draft, Enqueued, Failure, Message, Queue, RetryPolicy, Settings, Worker, testing};

use crate::fixture::{Place, Runs, drained, eventually, grows_to, place};

pub fn settings() -> Settings {
    Settings::new("int8").partitions(8).max_attempts(20)
}

/// Returns a message with a key. Its payload is its position in the key's order.
pub fn nth(key: usize, place: i64) -> Draft<i64> {
    Draft::new(place).key(format!("key {key}"))
}

/// The starts and ends of handlers, by key. Each entry has the message's position in the key's
/// order, and `true` for a start or `false` for an end.
#[derive(Clone, Default)]
pub struct History(Arc<Mutex<BTreeMap<String, Events>>>);

type Events = Vec<(i64, bool)>;

impl History {
    pub fn add(&self, message: &Message<i64>, began: bool) {
        let key = message.key.as_deref().expect("a key").to_owned();
        self.0.lock().expect("no panic").entry(key).or_default().push((message.payload, began));
    }

    pub fn done(&self) -> usize {
        self.0.lock().expect("no panic").values().flatten().filter(|(_, began)| !began).count()
    }

    /// Checks that each key's messages ended in order, and that no message started before all
    /// preceding messages had ended.
    pub fn check(&self, keys: usize, each: i64) {
        let history = self.0.lock().expect("no panic");
        assert_eq!(history.len(), keys);
        for (key, events) in history.iter() {
            let mut next = 0;
            for (place, began) in events {
                if *began {
                    // Accepts a second start, because a worker may vanish before the
                    // acknowledgement.
                    assert!(*place <= next, "{key}: {place} began before {next} had ended: {events:?}");
                } else {
                    assert!(*place <= next, "{key}: {place} ended before {next}");
                    next = next.max(place + 1);
                }
            }
            assert_eq!(next, each, "{key}: all are done");
        }
    }
}

/// Maps each number to a pseudo-random number from 0 to 1 (splitmix64).
fn chance(nr: u64) -> f64 {
    let mut x = nr.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Creates a worker whose handler occasionally fails.
pub fn worker(queue: Queue<i64>, history: &History, failures: f64, concurrency: usize) -> Worker<i64> {
    let (history, seed) = (history.clone(), Arc::new(AtomicUsize::new(1)));
    let handler = move |message: Message<i64>| {
        let (history, seed) = (history.clone(), seed.fetch_add(1, Ordering::Relaxed));
        async move {
            history.add(&message, true);
            tokio::task::yield_now().await;
            let fails = chance(seed as u64) < failures;
            if fails && message.attempt < 10 {
                return Err(Failure::retry("by chance"));
            }
            history.add(&message, false);
            Ok(())
        }
    };
    Worker::new(queue, handler)
        .concurrency(concurrency)
        .retry(RetryPolicy::exponential(Duration::from_millis(5), Duration::from_millis(20)))
}

#[tokio::test(flavor = "multi_thread")]
async fn key_order_holds_with_several_workers_that_fail() {
    const KEYS: usize = 40;
    const EACH: i64 = 50;
    let Place { queue, url, .. } = place::<i64>(settings()).await;
    let history = History::default();
    let mut running = Vec::new();
    for _ in 0..3 {
        let queue = Db::connect(&url).await.expect("connected").queue("q").await.expect("opened");
        running.push(Runs::start(worker(queue, &history, 0.1, 8)));
    }
    for place in 0..EACH {
        let all: Vec<_> = (0..KEYS).map(|key| nth(key, place)).collect();
        queue.enqueue_many(&all).await.expect("enqueued");
    }
    grows_to("all are done", KEYS * EACH as usize, || history.done()).await;
    for runs in running {
        runs.stop().await;
    }
    history.check(KEYS, EACH);
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_vanishes_is_followed_in_order() {
    const KEYS: usize = 20;
    const EACH: i64 = 40;
    let Place { queue, url, sql, .. } = place::<i64>(settings()).await;
    let history = History::default();
    for place in 0..EACH {
        queue.enqueue_many(&(0..KEYS).map(|key| nth(key, place)).collect::<Vec<_>>()).await.expect("enqueued");
    }
    for round in 1..4 {
        let db = Db::connect(&format!("{url} application_name=vanishing")).await.expect("connected");
        let worker = worker(db.queue("q").await.expect("opened"), &history, 0.05, 4);
        drop(db);
        let running = tokio::spawn(worker.run(std::future::pending()));
        grows_to("some are done", KEYS * EACH as usize * round / 5, || history.done()).await;
        running.abort(); // drops the worker with everything that it holds
        let _ = running.await;
        // Waits until the worker's last lease statement has ended, because it may still be running.
        // Then expires all leases of this worker.
        let gone = "select not exists (select from pg_stat_activity
                                       where application_name = 'vanishing' and datname = current_database())";
        eventually("it is gone", async || sql.query_one(gone, &[]).await.expect("visible").get(0)).await;
        testing::shift(&queue, Duration::from_secs(60)).await.expect("a minute later");
    }
    let runs = Runs::start(worker(queue.clone(), &history, 0.05, 4));
    drained(&queue).await;
    runs.stop().await;
    history.check(KEYS, EACH);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_runs_per_key_messages_at_the_same_time() {
    let Place { queue, .. } = place::<i64>(settings().per_key(3)).await;
    queue.enqueue_many(&(0..60).map(|place| nth(0, place)).collect::<Vec<_>>()).await.expect("enqueued");
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let handler = move |_: Message<i64>| {
        let (running, most) = (running.clone(), most.clone());
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(3)).await; // simulates work
            running.fetch_sub(1, Ordering::SeqCst);
            Ok::<(), Failure>(())
        }
    };
    Worker::new(queue.clone(), handler).concurrency(20).drain().await.expect("drained");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
    assert_eq!(seen.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_worker_of_an_older_handle_obeys_a_lower_per_key() {
    let Place { db, queue, .. } = place::<i64>(settings().per_key(3)).await;
    db.alter_queue("q", &Changes::new().per_key(1)).await.expect("altered");
    queue.enqueue_many(&(0..60).map(|place| nth(0, place)).collect::<Vec<_>>()).await.expect("enqueued");
    let history = History::default();
    worker(queue.clone(), &history, 0.0, 8).drain().await.expect("drained");
    history.check(1, 60);
}

#[tokio::test]
async fn missing_keys_and_partitions_are_refused_with_advice() {
    let Place { db, queue, sql, .. } = place::<i64>(settings()).await;
    db.create_queue("plain", &Settings::new("int8")).await.expect("created");
    db.create_queue("unique", &Settings::new("int8").uniqueness(true)).await.expect("created");
    let plain = db.queue::<i64>("plain").await.expect("opened");
    let told = async |outcome: trunkline::Result<Enqueued>| outcome.expect_err("refused").to_string();
    assert!(told(queue.enqueue(1).await).await.contains("needs a key"));
    assert!(told(queue.enqueue(Draft::new(1).key("")).await).await.contains("0 bytes"));
    assert!(told(queue.enqueue(Draft::new(1).key("k".repeat(1025))).await).await.contains("1025 bytes"));
    assert!(told(plain.enqueue(nth(1, 1)).await).await.contains("has no keys"));
    let error = queue.take(1).await.expect_err("by partition only").to_string();
    assert!(error.contains("has keys") && error.contains("lease_partition"), "{error}");
    assert!(queue.lease(1).await.is_err());
    for (call, words) in [
        ("enqueue('q', 1::int8)", "needs a key"),
        ("enqueue('plain', 1::int8, key => 'a')", "has no keys"),
        ("enqueue('q', 1::int8, key => '')", "empty, null or too long"),
        ("enqueue('q', 1::int8, key => 'a', priority => 1)", "no priority 1"),
        ("enqueue('unique', 1::int8, key => 'a', unique_key => 'u')", "has no keys"),
        ("enqueue('none', 1::int8, key => 'a', unique_key => 'u')", "no queue 'none'"),
        ("enqueue_many('q', array[1]::int8[], keys => array['a'], priority => 1)", "no priority 1"),
        ("enqueue_many('unique', array[1]::int8[], keys => array['a'], unique_keys => array['u'])", "has no keys"),
        ("enqueue_many('q', array['1'], keys => array['a'], priority => 1)", "no priority 1"),
        ("enqueue_many('unique', array['1'], keys => array['a'], unique_keys => array['u'])", "has no keys"),
        ("enqueue_many('q', '{1}', keys => array['a'], priority => 1)", "no priority 1"),
        ("enqueue_many('unique', '{1}', keys => array['a'], unique_keys => array['u'])", "has no keys"),
        ("enqueue('unique', '1', key => 'a', unique_key => 'u')", "has no keys"),
        ("enqueue_many('q', array[1, 2]::int8[], keys => array['a'])", "2 payloads, but 1 keys"),
        ("create_queue('x', 'text', partitions => 300)", "out of bounds"),
        ("create_queue('x', 'text', partitions => 4, priorities => 2)", "both keys and priorities"),
        ("lease_partition('plain')", "has no partitions"),
        ("more('q', 17)", "has no partition"),
    ] {
        let error = sql.batch_execute(&format!("select trunkline.{call}")).await.expect_err(call);
        let error = error.as_db_error().expect("the server's").message().to_owned();
        assert!(error.contains(words), "{call}: {error}");
    }
}
