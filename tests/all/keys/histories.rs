//! Random histories of keys. Handlers fail. Workers start, stop, vanish, lose their connections, or
//! are so late that other workers take over their partitions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use proptest::{
    prelude::*,
    test_runner::{TestCaseError, TestRunner},
};
use tokio::{sync::oneshot, task::JoinHandle};
use trunkline::{Db, Draft, Failure, Message, Queue, RetryPolicy, Settings, Worker, testing};
use trunkline_embedded::DelayProxy;

use super::chance;
use crate::fixture::{cluster, database, through};

const LEASE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
struct Plan {
    lanes: u32,
    per_key: u32,
    /// The number of failures per hundred handlers.
    failures: u64,
    seed: u64,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    /// Enqueues one message for each of these keys, in one call.
    Enqueue(Vec<u8>),
    /// Starts a worker with this maximum of concurrent handlers.
    Start(usize),
    /// Stops a running worker gracefully. `Vanish` drops a worker with everything that it holds.
    Stop(u8),
    Vanish(u8),
    /// Cuts a worker's connection after this many more bytes from the server.
    Cut(usize),
    /// Lets enough time pass for every lease to expire, so that all workers with leases are late.
    Pass,
    /// Waits until this many more handlers have ended.
    Work(usize),
}

fn plans() -> impl Strategy<Value = Plan> {
    let step = prop_oneof![
        4 => proptest::collection::vec(0..6_u8, 1..40).prop_map(Step::Enqueue),
        2 => (1..6_usize).prop_map(Step::Start),
        1 => any::<u8>().prop_map(Step::Stop),
        1 => any::<u8>().prop_map(Step::Vanish),
        2 => (0..6000_usize).prop_map(Step::Cut),
        1 => Just(Step::Pass),
        4 => (1..30_usize).prop_map(Step::Work),
    ];
    let steps = proptest::collection::vec(step, 4..24);
    let per_key = prop_oneof![3 => Just(1_u32), 1 => 2..4_u32];
    (1..4_u32, per_key, 0..30_u64, any::<u64>(), steps).prop_map(|(lanes, per_key, failures, seed, steps)| Plan {
        lanes,
        per_key,
        failures,
        seed,
        steps,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Began,
    /// The message was acknowledged, or became a dead letter.
    Ended,
    Failed,
    /// The worker was dropped while the handler was running.
    Dropped,
}

/// A worker, a key, a position in the key's order, and an event.
type Happened = (usize, u8, i64, Event);

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Happened>>>);

impl Log {
    fn say(&self, happened: Happened) {
        self.0.lock().expect("no panic").push(happened);
    }

    fn ended(&self) -> usize {
        self.0.lock().expect("no panic").iter().filter(|(.., event)| *event == Event::Ended).count()
    }

    /// Checks each key: no message started before the messages ahead of it were handled. No worker
    /// ran more messages at once than allowed, and all messages are handled.
    fn check(&self, per_key: usize, enqueued: &BTreeMap<u8, i64>) {
        let all = self.0.lock().expect("no panic");
        let mut running: BTreeMap<(usize, u8), usize> = BTreeMap::new();
        let mut done: BTreeMap<u8, BTreeSet<i64>> = BTreeMap::new();
        for (at, (worker, key, place, event)) in all.iter().enumerate() {
            let (runs, done) = (running.entry((*worker, *key)).or_default(), done.entry(*key).or_default());
            match event {
                Event::Began => {
                    *runs += 1;
                    assert!(*runs <= per_key, "worker {worker} runs {runs} of key {key}: {:?}", &all[..=at]);
                    let open = (0..*place).find(|before| per_key == 1 && !done.contains(before));
                    assert_eq!(open, None, "key {key}: {place} began before: {:?}", of(&all[..=at], *key));
                    continue;
                }
                Event::Ended => drop(done.insert(*place)),
                Event::Failed | Event::Dropped => {}
            }
            *runs -= 1;
        }
        for (key, count) in enqueued {
            let missing = (0..*count).find(|place| !done.get(key).is_some_and(|done| done.contains(place)));
            assert_eq!(missing, None, "key {key} lost a message: {:?}", of(&all, *key));
        }
    }
}

fn of(all: &[Happened], key: u8) -> Vec<(usize, i64, Event)> {
    all.iter()
        .filter(|(_, other, ..)| *other == key)
        .map(|(worker, _, place, event)| (*worker, *place, *event))
        .collect()
}

/// A running handler. If it is dropped before its end, it logs `Dropped`.
struct Running(Log, Happened);

impl Running {
    fn begin(log: &Log, (worker, key, place): (usize, u8, i64)) -> Self {
        log.say((worker, key, place, Event::Began));
        Self(log.clone(), (worker, key, place, Event::Dropped))
    }

    fn end(mut self, event: Event) {
        self.1.3 = event;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.say(self.1);
    }
}

struct Working {
    stop: oneshot::Sender<()>,
    task: JoinHandle<trunkline::Result<trunkline::Summary>>,
    _db: Db,
}

/// The environment of a case: a database, a connection to it that can be cut, and a connection that
/// cannot.
struct Place {
    db: Db,
    proxy: DelayProxy,
    address: String,
}

struct Case {
    queue: Queue<i64>,
    plan: Plan,
    log: Log,
    working: Vec<Working>,
    enqueued: BTreeMap<u8, i64>,
    workers: usize,
}

impl Case {
    async fn start(&mut self, address: &str, hands: usize) {
        let db = Db::connect(address).await;
        let Ok(db) = db else { return }; // the connection was cut
        let Ok(queue) = db.queue::<i64>("q").await else { return };
        self.workers += 1;
        let (worker, log, seed, failures) = (self.workers, self.log.clone(), self.plan.seed, self.plan.failures);
        let nr = Arc::new(AtomicUsize::new(0));
        let handler = move |message: Message<i64>| {
            let (log, nr) = (log.clone(), nr.fetch_add(1, Ordering::Relaxed) as u64);
            async move {
                let key = message.key.as_deref().and_then(|key| key.parse().ok()).expect("a key");
                let running = Running::begin(&log, (worker, key, message.payload));
                let by_chance = (chance(seed ^ ((worker as u64) << 40) ^ nr) * 100.0) as u64;
                // Simulates work.
                tokio::time::sleep(Duration::from_micros(by_chance * 20)).await;
                if by_chance < failures {
                    running.end(Event::Failed);
                    return Err(Failure::retry("by chance"));
                }
                running.end(Event::Ended);
                if by_chance == 99 { Err(Failure::dead("no use")) } else { Ok(()) }
            }
        };
        let worker = Worker::new(queue, handler)
            .concurrency(hands)
            .retry(RetryPolicy::exponential(Duration::from_millis(1), Duration::from_millis(10)))
            .shutdown_after(Duration::from_secs(1));
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(worker.run(async { stopped.await.unwrap_or(()) }));
        self.working.push(Working { stop, task, _db: db });
    }

    async fn pass(&self) {
        testing::shift(&self.queue, LEASE * 2).await.expect("time passes");
    }

    async fn step(&mut self, place: &Place, step: &Step) {
        match step {
            Step::Enqueue(keys) => {
                let drafts: Vec<Draft<i64>> = keys
                    .iter()
                    .map(|key| {
                        let next = self.enqueued.entry(*key).or_default();
                        *next += 1;
                        Draft::new(*next - 1).key(key.to_string())
                    })
                    .collect();
                self.queue.enqueue_many(&drafts).await.expect("enqueued");
            }
            Step::Start(hands) => self.start(&place.address, *hands).await,
            Step::Stop(which) if !self.working.is_empty() => {
                let one = self.working.remove(usize::from(*which) % self.working.len());
                let _ = one.stop.send(()); // the worker may have ended by itself
                let _ = one.task.await.expect("no panic");
            }
            Step::Vanish(which) if !self.working.is_empty() => {
                let one = self.working.remove(usize::from(*which) % self.working.len());
                one.task.abort();
                let _ = one.task.await; // returns the error of an aborted task
            }
            Step::Cut(bytes) => place.proxy.cut_answers_after(Some(*bytes)),
            Step::Pass => self.pass().await,
            Step::Work(more) if !self.working.is_empty() => self.until(*more).await,
            Step::Stop(_) | Step::Vanish(_) | Step::Work(_) => {}
        }
    }

    async fn left(&self) -> u64 {
        self.queue.stats().await.expect("counted").messages
    }

    /// Returns true if another handler ends soon, or if no message is left. The time limit is long
    /// enough for a busy machine.
    async fn goes_on(&self) -> bool {
        let (before, began) = (self.log.ended(), Instant::now());
        while began.elapsed() < Duration::from_millis(500) {
            if self.log.ended() > before || self.left().await == 0 {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(2)).await; // the loop ends at the deadline
        }
        false
    }

    /// Waits until `more` handlers have ended, or no handler makes progress.
    async fn until(&self, more: usize) {
        let goal = self.log.ended() + more;
        for _ in 0..40 {
            if self.log.ended() >= goal {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await; // the loop ends at the deadline
        }
    }

    async fn finish(&mut self, place: &Place) {
        place.proxy.cut_answers_after(None);
        self.start(&place.address, 4).await;
        let mut passed = 0;
        while self.left().await > 0 {
            if self.goes_on().await {
                passed = 0;
                continue;
            }
            passed += 1;
            assert!(passed < 40, "in vain: all are done");
            self.pass().await; // lets the leases of vanished workers expire
        }
        for Working { stop, task, .. } in self.working.drain(..) {
            let _ = stop.send(());
            let _ = task.await.expect("no panic");
        }
        self.log.check(self.plan.per_key as usize, &self.enqueued);
    }
}

async fn play(place: &Place, plan: Plan) {
    let settings = Settings::new("int8").partitions(plan.lanes).per_key(plan.per_key).lease(LEASE).max_attempts(1000);
    place.db.create_queue("q", &settings).await.expect("created");
    let queue = place.db.queue::<i64>("q").await.expect("opened");
    let (log, enqueued) = (Log::default(), BTreeMap::new());
    let steps = plan.steps.clone();
    let mut case = Case { queue, plan, log, working: Vec::new(), enqueued, workers: 0 };
    for step in &steps {
        case.step(place, step).await;
    }
    case.finish(place).await;
}

#[test]
fn key_is_handled_in_order_and_whole_despite_worker_failures() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let place = runtime.block_on(async {
        let (url, proxy) = (database().await, DelayProxy::start("127.0.0.1:0", cluster(), Duration::ZERO));
        let proxy = proxy.expect("started");
        let address = through(&url, &format!("host=127.0.0.1 port={} sslmode=disable", proxy.addr().port()));
        Place { db: Db::connect(&url).await.expect("connected"), proxy, address }
    });
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(16);
    let config = ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 60, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&plans(), |plan| {
        // Catches panics, so that a failed assertion counts as a failed case and the queue is
        // always dropped.
        let played = std::panic::AssertUnwindSafe(|| runtime.block_on(play(&place, plan)));
        let played = std::panic::catch_unwind(played);
        place.proxy.cut_answers_after(None);
        runtime.block_on(place.db.drop_queue("q")).expect("dropped");
        played.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            TestCaseError::fail(text.unwrap_or_else(|| "a panic".to_owned()))
        })
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
