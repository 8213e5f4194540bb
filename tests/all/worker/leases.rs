//! Leases of a worker are renewed while a handler runs, reported when lost, and not hoarded.

use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore, mpsc},
    time::timeout,
};
use trunkline::{Failure, Message, Settings, Worker, postgres::Statement};

use crate::fixture::{Place, Runs, SOON, Said, Seen, connect, drained, enqueued, eventually, place, run_out};

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_outlasts_its_lease_many_times_keeps_it() {
    let lease = Duration::from_secs(10);
    let Place { url, queue, db, .. } = place(Settings::new("int8").lease(lease)).await;
    enqueued(&queue, 10).await;
    let (seen, gate) = (Seen::default(), Arc::new(Semaphore::new(0)));
    let (noted, opens) = (seen.clone(), gate.clone());
    let runs = Runs::start(Worker::new(queue.clone(), move |message| {
        noted.add(&message);
        let gate = opens.clone();
        async move { gate.acquire().await.map(drop) }
    }));
    // Starts another consumer, which would receive a message if a lease expired.
    let other = trunkline::Db::connect(&url).await.expect("connected").queue::<i64>("q").await.expect("opened");
    eventually("all run", || async { seen.all().len() == 10 }).await;
    let mut consumer = other.consumer(trunkline::Wait::Poll(Duration::from_millis(20)));
    timeout(lease * 3, consumer.lease(1)).await.expect_err("none of them is due in three lease times");
    gate.add_permits(10);
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.lost), (10, 0));
    assert!(seen.all().values().all(|times| *times == 1));
    drop(db);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_lease_notifies_its_handler_and_discards_the_answer() {
    let lease = Duration::from_secs(5); // long enough for the test to take the leases away before they end
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8").lease(lease).max_attempts(99)).await;
    enqueued(&queue, 3).await;
    let (told, mut tells) = mpsc::unbounded_channel();
    let runs = Runs::start(Worker::with_attempt(queue.clone(), move |message, attempt| {
        let told = told.clone();
        async move {
            if message.attempts() > 1 {
                return Ok::<(), Infallible>(());
            }
            told.send("runs").expect("the test goes on");
            attempt.lost().cancelled().await;
            told.send("lost").expect("the test goes on");
            Ok(())
        }
    }));
    for _ in 0..3 {
        assert_eq!(timeout(SOON, tells.recv()).await.expect("in time"), Some("runs"));
    }
    run_out(&sql).await;
    for _ in 0..3 {
        assert_eq!(timeout(SOON, tells.recv()).await.expect("in time"), Some("lost"));
    }
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.lost), (3, 3), "the first answers do not count");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_message_does_not_hold_back_its_batch() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
    let ids = enqueued(&queue, 50).await;
    let gate = Arc::new(Notify::new());
    let opens = gate.clone();
    let runs = Runs::start(Worker::new(queue.clone(), move |message: Message<i64>| {
        let gate = opens.clone();
        async move {
            if message.payload == 20 {
                gate.notified().await;
            }
            Ok::<(), Infallible>(())
        }
    }));
    let left = "select array_agg(id) from trunkline.messages('q')";
    let only =
        async || sql.query_one(left, &[]).await.expect("read").get::<_, Option<Vec<i64>>>(0) == Some(vec![ids[20]]);
    eventually("only the slow one is left", only).await; // its lease expires much later
    gate.notify_one();
    drained(&queue).await;
    assert_eq!(runs.stop().await.done, 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_jobs_spread_over_workers_even_after_quick_ones() {
    for rows in [1, 1024] {
        let Place { url, queue, db: _db, .. } = place(Settings::new("int8").max_batch(rows)).await;
        // Enqueues fast messages, and then slow ones. The worker must not prefetch slow messages
        // because the earlier ones were fast.
        queue.enqueue_many(&vec![-1; 20_000]).await.expect("enqueued");
        queue.enqueue_many(&(0..40).collect::<Vec<_>>()).await.expect("enqueued");
        let running = Arc::new(AtomicUsize::new(0));
        let handler = {
            let running = running.clone();
            move |message: Message<i64>| {
                let running = running.clone();
                async move {
                    if message.payload >= 0 {
                        running.fetch_add(1, Ordering::Relaxed);
                        pending::<()>().await;
                    }
                    Ok::<(), Infallible>(())
                }
            }
        };
        let mut workers = vec![Runs::start(
            Worker::new(queue.clone(), handler.clone()).concurrency(10).shutdown_after(Duration::ZERO),
        )];
        // Waits until ten slow handlers run. The fast messages before them may take long, as long
        // as their number decreases.
        let full = || running.load(Ordering::Relaxed) == 10;
        let left = async || queue.stats().await.expect("counted").messages;
        let mut least = left().await;
        while !full() {
            eventually("the first is full, or gets on", async || full() || left().await < least).await;
            least = left().await;
        }
        for _ in 0..3 {
            let db = trunkline::Db::connect(&url).await.expect("connected");
            let queue = db.queue::<i64>("q").await.expect("opened");
            workers
                .push(Runs::start(Worker::new(queue, handler.clone()).concurrency(10).shutdown_after(Duration::ZERO)));
        }
        eventually("all forty run, ten each", || async { running.load(Ordering::Relaxed) == 40 }).await;
        for worker in workers {
            assert_eq!(worker.stop().await.lost, 0);
        }
        let given_back = queue.peek(100).await.expect("peeked");
        assert_eq!(given_back.len(), 40);
    }
}

static EFFECT: Statement<(i64,), u64> = Statement::new("insert into public.effects values ($1)");

/// Four of twenty handlers roll back on the first attempt. The test runs with the worker's own
/// transaction and with one of `tokio_postgres`.
#[tokio::test(flavor = "multi_thread")]
async fn effects_and_acknowledgement_commit_together() {
    for own in [true, false] {
        let Place { url, queue, sql, db } = place(Settings::new("int8").lease(Duration::from_secs(10))).await;
        sql.batch_execute("create table public.effects (payload int8)").await.expect("created");
        enqueued(&queue, 20).await;
        let runs = Runs::start(Worker::with_attempt(queue.clone(), move |message, attempt| {
            let url = url.clone();
            async move {
                let changes_its_mind = message.payload % 5 == 0 && message.attempts() == 1;
                if own {
                    let transaction = attempt.transaction().await?;
                    transaction.send(&EFFECT, (message.payload,)).await?;
                    if !changes_its_mind {
                        return Ok(transaction.commit().await?);
                    }
                } else {
                    let mut sql = connect(&url).await;
                    let transaction = sql.transaction().await?;
                    transaction.execute(EFFECT.text(), &[&message.payload]).await?;
                    attempt.ack_in(&transaction).await?;
                    if !changes_its_mind {
                        return Ok(transaction.commit().await?);
                    }
                }
                Err(Failure::retry_after(Duration::ZERO, "changed its mind"))
            }
        }));
        drained(&queue).await;
        let summary = runs.stop().await;
        assert_eq!((summary.done, summary.retried, summary.lost), (20, 4, 0));
        let effects = "select count(*), count(distinct payload) from public.effects";
        let row = sql.query_one(effects, &[]).await.expect("read");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (20, 20), "exactly once");
        drop(db);
    }
}

#[tokio::test]
async fn refused_renewals_are_one_warning() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8").lease(Duration::from_secs(3))).await;
    enqueued(&queue, 10).await;
    let warnings = Said::warnings();
    let _ear = warnings.listen();
    let (seen, lost) = (Seen::default(), Seen::default());
    let (runs, ends) = (seen.clone(), lost.clone());
    let runs = Runs::start(Worker::with_attempt(queue.clone(), move |message, attempt| {
        runs.add(&message);
        let ends = ends.clone();
        async move {
            attempt.lost().cancelled().await;
            ends.add(&message);
            Ok::<(), Infallible>(())
        }
    }));
    eventually("all run", async || seen.all().len() == 10).await;
    let refuse = "create function refuse() returns trigger language plpgsql as $$
                  begin raise sqlstate '25006' using message = 'no writes'; end $$;
                  create trigger refuse before update on trunkline.queue_q for each row execute function refuse()";
    sql.batch_execute(refuse).await.expect("refused from now on");
    eventually("all leases have ended", async || lost.all().len() == 10).await;
    let told: Vec<String> = warnings.take().into_iter().filter(|line| line.contains("not renewed")).collect();
    assert!(told.len() == 1 && told[0].contains("messages=10"), "{told:#?}");
    runs.stop().await; // while nothing can be leased again, whose handlers would wait for the end of their leases
}
