//! Tests the end of a worker, and of the leases that it holds.

use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::{Semaphore, mpsc},
    time::timeout,
};
use trunkline::{Attempt, Failure, Message, Settings, Worker};

use crate::fixture::{Place, Runs, SOON, Seen, connect, enqueued, eventually, place};

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_waits_for_what_runs_and_starts_nothing_more() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").max_batch(1)).await;
    enqueued(&queue, 30).await;
    let (gate, seen) = (Arc::new(Semaphore::new(0)), Seen::default());
    let (opens, noted) = (gate.clone(), seen.clone());
    let worker = Worker::new(queue.clone(), move |message| {
        noted.add(&message);
        let gate = opens.clone();
        async move { gate.acquire().await.map(drop) }
    });
    let runs = Runs::start(worker.concurrency(10));
    eventually("ten run", || async { seen.all().len() == 10 }).await;
    let stopping = tokio::spawn(runs.stop());
    gate.add_permits(30);
    let summary = stopping.await.expect("no panic");
    // Counts at least ten completed handlers, because the worker may have started more before it
    // noticed the stop. All other messages are still in the queue.
    assert!(summary.done >= 10 && summary.lost == 0, "{summary:?}");
    assert_eq!(summary.done, seen.all().len() as u64);
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.due, stats.leased), (30 - summary.done, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_messages_are_due_at_once_without_counting_attempts() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(1)).await;
    enqueued(&queue, 20).await;
    let started = Arc::new(AtomicUsize::new(0));
    let starts = started.clone();
    let worker = Worker::new(queue.clone(), move |_: Message<i64>| {
        starts.fetch_add(1, Ordering::Relaxed);
        pending::<Result<(), Infallible>>()
    });
    let runs = Runs::start(worker.shutdown_after(Duration::from_millis(20)));
    eventually("all run", || async { started.load(Ordering::Relaxed) == 20 }).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.released, summary.lost), (0, 20, 0));
    let again = queue.lease(100).await.expect("leased");
    assert_eq!(again.len(), 20, "due at once, although one attempt is all they have");
    queue.ack(&again).await.expect("held");
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_may_finish_in_the_last_second_of_a_shutdown() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 2).await;
    let (runs_now, mut starts) = mpsc::unbounded_channel();
    let worker = Worker::with_attempt(queue.clone(), move |message, attempt| {
        runs_now.send(()).expect("the test goes on");
        async move {
            attempt.lost().cancelled().await;
            if message.payload == 1 {
                pending::<()>().await;
            }
            Ok::<(), Infallible>(())
        }
    });
    let runs = Runs::start(worker.shutdown_after(Duration::from_millis(10)));
    for _ in 0..2 {
        starts.recv().await.expect("started");
    }
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.released, summary.lost), (1, 1, 0), "one finished, one was given back");
}

/// Another session keeps the acknowledged message locked until the shutdown has reached its limit.
#[tokio::test(flavor = "multi_thread")]
async fn acknowledgement_under_way_at_the_limit_counts_as_done() {
    let Place { queue, sql, url, db: _db } = place(Settings::new("int8")).await;
    let first = queue.enqueue(0).await.expect("enqueued").id();
    queue.enqueue(1).await.expect("enqueued"); // in a row of its own
    let (gate, alive) = (Arc::new(Semaphore::new(0)), Arc::new(()));
    let (opens, held) = (gate.clone(), alive.clone());
    let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
        let (gate, held) = (opens.clone(), (message.payload == 1).then(|| held.clone()));
        async move {
            match held {
                None => gate.acquire().await.map(drop),
                Some(_held) => pending().await,
            }
        }
    });
    let runs = Runs::start(worker.concurrency(2).shutdown_after(Duration::ZERO));
    let both = "select count(*) = 2 from trunkline.queue_q where attempt = 1";
    eventually("both are leased", || async { sql.query_one(both, &[]).await.expect("read").get(0) }).await;
    eventually("the other runs", || async { Arc::strong_count(&alive) == 3 }).await;
    let mut own = connect(&url).await;
    let locks = own.transaction().await.expect("begun");
    locks.execute("select from trunkline.queue_q where id = $1 for update", &[&first]).await.expect("locked");
    gate.add_permits(1);
    // After half a second, the statement waits on a connection of its own.
    let waits =
        "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
                                  and clock_timestamp() - query_start > '700 ms')";
    eventually("its acknowledgement waits", || async { sql.query_one(waits, &[]).await.expect("read").get(0) }).await;
    let stopping = tokio::spawn(runs.stop());
    eventually("the other handler is dropped", || async { Arc::strong_count(&alive) < 3 }).await;
    locks.rollback().await.expect("unlocked");
    let summary = stopping.await.expect("no panic");
    assert_eq!((summary.done, summary.released, summary.lost), (1, 1, 0), "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_handler_that_has_ended_its_lease_counts_once() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 3).await;
    let (told, mut tells) = mpsc::unbounded_channel();
    let worker = Worker::with_attempt(queue.clone(), move |message: Message<i64>, attempt: Attempt<i64>| {
        let told = told.clone();
        async move {
            match (message.payload, message.attempt) {
                (0, _) => attempt.transaction().await?.commit().await?,
                (1, 1) => attempt.release().await?,
                _ => {}
            }
            told.send(()).expect("the test goes on");
            pending::<Result<(), Failure>>().await
        }
    });
    let runs = Runs::start(worker.shutdown_after(Duration::ZERO));
    for _ in 0..4 {
        timeout(SOON, tells.recv()).await.expect("in time").expect("three handlers, and one again");
    }
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.released, summary.lost), (1, 3, 0), "{summary:?}");
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.due, stats.leased), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_worker_stops_and_its_messages_come_back() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").lease(Duration::from_millis(300))).await;
    enqueued(&queue, 5).await;
    let alive = Arc::new(());
    let held = alive.clone();
    let worker = Worker::new(queue.clone(), move |_: Message<i64>| {
        let held = held.clone();
        async move {
            pending::<()>().await;
            drop(held);
            Ok::<(), Infallible>(())
        }
    });
    let run = tokio::spawn(worker.run(pending()));
    eventually("all run", || async { Arc::strong_count(&alive) >= 7 }).await;
    run.abort();
    eventually("handlers are gone", || async { Arc::strong_count(&alive) == 1 }).await;
    eventually("they are back", || async { queue.stats().await.expect("counted").due == 5 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_worker_releases_messages_that_no_handler_started() {
    let settings = Settings::new("int8").max_attempts(1).lease(Duration::from_secs(600));
    let Place { queue, db: _db, .. } = place(settings).await;
    enqueued(&queue, 1000).await;
    let seen = Seen::default();
    let (noted, (reached, mut signals)) = (seen.clone(), mpsc::unbounded_channel());
    let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
        noted.add(&message);
        // Handles the first messages fast, so that the worker prefetches some. A later one blocks.
        let blocks = (message.payload >= 300).then(|| reached.clone());
        async move {
            if let Some(reached) = blocks {
                reached.send(()).expect("the test goes on");
                pending::<()>().await;
            }
            Ok::<(), Infallible>(())
        }
    });
    let run = tokio::spawn(worker.concurrency(1).run(pending()));
    timeout(SOON, signals.recv()).await.expect("in time").expect("one blocks");
    run.abort();
    let unstarted = 1000 - seen.all().len() as u64;
    eventually("they are due", || async { queue.stats().await.expect("counted").due == unstarted }).await;
    let again = queue.lease(1000).await.expect("leased");
    assert!(again.iter().all(|message| message.attempts() == 1), "no attempt was counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_queue_ends_its_worker_after_its_handlers() {
    let Place { queue, db, .. } = place(Settings::new("int8")).await;
    for n in 0..3 {
        // enqueues rows of one message, so that the worker acknowledges each when its handler ends
        queue.enqueue(n).await.expect("enqueued");
    }
    let (gate, finished) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (opens, counts) = (gate.clone(), finished.clone());
    let runs = Runs::start(Worker::new(queue.clone(), move |_: Message<i64>| {
        let (gate, finished) = (opens.clone(), counts.clone());
        async move {
            gate.acquire().await.expect("open").forget();
            finished.fetch_add(1, Ordering::Relaxed);
            Ok::<(), Infallible>(())
        }
    }));
    eventually("they run", || async { queue.stats().await.expect("counted").leased == 3 }).await;
    db.drop_queue("q").await.expect("dropped");
    let mut failing = tokio::spawn(runs.fails());
    gate.add_permits(1);
    eventually("one has ended", || async { finished.load(Ordering::Relaxed) == 1 }).await;
    let early = timeout(Duration::from_millis(500), &mut failing).await;
    assert!(early.is_err(), "it ended before its handlers, at the first acknowledgement that was refused");
    gate.add_permits(2);
    let error = failing.await.expect("no panic");
    assert!(error.is_no_queue(), "{error}");
    assert_eq!(finished.load(Ordering::Relaxed), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_out_of_bounds_is_an_error_at_once() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    for lease in [Duration::ZERO, Duration::from_secs(366 * 86_400)] {
        let worker = Worker::new(queue.clone(), |_| async { Ok::<(), Infallible>(()) });
        let error = Runs::start(worker.lease(lease)).fails().await;
        assert!(error.to_string().contains("out of bounds"), "{error}");
    }
}

/// Stops workers while their handlers are ending. Every unfinished message still exists, and its
/// attempt is not counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_under_load_loses_and_doubles_nothing() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8").max_attempts(1)).await;
    let (seen, mut summaries) = (Seen::default(), Vec::new());
    let ids = enqueued(&queue, 30_000).await;
    let began = Instant::now();
    while queue.stats().await.expect("counted").messages > 0 {
        let (noted, before) = (seen.clone(), seen.all().len());
        let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
            let noted = noted.clone();
            async move {
                if message.payload % 100 == 0 {
                    tokio::task::yield_now().await;
                }
                noted.add(&message);
                Ok::<(), Infallible>(())
            }
        });
        let runs = Runs::start(worker);
        eventually("it works", || async { seen.all().len() > before }).await;
        summaries.push(runs.stop().await);
    }
    let handled = seen.all();
    println!("{} workers in {:?}", summaries.len(), began.elapsed());
    assert_eq!(handled.len(), ids.len(), "nothing lost");
    assert!(handled.values().all(|times| *times == 1), "nothing twice");
    assert_eq!(summaries.iter().map(|summary| summary.done).sum::<u64>(), 30_000);
    assert!(summaries.iter().all(|summary| summary.lost + summary.dead + summary.retried == 0));
    assert_eq!(queue.stats().await.expect("counted").dead, 0);
}
