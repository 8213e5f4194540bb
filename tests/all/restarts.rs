//! Fifty callers use a server that stops repeatedly: no call waits forever, and every answer is
//! true.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};
use trunkline::{Db, Message, Queue, Result, Settings, postgres::Statement};
use trunkline_embedded::{Cluster, Stop};

use crate::fixture::{SOON, eventually};

/// The time limit of a call. It is longer than a call waits for a database that has gone away.
const PATIENCE: Duration = Duration::from_secs(60);

static INSERT: Statement<(i64,), u64> = Statement::new("insert into t values ($1)");

struct Load {
    db: Db,
    queue: Queue<i64>,
    known: Mutex<Known>,
    numbers: AtomicI64,
    done: AtomicUsize,
    ends: AtomicBool,
}

/// The facts that the callers have recorded. Each number is unique within the run.
#[derive(Default)]
struct Known {
    /// Numbers with a confirmed insert.
    inserted: HashSet<i64>,
    /// Numbers with an unknown outcome.
    unknown: HashSet<i64>,
    enqueued: HashSet<i64>,
    received: HashSet<i64>,
    acknowledged: HashSet<i64>,
}

impl Known {
    fn all_received(&self) -> bool {
        self.enqueued.is_subset(&self.received)
    }
}

impl Load {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no panic")
    }

    fn numbers(&self) -> [i64; 3] {
        let first = self.numbers.fetch_add(3, Ordering::Relaxed);
        [first, first + 1, first + 2]
    }

    /// Returns the value, or `None` if the connection was lost. Panics on any other error, and if
    /// the call takes too long.
    async fn told<T>(&self, of: impl Future<Output = Result<T>>) -> Option<T> {
        let outcome = timeout(PATIENCE, of).await.expect("no call waits without an end");
        self.done.fetch_add(usize::from(outcome.is_ok()), Ordering::Relaxed);
        outcome.inspect_err(|error| assert!(error.is_outcome_unknown() || error.is_closed(), "{error:?}")).ok()
    }

    fn note(&self, numbers: &[i64], told: bool) {
        let mut known = self.known();
        let set = if told { &mut known.inserted } else { &mut known.unknown };
        set.extend(numbers);
    }

    async fn insert_one(&self) {
        let [one, ..] = self.numbers();
        let told = self.told(self.db.run(&INSERT, (one,))).await;
        self.note(&[one], told.is_some());
    }

    async fn insert_together(&self) {
        let numbers = self.numbers();
        let told = self.told(self.db.run_many(&INSERT, numbers.map(|n| (n,)))).await;
        self.note(&numbers, told.is_some());
    }

    async fn transact(&self) {
        let numbers = self.numbers();
        let work = async {
            let transaction = self.db.begin().await?;
            for n in numbers {
                transaction.send(&INSERT, (n,)).await?;
            }
            transaction.commit().await
        };
        let told = self.told(work).await;
        self.note(&numbers, told.is_some());
    }

    async fn enqueue(&self) {
        let [one, ..] = self.numbers();
        if self.told(self.queue.enqueue(one)).await.is_some() {
            self.known().enqueued.insert(one);
        }
    }

    /// Leases the next messages, and acknowledges the held leases in the same call.
    async fn exchange(&self, held: &mut Vec<Message<i64>>) {
        let exchanged = self.told(self.queue.ack_and_lease(&*held, 50)).await;
        let mut known = self.known();
        let before = std::mem::take(held);
        let Some((next, lost)) = exchanged else { return };
        let done = before.iter().filter(|message| !lost.contains(&message.id));
        known.acknowledged.extend(done.map(|message| message.payload));
        for message in &next {
            assert!(!known.acknowledged.contains(&message.payload), "acknowledged, and back: {message:?}");
            known.received.insert(message.payload);
        }
        *held = next;
    }

    async fn call(self: Arc<Self>, nr: usize) {
        let mut held = Vec::new();
        while !self.ends.load(Ordering::Relaxed) {
            match nr % 5 {
                0 => self.insert_one().await,
                1 => self.insert_together().await,
                2 => self.transact().await,
                3 => self.enqueue().await,
                _ => self.exchange(&mut held).await,
            }
        }
    }

    async fn settle_accounts(&self) {
        let all = Statement::<(), Vec<(i64, i64)>>::new("select n, count(*) from t group by n");
        let there: HashMap<i64, i64> = self.db.run(&all, ()).await.expect("all works again").into_iter().collect();
        let known = self.known();
        println!("{} told, {} unknown, {} enqueued", known.inserted.len(), known.unknown.len(), known.enqueued.len());
        assert!(there.values().all(|count| *count == 1), "nothing is there twice");
        assert!(known.inserted.iter().all(|n| there.contains_key(n)), "success is no lie");
        assert!(there.keys().all(|n| known.inserted.contains(n) || known.unknown.contains(n)));
        for n in known.unknown.iter().filter(|n| *n % 3 == 0 && known.unknown.contains(&(*n + 2))) {
            assert_eq!(there.contains_key(n), there.contains_key(&(n + 2)), "all of a transaction, or nothing");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_survive_a_server_that_restarts_and_know_what_happened() {
    let started = tokio::task::spawn_blocking(|| Cluster::temporary().setting("fsync", "off").start());
    let cluster = Arc::new(started.await.expect("no panic").expect("a private PostgreSQL starts"));
    let db = Db::connect(&crate::fixture::settled(&cluster.url("postgres"))).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.run(&Statement::<(), ()>::new("create table t (n int8)"), ()).await.expect("created");
    let settings = Settings::new("int8").max_attempts(1000).lease(Duration::from_secs(1));
    db.create_queue("q", &settings).await.expect("created");
    let queue = db.queue("q").await.expect("opened");
    let (known, numbers, done, ends) = Default::default();
    let load = Arc::new(Load { db, queue, known, numbers, done, ends });
    let mut callers = JoinSet::new();
    for nr in 0..50 {
        callers.spawn(load.clone().call(nr));
    }
    let goes_on = async |more: usize| {
        let until = load.done.load(Ordering::Relaxed) + more;
        eventually("the load goes on", || async { load.done.load(Ordering::Relaxed) >= until }).await;
    };
    for stop in [Stop::Immediate, Stop::Fast, Stop::Fast, Stop::Immediate] {
        goes_on(500).await;
        let cluster = cluster.clone();
        let restarted = tokio::task::spawn_blocking(move || cluster.restart(stop)).await;
        restarted.expect("no panic").expect("restarted");
    }
    goes_on(500).await;
    load.ends.store(true, Ordering::Relaxed);
    while let Some(ended) = timeout(PATIENCE, callers.join_next()).await.expect("no call waits without an end") {
        ended.expect("no panic");
    }
    load.settle_accounts().await;
    // Checks that every enqueued message is either in the queue or was received.
    let mut held = Vec::new();
    let rest = async {
        while !load.known().all_received() {
            load.exchange(&mut held).await;
        }
    };
    timeout(SOON, rest).await.expect("what was enqueued arrives");
}
