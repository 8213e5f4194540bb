//! Everything breaks repeatedly under load. Every promise is kept, and every report is true.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tokio::task::{AbortHandle, JoinSet};
use tokio_postgres::Client;
use trunkline::{Consumer, Db, Error, Message, Queue, Result, Settings, Wait, postgres::Statement};
use trunkline_embedded::{Cluster, Stop};

use crate::fixture::{Ids, connect, database, grows_to, run_out};

/// The facts that all tasks share. Each payload is unique within the run.
#[derive(Default)]
struct Known {
    tried: BTreeSet<i64>,
    /// The ids of confirmed enqueues by payload, for each of the two queues.
    stored: [BTreeMap<i64, i64>; 2],
    /// Messages passed to `ack`.
    acking: BTreeSet<i64>,
    /// Messages whose `ack` returned success.
    acked: BTreeSet<i64>,
    /// The payloads of all messages that a worker received, by id.
    received: BTreeMap<i64, i64>,
}

struct Load {
    leased: Queue<i64>,
    once: Queue<i64>,
    known: Mutex<Known>,
    payloads: AtomicI64,
    done: AtomicUsize,
    ends: AtomicBool,
}

/// Returns the value, or `None` after a lost connection. Any other error fails the test.
fn fell<T>(outcome: Result<T>) -> Option<T> {
    outcome.inspect_err(|error: &Error| assert!(error.is_outcome_unknown() || error.is_closed(), "{error:?}")).ok()
}

impl Load {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().expect("no panic")
    }

    async fn produce(self: Arc<Self>) {
        while !self.ends.load(Ordering::Relaxed) {
            let first = self.payloads.fetch_add(5, Ordering::Relaxed);
            let which = usize::try_from(first / 5 % 2).expect("0 or 1");
            let queue = [&self.leased, &self.once][which];
            self.known().tried.extend(first..first + 5);
            if first % 3 == 0 {
                let ids = fell(queue.enqueue_many(&(first..first + 5).collect::<Vec<_>>()).await);
                self.known().stored[which].extend((first..).zip(ids.unwrap_or_default().ids()));
            } else {
                let calls = (first..first + 5).map(|payload| queue.enqueue(payload));
                let ids = futures_util::future::join_all(calls).await.into_iter().map(fell);
                self.known().stored[which]
                    .extend((first..).zip(ids).filter_map(|(payload, id)| id.map(|enqueued| (payload, enqueued.id()))));
            }
        }
    }

    async fn lease(self: Arc<Self>, n: usize, wait: Wait) {
        let mut consumer = self.leased.consumer(wait);
        loop {
            let Some(messages) = fell(consumer.lease(n).await) else { continue };
            self.receive(&messages);
            self.known().acking.extend(messages.iter().map(|message| message.id));
            if fell(self.leased.ack(&messages).await).is_some() {
                self.known().acked.extend(messages.iter().map(|message| message.id));
                self.done.fetch_add(messages.len(), Ordering::Relaxed);
            }
        }
    }

    fn receive(&self, messages: &[Message<i64>]) {
        let mut known = self.known();
        for message in messages {
            assert!(!known.acked.contains(&message.id), "acknowledged and back: {message:?}");
            assert!(*known.received.entry(message.id).or_insert(message.payload) == message.payload, "{message:?}");
        }
    }

    async fn work(self: Arc<Self>, n: usize, wait: Wait) {
        let mut consumer = self.once.consumer(wait);
        loop {
            let count = fell(work_once(&mut consumer, n).await).unwrap_or(0);
            self.done.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn start(self: &Arc<Self>, tasks: &mut JoinSet<()>, nr: usize) -> AbortHandle {
        let (load, n, wait) = (self.clone(), [1, 9, 50][nr % 3], crate::contract::WAITS[nr % 3]);
        match nr % 4 {
            0 | 1 => tasks.spawn(load.produce()),
            2 => tasks.spawn(load.lease(n, wait)),
            _ => tasks.spawn(load.work(n, wait)),
        }
    }
}

async fn work_once(consumer: &mut Consumer<i64>, n: usize) -> Result<usize> {
    let work = consumer.take_with(n, |transaction, messages| {
        async move {
            let (ids, payloads): (Vec<i64>, Vec<i64>) =
                messages.iter().map(|message| (message.id, message.payload)).unzip();
            let insert =
                Statement::<_, u64>::new("insert into public.effects select * from unnest($1::int8[], $2::int8[])");
            transaction.run(&insert, (ids, payloads)).await?;
            Ok::<_, trunkline::Error>(messages.len())
        }
        .boxed()
    });
    work.await
}

/// A seeded random generator, so that a run can be repeated as far as the scheduler allows.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }
}

enum Chaos<'a> {
    Backends,
    Tasks,
    Server(&'a Arc<Cluster>),
}

async fn survive(url: &str, rounds: usize, seed: u64, chaos: Chaos<'_>) {
    let db = Db::connect(url).await.expect("connected");
    let mut queues = Vec::new();
    for name in ["q", "once"] {
        db.create_queue(name, &Settings::new("int8").max_attempts(1000)).await.expect("created");
        queues.push(db.queue(name).await.expect("opened"));
    }
    connect(url).await.batch_execute("create table public.effects (id int8, payload int8)").await.expect("created");
    let (once, leased) = (queues.remove(1), queues.remove(0));
    let (known, payloads, done, ends) = Default::default();
    let load = Arc::new(Load { leased, once, known, payloads, done, ends });
    let (mut tasks, mut dice) = (JoinSet::new(), Dice(seed));
    let mut handles: Vec<AbortHandle> = (0..12).map(|nr| load.start(&mut tasks, nr)).collect();
    for _ in 0..rounds {
        let until = load.done.load(Ordering::Relaxed) + 1 + dice.below(600);
        grows_to("the load goes on", until, || load.done.load(Ordering::Relaxed)).await;
        match chaos {
            Chaos::Backends => terminate(&connect(url).await).await,
            Chaos::Tasks => {
                for _ in 0..4 {
                    let nr = dice.below(handles.len());
                    handles[nr].abort();
                    handles[nr] = load.start(&mut tasks, nr);
                }
            }
            Chaos::Server(cluster) => {
                let cluster = cluster.clone();
                tokio::task::spawn_blocking(move || cluster.restart(Stop::Immediate))
                    .await
                    .expect("no panic")
                    .expect("restarted");
            }
        }
    }
    let until = load.done.load(Ordering::Relaxed) + 200;
    grows_to("the load goes on", until, || load.done.load(Ordering::Relaxed)).await;
    load.ends.store(true, Ordering::Relaxed);
    handles.iter().for_each(AbortHandle::abort);
    while let Some(ended) = tasks.join_next().await {
        assert!(ended.as_ref().is_ok() || ended.as_ref().is_err_and(tokio::task::JoinError::is_cancelled), "{ended:?}");
    }
    settle_accounts(url, &load).await;
}

async fn terminate(sql: &Client) {
    let all = "select pg_terminate_backend(pid) from pg_stat_activity
               where application_name = 'trunkline' and datname = current_database()";
    sql.query(all, &[]).await.expect("terminated");
}

/// Consumes the remaining messages, and compares them with the recorded facts.
async fn settle_accounts(url: &str, load: &Arc<Load>) {
    let sql = connect(url).await;
    let mut rest = BTreeSet::new();
    let mut once = load.once.consumer(Wait::poll());
    while load.leased.stats().await.expect("counted").messages > 0 {
        run_out(&sql).await;
        let messages = load.leased.lease(1000).await.expect("leased");
        load.receive(&messages);
        rest.extend(messages.iter().map(|message| message.id));
        load.leased.ack(&messages).await.expect("held");
    }
    let began = Instant::now();
    while load.once.stats().await.expect("counted").messages > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "in vain: nothing is left");
        // Ignores the result, because the commit of a dropped caller may still be in progress, and
        // then there is nothing to take.
        let _ = tokio::time::timeout(Duration::from_secs(5), work_once(&mut once, 1000)).await;
    }
    let rows = sql.query("select payload, id from public.effects", &[]).await.expect("read");
    let effects: BTreeMap<i64, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(effects.len(), rows.len(), "exactly once: no effect twice");

    let known = load.known();
    println!(
        "{} tried, {:?} stored, {} acknowledged",
        known.tried.len(),
        known.stored.each_ref().map(BTreeMap::len),
        known.acked.len()
    );
    for (payload, id) in &known.stored[1] {
        assert_eq!(effects.get(payload), Some(id), "exactly once: an enqueue that answered Ok has its effect");
    }
    for (payload, id) in &known.stored[0] {
        assert_eq!(known.received.get(id), Some(payload), "at least once: an enqueue that answered Ok arrives");
        assert!(known.acking.contains(id) || rest.contains(id), "{id} is gone, and no caller acknowledged it");
    }
    let arrived: Vec<i64> = known.received.values().chain(effects.keys()).copied().collect();
    let distinct: BTreeSet<i64> = arrived.iter().copied().collect();
    assert_eq!(distinct.len(), arrived.len(), "no enqueue is there twice");
    assert!(distinct.is_subset(&known.tried), "nothing came from nowhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_backends_lose_and_double_nothing() {
    survive(&database().await, 12, 1, Chaos::Backends).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_tasks_lose_and_double_nothing() {
    survive(&database().await, 40, 2, Chaos::Tasks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_stops_dead_repeatedly_loses_and_doubles_nothing() {
    let started = tokio::task::spawn_blocking(|| {
        Cluster::temporary().setting("fsync", "off").start().expect("a private PostgreSQL starts")
    });
    let cluster = Arc::new(started.await.expect("no panic"));
    let url = crate::fixture::settled(&cluster.url("postgres"));
    Db::connect(&url).await.expect("connected").migrate().await.expect("migrated");
    survive(&url, 5, 3, Chaos::Server(&cluster)).await;
}
