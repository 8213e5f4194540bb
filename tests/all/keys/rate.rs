//! A rate per key holds in every period, over all workers, even if workers vanish. Other keys are
//! not blocked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use trunkline::{Db, Failure, Limits, Message, Queue, RetryPolicy, Worker};

use super::{History, nth, settings, worker};
use crate::fixture::{Place, Runs, drained, eventually, grows_to, place};

const RATE: f64 = 20.0;
const BURST: u32 = 5;
/// The tolerance for a thread that pauses after the start of a message and before its handler reads
/// the clock. On a single-threaded runtime, no other message starts during that pause.
const JITTER: f64 = 0.08;

fn limits() -> Limits {
    Limits::none().key_per_second(RATE).key_burst(BURST)
}

/// The times at which handlers started, by key.
#[derive(Clone, Default)]
struct Begun(Arc<Mutex<BTreeMap<String, Vec<Instant>>>>);

impl Begun {
    fn count(&self) -> usize {
        self.0.lock().expect("no panic").values().map(Vec::len).sum()
    }

    fn worker(&self, queue: Queue<i64>) -> Worker<i64> {
        let begun = self.clone();
        let handler = move |message: Message<i64>| {
            let key = message.key.as_deref().expect("a key").to_owned();
            begun.0.lock().expect("no panic").entry(key).or_default().push(Instant::now());
            async { Ok::<(), Failure>(()) }
        };
        Worker::new(queue, handler).concurrency(16)
    }

    /// Checks that in every period, a key started at most as many messages as a full bucket and its
    /// refill allow.
    fn check(&self) {
        for (key, begun) in &mut *self.0.lock().expect("no panic") {
            begun.sort();
            for (at, first) in begun.iter().enumerate() {
                for (more, last) in begun[at..].iter().enumerate() {
                    let time = last.duration_since(*first).as_secs_f64();
                    let allowed = f64::from(BURST) + RATE * (time + JITTER);
                    assert!((more + 1) as f64 <= allowed, "{key}: {} in {time} s: {begun:?}", more + 1);
                }
            }
        }
    }
}

#[tokio::test]
async fn key_keeps_to_its_rate_and_other_keys_pass() {
    let Place { db, queue, url, .. } = place::<i64>(settings().partitions(2)).await;
    db.limit_queue("q", &limits()).await.expect("limited");
    let begun = Begun::default();
    let start = Instant::now();
    queue.enqueue_many(&(0..50).map(|place| nth(0, place)).collect::<Vec<_>>()).await.expect("enqueued");
    queue.enqueue_many(&(1..20).map(|key| nth(key, 0)).collect::<Vec<_>>()).await.expect("enqueued");
    let other = Db::connect(&url).await.expect("connected").queue("q").await.expect("opened");
    let running = [Runs::start(begun.worker(queue.clone())), Runs::start(begun.worker(other))];
    eventually("the others are done", async || begun.0.lock().expect("no panic").len() == 20).await;
    // Checks that the busy key is not faster than its rate. All keys may have used up their
    // messages by now, if enough time has passed.
    let takes_its_time = || start.elapsed().as_secs_f64() >= (50.0 - f64::from(BURST)) / RATE;
    assert!(begun.count() < 69 || takes_its_time(), "the one key takes its time: {:?}", start.elapsed());
    drained(&queue).await;
    assert!(takes_its_time(), "{:?}", start.elapsed());
    for runs in running {
        runs.stop().await;
    }
    begun.check();
}

#[tokio::test]
async fn moved_partition_begins_with_empty_buckets_even_after_a_crash() {
    let Place { db, queue, url, .. } = place::<i64>(settings().partitions(4).lease(Duration::from_secs(3))).await;
    db.limit_queue("q", &limits()).await.expect("limited");
    let all: Vec<_> = (0..60).flat_map(|place| (0..6).map(move |key| nth(key, place))).collect();
    queue.enqueue_many(&all).await.expect("enqueued");
    let begun = Begun::default();
    for (round, crashes) in [true, false, true, false].into_iter().enumerate() {
        let queue = Db::connect(&url).await.expect("connected").queue("q").await.expect("opened");
        let some = begun.count() + 40;
        if crashes {
            let running = tokio::spawn(begun.worker(queue).run(std::future::pending()));
            grows_to(&format!("some are done in round {round}"), some, || begun.count()).await;
            running.abort(); // drops the worker with everything that it holds
            let _ = running.await;
        } else {
            let runs = Runs::start(begun.worker(queue));
            grows_to(&format!("some are done in round {round}"), some, || begun.count()).await;
            runs.stop().await;
        }
    }
    let runs = Runs::start(begun.worker(queue.clone()));
    drained(&queue).await;
    runs.stop().await;
    begun.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn key_order_holds_under_a_rate_with_failures() {
    const EACH: i64 = 12;
    let Place { db, queue, .. } = place::<i64>(settings()).await;
    db.limit_queue("q", &limits()).await.expect("limited");
    for place in 0..EACH {
        queue.enqueue_many(&(0..5).map(|key| nth(key, place)).collect::<Vec<_>>()).await.expect("enqueued");
    }
    let history = History::default();
    let retry = RetryPolicy::exponential(Duration::from_millis(5), Duration::from_millis(20));
    let runs = Runs::start(worker(queue.clone(), &history, 0.1, 4).retry(retry));
    eventually("all are done", async || history.done() >= 5 * EACH as usize).await;
    runs.stop().await;
    history.check(5, EACH);
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_is_set_and_removed_while_a_worker_runs() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    let begun = Begun::default();
    let runs = Runs::start(begun.worker(queue.clone()));
    db.limit_queue("q", &Limits::none().key_per_second(0.001)).await.expect("limited");
    let limits = db.describe_queue("q").await.expect("described").limits;
    assert_eq!((limits.key_per_second, limits.key_burst), (Some(0.001), Some(1)));
    queue.enqueue_many(&(0..5).map(|place| nth(0, place)).collect::<Vec<_>>()).await.expect("enqueued");
    eventually("the rest has gone back", async || {
        let stats = queue.stats().await.expect("counted");
        begun.count() == 1 && stats.messages == 4 && stats.leased == 0
    })
    .await;
    db.limit_queue("q", &Limits::none()).await.expect("no limit");
    sql.batch_execute("update trunkline.line_q set until = clock_timestamp(); notify \"trunkline.q\"")
        .await
        .expect("time has passed");
    eventually("all are done", async || begun.count() == 5).await;
    runs.stop().await;
}

#[tokio::test]
async fn rate_that_cannot_be_kept_is_refused_with_advice() {
    let Place { db, queue, sql, .. } = place::<i64>(settings()).await;
    db.create_queue("plain", &trunkline::Settings::new("int8")).await.expect("created");
    let told = async |call: &str| {
        let error = sql.batch_execute(&format!("select trunkline.{call}")).await.expect_err(call);
        let error = error.as_db_error().expect("the server's");
        format!("{} ({})", error.message(), error.hint().unwrap_or_default())
    };
    assert!(told("limit_queue('plain', key_per_second => 5)").await.contains("has no keys"));
    for (bad, named) in [
        ("key_per_second => 0", "key_per_second is 0"),
        ("key_per_second => 'infinity'", "key_per_second is Infinity"),
        ("key_burst => 2", "key_burst is 2 without key_per_second"),
        ("key_per_second => 1, key_burst => 0", "key_burst is 0"),
        ("max_leased => 0, per_second => 'nan'", "max_leased is 0, per_second is NaN"),
        ("max_leased => 5, burst => 3", "burst is 3 without per_second"),
    ] {
        let told = told(&format!("limit_queue('q', {bad})")).await;
        assert!(told.contains(&format!("out of bounds: {named} (")), "{bad}: {told}");
    }
    queue.enqueue(nth(0, 0)).await.expect("enqueued");
    db.limit_queue("q", &limits()).await.expect("limited");
    let refused = told("lease_partition('q')").await;
    assert!(refused.contains("a rate limit per key") && refused.contains("Run a worker"), "{refused}");
    db.limit_queue("q", &Limits::none()).await.expect("no limit");
    assert_eq!(sql.query("select id from trunkline.lease_partition('q')", &[]).await.expect("leased").len(), 1);
}
