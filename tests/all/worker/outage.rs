//! The database becomes unavailable while a worker is running: no message is lost, and no loop
//! spins.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::sync::Semaphore;
use trunkline::{Db, Message, RetryPolicy, Settings, Worker};
use trunkline_embedded::{Cluster, Stop};

use crate::fixture::{Runs, Seen, drained, enqueued, eventually};

pub async fn cluster() -> (Arc<Cluster>, Db) {
    let started = tokio::task::spawn_blocking(|| {
        Cluster::temporary().setting("fsync", "off").start().expect("a private PostgreSQL starts")
    });
    let cluster = Arc::new(started.await.expect("no panic"));
    let db = Db::connect(&crate::fixture::settled(&cluster.url("postgres"))).await.expect("connected");
    db.migrate().await.expect("migrated");
    (cluster, db)
}

pub async fn stop(cluster: &Arc<Cluster>, how: Stop) {
    let cluster = cluster.clone();
    tokio::task::spawn_blocking(move || cluster.stop(how)).await.expect("no panic").expect("stopped");
}

pub async fn start_again(cluster: &Arc<Cluster>) {
    let cluster = cluster.clone();
    tokio::task::spawn_blocking(move || cluster.start_again()).await.expect("no panic").expect("started");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_finished_during_an_outage_is_settled_after_it() {
    let (cluster, db) = cluster().await;
    // Uses a long lease, because the server's recovery may take minutes on a slow disk.
    let settings = Settings::new("int8").lease(Duration::from_secs(600));
    db.create_queue("q", &settings).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    enqueued(&queue, 10).await;
    let (gate, seen, finished) = (Arc::new(Semaphore::new(0)), Seen::default(), Seen::default());
    let (opens, noted, ends) = (gate.clone(), seen.clone(), finished.clone());
    let runs = Runs::start(Worker::new(queue.clone(), move |message| {
        let (gate, ends) = (opens.clone(), ends.clone());
        noted.add(&message);
        async move {
            let opened = gate.acquire().await.map(drop);
            ends.add(&message);
            opened
        }
    }));
    eventually("all run", || async { seen.all().len() == 10 }).await;
    stop(&cluster, Stop::Immediate).await;
    gate.add_permits(10);
    eventually("all answered", || async { finished.all().len() == 10 }).await;
    start_again(&cluster).await;
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.lost), (10, 0), "settled under the first lease");
    assert!(seen.all().values().all(|times| *times == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_under_load_lose_nothing() {
    let (cluster, db) = cluster().await;
    let lease = Duration::from_secs(2);
    db.create_queue("q", &Settings::new("int8").lease(lease).max_attempts(1000)).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    let seen = Seen::default();
    let worker = || {
        let noted = seen.clone();
        let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
            let times = noted.add(&message);
            async move {
                match message.payload % 10 {
                    3 if times == 1 => Err("fails at first".parse::<i64>().expect_err("no number")),
                    4 => {
                        tokio::task::yield_now().await;
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
        });
        Runs::start(worker.retry(RetryPolicy::fixed(Duration::ZERO)))
    };
    let runs = [worker(), worker()];
    let mut sent = 0..;
    for nr in 0..4 {
        let first = seen.all().len();
        let payloads: Vec<i64> = sent.by_ref().take(20_000).collect();
        queue.enqueue_many(&payloads).await.expect("between two restarts");
        eventually("the load goes on", || async { seen.all().len() > first + 100 }).await;
        stop(&cluster, if nr % 2 == 0 { Stop::Immediate } else { Stop::Fast }).await;
        start_again(&cluster).await;
    }
    drained(&queue).await;
    let mut done = 0;
    for runs in runs {
        let summary = runs.stop().await;
        println!("{summary:?}");
        done += summary.done;
    }
    let handled = seen.all();
    assert_eq!(handled.len(), 80_000, "each was handled");
    assert_eq!(queue.stats().await.expect("counted").dead, 0);
    assert!(done <= 80_000, "none is done twice, whatever was lost on the way: {done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_a_worker_could_not_settle_count_as_lost() {
    let (cluster, db) = cluster().await;
    db.create_queue("q", &Settings::new("int8").lease(Duration::from_secs(600))).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    enqueued(&queue, 10).await;
    let (gate, seen, finished) = (Arc::new(Semaphore::new(0)), Seen::default(), Seen::default());
    let (opens, noted, ends) = (gate.clone(), seen.clone(), finished.clone());
    let worker = Worker::new(queue.clone(), move |message| {
        let (gate, ends) = (opens.clone(), ends.clone());
        noted.add(&message);
        async move {
            let opened = gate.acquire().await.map(drop);
            ends.add(&message);
            opened
        }
    });
    let runs = Runs::start(worker.shutdown_after(Duration::from_millis(100)));
    eventually("all run", || async { seen.all().len() == 10 }).await;
    stop(&cluster, Stop::Immediate).await;
    gate.add_permits(10);
    eventually("all answered", || async { finished.all().len() == 10 }).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.released, summary.lost), (0, 0, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_stopped_during_an_outage_ends_in_time() {
    let (cluster, db) = cluster().await;
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    enqueued(&queue, 10).await;
    let seen = Seen::default();
    let noted = seen.clone();
    let worker = Worker::new(queue.clone(), move |message| {
        noted.add(&message);
        std::future::pending::<Result<(), Infallible>>()
    });
    let runs = Runs::start(worker.shutdown_after(Duration::from_millis(100)));
    eventually("all run", || async { seen.all().len() == 10 }).await;
    stop(&cluster, Stop::Immediate).await;
    let summary = runs.stop().await; // `Runs::stop` limits the time of the shutdown
    assert_eq!((summary.done, summary.released), (0, 0), "nothing could be said");
}
