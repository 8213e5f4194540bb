//! One of three servers becomes unavailable and returns. Every answer stays true, and the other two
//! servers continue in the meantime.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use tokio::{task::JoinSet, time::timeout};
use trunkline::{Db, Dequeue, Failure, Message, Wait, Worker, shards};
use trunkline_embedded::{Cluster, DelayProxy, Hold, Stop};

use super::{counts, numbers, shard};
use crate::fixture::{SOON, cluster, eventually, grows_to, settled, through, within};

/// The private servers of the test.
pub(super) struct Servers(Vec<Arc<Cluster>>);

impl Servers {
    pub async fn start(count: usize) -> Self {
        let start = || Cluster::temporary().setting("fsync", "off").start().expect("a private PostgreSQL starts");
        let starting = (0..count).map(|_| tokio::task::spawn_blocking(start));
        let servers = Self(try_join_all(starting).await.expect("no panic").into_iter().map(Arc::new).collect());
        for url in servers.urls() {
            let db = Db::connect(&url).await.expect("connected");
            db.migrate().await.expect("migrated");
            let settings = numbers().lease(Duration::from_secs(2)).max_attempts(1000);
            db.create_queue("q", &settings).await.expect("created");
        }
        servers
    }

    pub fn urls(&self) -> Vec<String> {
        self.0.iter().map(|server| settled(&server.url("postgres"))).collect()
    }

    pub async fn with(&self, at: usize, act: impl FnOnce(&Cluster) -> trunkline_embedded::Result<()> + Send + 'static) {
        let server = self.0[at].clone();
        tokio::task::spawn_blocking(move || act(&server)).await.expect("no panic").expect("done");
    }

    pub async fn id(&self, at: usize) -> shards::Id {
        let alone = shards::Set::connect([&self.urls()[at]]).await.expect("connected");
        alone.list()[0].id.expect("reached")
    }
}

/// The outcomes that the callers received.
#[derive(Default)]
struct Told {
    /// Confirmed enqueues.
    enqueued: HashSet<i64>,
    /// Enqueues with an unknown outcome.
    unknown: HashSet<i64>,
    received: HashSet<i64>,
    /// Confirmed acknowledgements. Their messages must not be delivered again.
    acknowledged: HashSet<i64>,
    /// Payloads that the worker handled, perhaps more than once.
    handled: HashSet<i64>,
    slowest: Duration,
}

const PRODUCERS: usize = 20;

struct Load {
    queue: shards::Queue<i64>,
    told: Mutex<Told>,
    number: AtomicI64,
    /// The number of calls that each producer has finished.
    enqueues: [AtomicUsize; PRODUCERS],
    ends: AtomicBool,
}

impl Load {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("no panic")
    }

    async fn produce(self: Arc<Self>, nr: usize, spread: shards::Routing) {
        let queue = self.queue.routing(spread);
        while !self.ends.load(Ordering::Relaxed) {
            let n = self.number.fetch_add(1, Ordering::Relaxed);
            let began = Instant::now();
            let outcome = timeout(SOON * 2, queue.enqueue(n)).await.expect("no call waits for a dead server");
            let mut told = self.told();
            told.slowest = told.slowest.max(began.elapsed());
            match outcome {
                Ok(_) => drop(told.enqueued.insert(n)),
                // Accepts an unknown outcome: while two servers are running, a call can fail only
                // if its enqueue was in flight when its server stopped.
                Err(error) if error.is_outcome_unknown() => drop(told.unknown.insert(n)),
                Err(error) => panic!("{error:?}"),
            }
            drop(told);
            self.enqueues[nr].fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn consume(self: Arc<Self>, wait: Wait) {
        let mut consumer = self.queue.consumer(wait);
        while !self.ends.load(Ordering::Relaxed) {
            let messages = consumer
                .lease(Dequeue::up_to(20).within(Duration::from_millis(100)))
                .await
                .expect("the others are there");
            {
                let mut told = self.told();
                for message in &messages {
                    assert!(!told.acknowledged.contains(&message.payload), "acknowledged, and back: {message:?}");
                    told.received.insert(message.payload);
                }
            }
            // Makes one call per shard, so that an error affects only that shard.
            for part in messages.chunk_by(|one, other| one.shard == other.shard) {
                let acked = timeout(SOON * 3, self.queue.ack(part)).await.expect("no call waits without an end");
                let lost: HashSet<i64> = match &acked {
                    Ok(()) => HashSet::new(),
                    Err(error) if error.is_lease_lost() => error.shards()[0].1.lost_ids().iter().copied().collect(),
                    Err(error) if error.is_outcome_unknown() || error.is_closed() => continue,
                    Err(error) => panic!("{error:?}"),
                };
                let done =
                    part.iter().filter(|message| !lost.contains(&message.of.id)).map(|message| message.of.payload);
                self.told().acknowledged.extend(done);
            }
        }
    }

    /// Enqueues `count` messages at once, distributed in turn over all shards regardless of their
    /// load. With a hash, all of these numbers could go to the same shard.
    async fn probe(&self, count: i64) -> BTreeMap<shards::Id, usize> {
        let first = self.number.fetch_add(count, Ordering::Relaxed);
        let queue = self.queue.routing(shards::Routing::RoundRobin);
        let ids = try_join_all((first..first + count).map(|n| queue.enqueue(n))).await.expect("no error");
        self.told().enqueued.extend(first..first + count);
        counts(ids)
    }

    /// Waits for `count` more calls, and for a complete call of each producer.
    async fn more(&self, count: usize) {
        let now = || self.enqueues.each_ref().map(|enqueues| enqueues.load(Ordering::Relaxed));
        let before = now();
        grows_to("the load goes on", before.iter().sum::<usize>() + count, || now().iter().sum()).await;
        // Waits for two calls of each producer, because the first may have begun before.
        let all = || async { before.iter().zip(now()).all(|(before, now)| now >= before + 2) };
        eventually("no producer waits for a dead server", all).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_servers_dies_and_comes_back() {
    use shards::Routing::{Hash, LeastLoaded, RoundRobin};
    let servers = Servers::start(3).await;
    let shards = shards::Set::connect(servers.urls()).await.expect("connected");
    let queue = shards.queue::<i64>("q").await.expect("opened");
    let dead = servers.id(1).await;
    let (told, number, enqueues, ends) = Default::default();
    let load = Arc::new(Load { queue: queue.clone(), told, number, enqueues, ends });
    let mut tasks = JoinSet::new();
    let spreads = [RoundRobin, LeastLoaded, Hash(1), Hash(2), Hash(3)];
    for (nr, spread) in spreads.into_iter().cycle().take(PRODUCERS).enumerate() {
        tasks.spawn(load.clone().produce(nr, spread));
    }
    for wait in [Wait::Adaptive, Wait::Notify] {
        tasks.spawn(load.clone().consume(wait));
    }
    let handled = load.clone();
    let worker = shards::Worker::new(queue.clone(), move |_, queue| {
        let handled = handled.clone();
        Worker::new(queue, move |message: Message<i64>| {
            handled.told().handled.insert(message.payload);
            async { Ok::<(), Failure>(()) }
        })
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let working = tokio::spawn(worker.run(async { stopped.await.unwrap_or(()) }));

    load.more(1000).await;
    for how in [Stop::Immediate, Stop::Fast] {
        servers.with(1, move |server| server.stop(how)).await;
        load.more(2000).await; // on the two servers that are left
        assert!(!load.probe(20).await.contains_key(&dead));
        assert!(shards.list().iter().any(|state| state.id == Some(dead) && state.down.is_some()));
        servers.with(1, Cluster::start_again).await;
        eventually("it is used again, by itself", || async { load.probe(6).await.contains_key(&dead) }).await;
        load.more(1000).await;
    }
    load.ends.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no panic");
    }
    within(SOON * 8, "everything is consumed", || async { queue.stats().await.sum.messages == 0 }).await;
    stop.send(()).expect("it runs");
    working.await.expect("no panic").expect("no error");

    let told = load.told();
    println!("{} enqueued, {} unknown, slowest {:?}", told.enqueued.len(), told.unknown.len(), told.slowest);
    let missing: Vec<&i64> =
        told.enqueued.iter().filter(|n| !told.received.contains(n) && !told.handled.contains(n)).collect();
    assert!(missing.is_empty(), "enqueued, and never received: {missing:?}");
    let from_nowhere = |n: &&i64| !told.enqueued.contains(n) && !told.unknown.contains(n);
    assert_eq!(told.received.iter().chain(&told.handled).find(from_nowhere), None);
    assert!(told.unknown.len() <= 40, "at most one for each caller and death: {}", told.unknown.len());
    assert!(told.slowest < Duration::from_secs(20), "no call waited for the dead: {:?}", told.slowest);
}

/// Opens a queue on two databases, one of which is behind a proxy.
async fn behind(proxy: &DelayProxy, url: &str) -> (shards::Set, shards::Queue<i64>) {
    let near = shard().await;
    for url in [&near, &url.to_owned()] {
        Db::connect(url).await.expect("connected").create_queue("q", &numbers()).await.expect("created");
    }
    let way = format!("host=127.0.0.1 port={} sslmode=disable", proxy.addr().port());
    let far = settled(&through(url, &way));
    let shards = shards::Set::connect([near, far]).await.expect("connected");
    let queue = shards.queue("q").await.expect("opened");
    (shards, queue)
}

fn proxy() -> DelayProxy {
    DelayProxy::start("127.0.0.1:0", cluster(), Duration::ZERO).expect("a proxy starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn unresponsive_shard_holds_up_only_calls_already_waiting() {
    let (proxy, url) = (proxy(), shard().await);
    let (_shards, queue) = behind(&proxy, &url).await;
    try_join_all((0..20).map(|n| queue.enqueue(n))).await.expect("enqueued");
    proxy.hold(Hold::Both);
    let call = |n| {
        let queue = queue.routing(shards::Routing::RoundRobin);
        tokio::spawn(async move { queue.enqueue(n).await })
    };
    let stuck: Vec<_> = (0..20).map(call).collect();
    let waiting = || stuck.iter().filter(|call| !call.is_finished()).count();
    eventually("half of them are answered", || async { waiting() == 10 }).await;
    // Once the stuck server has not answered for a second, new calls use the other server.
    let begun = Instant::now();
    eventually("it is passed over", || async {
        timeout(Duration::from_millis(500), try_join_all((0..10).map(|n| queue.enqueue(n)))).await.is_ok()
    })
    .await;
    println!("passed over after {:?}", begun.elapsed());
    let mut consumer = queue.consumer(Wait::Adaptive);
    let got = timeout(SOON, consumer.lease(100)).await.expect("in time").expect("leased");
    assert_eq!(counts(got).len(), 1);
    proxy.hold(Hold::Nothing);
    for call in stuck {
        call.await.expect("no panic").expect("what waited is answered");
    }
    eventually("it is used again", || async {
        counts(try_join_all((0..6).map(|n| queue.enqueue(n))).await.expect("enqueued")).len() == 2
    })
    .await;
    let begun = Instant::now();
    while queue.stats().await.sum.due > 0 {
        assert!(begun.elapsed() < SOON, "its messages are consumed, too");
        consumer.lease(Dequeue::up_to(100).within(Duration::from_millis(50))).await.expect("leased");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_host_delays_only_the_call_that_discovers_it() {
    let (proxy, url) = (proxy(), shard().await);
    let (shards, queue) = behind(&proxy, &url).await;
    try_join_all((0..20).map(|n| queue.enqueue(n))).await.expect("enqueued");
    // Breaks all connections, and lets new connections wait without an answer. A login then fails
    // after two seconds.
    proxy.hold(Hold::Both);
    proxy.cut_all();
    proxy.hold(Hold::Both);
    let near = queue.on(shards.list()[0].id.expect("reached")).expect("open");
    let mut slow = 0;
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(12) {
        let calls = (0..10).map(|n| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let began = Instant::now();
                let outcome = queue.enqueue(n).await;
                assert!(outcome.as_ref().err().is_none_or(trunkline::Error::is_outcome_unknown), "{outcome:?}");
                began.elapsed()
            })
        });
        // Measures the speed of this machine by a call to the other server.
        let control = tokio::spawn({
            let near = near.clone();
            async move {
                let began = Instant::now();
                near.enqueue(0).await.map(|_| began.elapsed())
            }
        });
        let took = try_join_all(calls).await.expect("no panic");
        let control = control.await.expect("no panic").expect("it is there");
        slow += u32::from(took.iter().any(|took| *took > Duration::from_millis(1500) + 2 * control));
    }
    // Accepts three slow rounds, because the machine may be busy. If calls of each round waited for
    // a login, five or six rounds would be slow.
    assert!(slow <= 3, "calls waited in {slow} rounds");
    assert!(shards.list().iter().any(|state| state.down.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn shard_down_at_the_start_joins_when_it_is_up() {
    let servers = Servers::start(2).await;
    let late = servers.id(1).await;
    servers.with(1, |server| server.stop(Stop::Fast)).await;
    let shards = shards::Set::connect(servers.urls()).await.expect("one is there");
    let queue = shards.queue::<i64>("q").await.expect("opened");
    let state = shards.list().swap_remove(1);
    assert!(state.id.is_none() && state.down.is_some(), "{state:?}");
    assert_eq!(counts(try_join_all((0..9).map(|n| queue.enqueue(n))).await.expect("enqueued")).len(), 1);
    let mut consumer = queue.consumer(Wait::Adaptive);
    assert_eq!(consumer.lease(9).await.expect("leased").len(), 9);
    let error = queue.on(late).expect_err("not reached");
    assert!(error.to_string().contains("not one of the reached shards"), "{error}");
    servers.with(1, Cluster::start_again).await;
    eventually("it takes part", || async { queue.queues().len() == 2 }).await;
    assert_eq!(counts(try_join_all((0..10).map(|n| queue.enqueue(n))).await.expect("enqueued")).len(), 2);
    // Checks that a shard is left out of a call if it is silent for a second.
    let mut seen = BTreeSet::new();
    while seen.len() < 2 {
        seen.extend(counts(timeout(SOON, consumer.lease(10)).await.expect("in time").expect("leased")).into_keys());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_waits_for_the_first_shard_when_all_are_down() {
    let servers = Servers::start(2).await;
    let shards = shards::Set::connect(servers.urls()).await.expect("connected");
    let queue = shards.queue::<i64>("q").await.expect("opened");
    for at in 0..2 {
        servers.with(at, |server| server.stop(Stop::Fast)).await;
    }
    let waiter = tokio::spawn({
        let queue = queue.clone();
        async move {
            loop {
                match queue.enqueue(1).await {
                    Err(error) if error.is_outcome_unknown() => {} // this call may be the one that detects the outage
                    outcome => return outcome,
                }
            }
        }
    });
    eventually("both are known to be away", || async { shards.list().iter().all(|state| state.down.is_some()) }).await;
    assert!(!waiter.is_finished());
    // A call that does not wait must return the reason, and not an empty list.
    for wait in [Duration::ZERO, Duration::from_millis(20)] {
        let error =
            queue.consumer(Wait::Adaptive).take(Dequeue::up_to(1).within(wait)).await.expect_err("all are down");
        assert!(error.is_closed() && !error.is_outcome_unknown(), "{error}");
    }
    let mut consumer = queue.consumer(Wait::Adaptive);
    let consuming = tokio::spawn(async move { consumer.take(1).await });
    servers.with(0, Cluster::start_again).await;
    let id = timeout(SOON, waiter).await.expect("in time").expect("no panic").expect("enqueued");
    assert_eq!(id.shard, servers.id(0).await);
    assert_eq!(timeout(SOON, consuming).await.expect("in time").expect("no panic").expect("taken").len(), 1);
}
