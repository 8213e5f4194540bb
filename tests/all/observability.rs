//! Tests the page on observability: it lists all metrics in the code, the metrics change by the
//! correct amounts, and spans have the documented fields.

mod recorder;
mod spans;

use std::{
    collections::BTreeSet,
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;
use trunkline::{Attempt, Changes, Db, Failure, Message, Queue, RetryPolicy, Schedule, Settings, Wait, Worker};
use trunkline_embedded::Stop;

use self::recorder::{Recorder, recorder};
use crate::{
    fixture::Ids,
    fixture::{Runs, connect, database, drained, eventually},
    worker::outage,
};

/// Creates a queue whose name no other test uses, so that only this test changes its metrics.
async fn metered(name: &str) -> (Db, Queue<i64>, &'static Recorder) {
    let recorder = recorder();
    let db = Db::connect(&database().await).await.expect("connected");
    db.create_queue(name, &Settings::new("int8").max_attempts(3)).await.expect("created");
    let queue = db.queue(name).await.expect("opened");
    (db, queue, recorder)
}

#[tokio::test]
async fn the_table_and_the_code_name_the_same_metrics() {
    let (_db, _queue, recorder) = metered("metered_names").await;
    let page = include_str!("../../docs/observability.md");
    let rows = page.lines().filter(|line| line.starts_with("| `trunkline_"));
    let told: BTreeSet<String> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            let unit = if cells[4] == "seconds" { "seconds" } else { "count" };
            format!("{} {} {} {}", cells[1], cells[2], cells[3].replace(',', ""), unit)
        })
        .collect();
    // A queue on several servers has the same metrics for each server, and two additional ones.
    let shard = trunkline::shards::Set::connect([&crate::shards::shard().await]).await.expect("connected");
    shard.create_queue("metered_shards", &Settings::new("int8")).await.expect("created");
    let _queue = shard.queue::<i64>("metered_shards").await.expect("opened");
    let of_shards = recorder.registered("metered_shards");
    let own = of_shards.iter().filter(|metric| metric.starts_with("trunkline_shard_")).cloned();
    assert_eq!(recorder.registered("metered_names").into_iter().chain(own).collect::<BTreeSet<_>>(), told);
    assert!(
        of_shards.len() == told.len() && of_shards.iter().all(|metric| metric.contains(" shard ")),
        "{of_shards:?}"
    );
    assert!(told.len() > 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn ticks_of_schedules_are_counted_and_timed() {
    let (db, queue, recorder) = metered("metered_ticks").await;
    queue.schedule(&Schedule::new("pulse", "every second"), &1).await.expect("set");
    let made = async {
        eventually("it ticks", async || recorder.count("metered_ticks", "ticks_total") > 0).await;
    };
    db.run_schedules(made).await.expect("made");
    assert!(recorder.times("metered_ticks", "tick_lag_seconds") > 0);
    assert!(queue.take(100).await.expect("taken").len() as u64 >= recorder.count("metered_ticks", "ticks_total"));
}

#[tokio::test(flavor = "multi_thread")]
async fn death_after_the_last_attempt_counts_as_dead() {
    let (db, queue, recorder) = metered("metered_deaths").await;
    let settled =
        || ["retried", "dead"].map(|end| recorder.count("metered_deaths", &format!("settled_messages_total {end}")));
    queue.enqueue_many(&[1, 2]).await.expect("enqueued");
    queue.retry(&queue.lease(2).await.expect("leased"), Duration::ZERO, "no").await.expect("held");
    assert_eq!(settled(), [2, 0]);
    db.alter_queue("metered_deaths", &Changes::new().max_attempts(2)).await.expect("altered");
    queue.enqueue(3).await.expect("enqueued");
    let all = queue.lease(3).await.expect("leased");
    queue.retry(&all, Duration::ZERO, "no").await.expect("held");
    assert_eq!(settled(), [3, 2]);
    assert_eq!(queue.stats().await.expect("counted").dead, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_moves_them_by_what_it_did() {
    let (db, queue, recorder) = metered("metered_verbs").await;
    let count = |name: &str| recorder.count("metered_verbs", name);
    let settled = |outcome: &str| recorder.count("metered_verbs", &format!("settled_messages_total {outcome}"));
    queue.enqueue(1).await.expect("enqueued");
    assert_eq!((count("enqueued_messages_total"), count("enqueued_rows_total")), (1, 1));
    queue.enqueue_many(&(0..2500).collect::<Vec<_>>()).await.expect("enqueued");
    assert_eq!((count("enqueued_messages_total"), count("enqueued_rows_total")), (2501, 4));
    let transaction = db.begin().await.expect("begun");
    queue.enqueue_many_in(&transaction, &(0..1500).collect::<Vec<_>>()).await.expect("enqueued");
    assert_eq!((count("enqueued_messages_total"), count("enqueued_rows_total")), (4001, 6));
    let sent = queue.send_enqueue_many(&transaction, &[1, 2]).await.expect("sent");
    transaction.commit().await.expect("committed");
    sent.await.expect("enqueued");
    queue.send_direct(1).await.expect("no consumer waits, so it is enqueued");
    assert_eq!((count("enqueued_messages_total"), count("enqueued_rows_total")), (4004, 7));
    assert_eq!((count("direct_messages_total"), recorder.times("metered_verbs", "enqueue_seconds")), (0, 4));

    assert_eq!(queue.take(7).await.expect("taken").len(), 7);
    let transaction = db.begin().await.expect("begun");
    assert_eq!(queue.take_in(&transaction, 3).await.expect("taken").len(), 3);
    transaction.rollback().await.expect("rolled back");
    assert_eq!(count("taken_messages_total"), 10);
    assert!(recorder.times("metered_verbs", "take_seconds") >= 2);

    let leased = queue.lease(100).await.expect("leased");
    assert_eq!((count("leased_messages_total"), recorder.times("metered_verbs", "lease_seconds")), (100, 1));
    queue.ack(&leased[..40]).await.expect("held");
    queue.archive(&leased[40..50]).await.expect("held");
    queue.retry(&leased[50..55], Duration::ZERO, "no").await.expect("held");
    queue.bury(&leased[55..59], "never").await.expect("held");
    queue.release(&leased[59..62]).await.expect("held");
    queue.extend(&leased[62..80], Duration::from_secs(60)).await.expect("held");
    let ends = ["done", "archived", "retried", "dead", "released", "lost"];
    assert_eq!(ends.map(settled), [40, 10, 5, 4, 3, 0]);
    queue.ack(&leased[30..62]).await.expect_err("all of them are over");
    assert_eq!(ends.map(settled), [40, 10, 5, 4, 3, 32]);
    let transaction = db.begin().await.expect("begun");
    queue.ack_in(&transaction, &leased[62..64]).await.expect("held");
    let acked = queue.send_ack(&transaction, &leased[64..66]).await.expect("sent");
    transaction.commit().await.expect("committed");
    acked.await.expect("held");
    let (next, _) = queue.ack_and_lease(&leased[61..80], 50).await.expect("settled");
    assert_eq!(ends.map(settled), [40 + 4 + 14, 10, 5, 4, 3, 32 + 5]);
    assert_eq!(count("leased_messages_total"), 100 + next.len() as u64);
    assert!(recorder.times("metered_verbs", "settle_seconds") >= 9);

    let ids = queue.enqueue_many([1, 2, 3, 4, 5]).await.expect("enqueued").ids();
    assert!(queue.find(ids[0]).await.expect("looked for").is_some() && queue.find(1).await.expect("none").is_none());
    queue.cancel(&ids[..2]).await.expect("cancelled");
    queue.reschedule(&ids[1..4], Duration::from_secs(60)).await.expect("two of them");
    let transaction = db.begin().await.expect("begun");
    queue.cancel_in(&transaction, &ids[2..3]).await.expect("cancelled");
    queue.reschedule_in(&transaction, &ids[3..], Duration::ZERO).await.expect("moved");
    transaction.rollback().await.expect("rolled back");
    assert_eq!((count("cancelled_messages_total"), count("rescheduled_messages_total")), (3, 4));
    let times =
        ["find_seconds", "cancel_seconds", "reschedule_seconds"].map(|name| recorder.times("metered_verbs", name));
    assert_eq!(times, [2, 2, 2]);
    for name in [
        "enqueue_seconds",
        "lease_seconds",
        "take_seconds",
        "settle_seconds",
        "find_seconds",
        "cancel_seconds",
        "reschedule_seconds",
    ] {
        assert!(recorder.sum("metered_verbs", name) > 0.0, "{name} are seconds that passed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_tells_what_its_handlers_do() {
    const NAME: &str = "metered_worker";
    let (_db, queue, recorder) = metered(NAME).await;
    queue.enqueue_many(&(0..100).collect::<Vec<_>>()).await.expect("enqueued");
    let (go, gone) = watch::channel(false);
    let first = Arc::new(AtomicUsize::new(0));
    let firsts = first.clone();
    let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
        firsts.fetch_add(usize::from(message.attempt == 1), Ordering::Relaxed);
        let mut gone = gone.clone();
        async move {
            gone.wait_for(|gone| *gone).await.map_err(|_| Failure::dead("the test ended"))?;
            match (message.payload, message.attempts()) {
                (0..10, 1) => Err(Failure::retry("once")),
                (10..15, _) => Err(Failure::dead("never")),
                _ => Ok(()),
            }
        }
    });
    let runs = Runs::start(worker.concurrency(8).retry(RetryPolicy::fixed(Duration::ZERO)));
    eventually("eight run", || async { (recorder.level(NAME, "running_handlers") - 8.0).abs() < 0.1 }).await;
    eventually("it is connected", || async { recorder.level(NAME, "connected") > 0.5 }).await;
    go.send(true).expect("it waits");
    drained(&queue).await;
    runs.stop().await;
    let settled = ["done", "retried", "dead", "lost"];
    let settled = settled.map(|end| recorder.count(NAME, &format!("settled_messages_total {end}")));
    assert_eq!(settled, [95, 10, 5, 0]);
    let handled = ["done", "retried", "dead"].map(|end| recorder.times(NAME, &format!("handle_seconds {end}")));
    assert_eq!(handled, [95, 10, 5]);
    // Compares first attempts, because the metric skips a message that the worker gave back before
    // starting its first attempt.
    let first = first.load(Ordering::Relaxed);
    assert_eq!(recorder.times(NAME, "delivery_lag_seconds"), first, "first attempts");
    for name in ["running_handlers", "prefetched_messages", "connected"] {
        assert!(recorder.level(NAME, name).abs() < 0.1, "{name} after its end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_lease_of_a_dropped_handler_is_counted() {
    const NAME: &str = "metered_dropped";
    let (_db, queue, recorder) = metered(NAME).await;
    let id = queue.enqueue(1).await.expect("enqueued").id();
    let (lost, mut until_lost) = watch::channel(false);
    let worker = Worker::with_attempt(queue.clone(), move |_: Message<i64>, attempt: Attempt<i64>| {
        let lost = lost.clone();
        async move {
            attempt.lost().cancelled().await;
            lost.send_replace(true);
            pending::<Result<(), Failure>>().await // ends only with its worker
        }
    });
    let runs = Runs::start(worker.shutdown_after(Duration::ZERO));
    eventually("it runs", async || recorder.level(NAME, "running_handlers") > 0.5).await;
    queue.cancel(&[id]).await.expect("cancelled");
    until_lost.wait_for(|lost| *lost).await.expect("it is notified");
    assert_eq!(runs.stop().await.lost, 1);
    assert_eq!(recorder.count(NAME, "settled_messages_total lost"), 1);
}

/// A trigger refuses to delete messages, so neither an acknowledgement nor a burial ends a lease.
#[tokio::test(flavor = "multi_thread")]
async fn leases_that_the_server_refuses_to_end_count_as_lost() {
    const NAME: &str = "metered_refused";
    let recorder = recorder();
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue(NAME, &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = db.queue(NAME).await.expect("opened");
    let refuses = format!(
        "create function public.refuse() returns trigger language plpgsql as $$ begin raise 'it stays'; end $$;
         create trigger refuse before delete on trunkline.queue_{NAME} for each row execute function public.refuse()"
    );
    sql.batch_execute(&refuses).await.expect("created");
    for payload in 0..2 {
        queue.enqueue(payload).await.expect("enqueued"); // in a row of its own
    }
    let worker = Worker::new(queue.clone(), |message: Message<i64>| async move {
        if message.payload == 0 { Ok(()) } else { Err(Failure::dead("never")) }
    });
    let summary = worker.drain().await.expect("drained");
    assert_eq!((summary.done, summary.dead, summary.lost), (0, 0, 2), "{summary:?}");
    assert_eq!(recorder.count(NAME, "settled_messages_total lost"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_delivery_is_counted_apart_from_enqueues() {
    const NAME: &str = "metered_direct";
    let recorder = recorder();
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue(NAME, &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = db.queue(NAME).await.expect("opened");
    let mut consumer = queue.consumer(Wait::Notify);
    let receiver = tokio::spawn(async move { consumer.receive_direct().await });
    let listed = "select exists (select from trunkline.waiting)";
    eventually("it waits", || async { sql.query_one(listed, &[]).await.expect("read").get(0) }).await;
    queue.send_direct(7).await.expect("handed over");
    assert_eq!(receiver.await.expect("no panic").expect("received").payload, 7);
    assert_eq!(recorder.count(NAME, "direct_messages_total"), 1);
    assert_eq!(recorder.count(NAME, "enqueued_messages_total"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_one_queue_add_up() {
    const NAME: &str = "metered_workers";
    let (_db, queue, recorder) = metered(NAME).await;
    let start = || Runs::start(Worker::new(queue.clone(), async |_: Message<i64>| Ok::<_, Failure>(())));
    let (first, second) = (start(), start());
    let connected = async |workers: f64| {
        eventually("they are counted", async || (recorder.level(NAME, "connected") - workers).abs() < 0.1).await;
    };
    connected(2.0).await;
    first.stop().await;
    connected(1.0).await;
    second.stop().await;
    connected(0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prefetched_messages_are_reported_while_they_wait() {
    const NAME: &str = "metered_ahead";
    let (_db, queue, recorder) = metered(NAME).await;
    queue.enqueue_many(&(0..1000).collect::<Vec<_>>()).await.expect("enqueued");
    let (go, gone) = watch::channel(false);
    let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
        let mut gone = gone.clone();
        async move {
            // Handles the first messages fast, so that the worker prefetches some. Later handlers
            // block.
            if message.payload >= 300 {
                gone.wait_for(|gone| *gone).await.map_err(|_| Failure::dead("the test ended"))?;
            }
            Ok::<(), Failure>(())
        }
    });
    let runs = Runs::start(worker.concurrency(1));
    eventually("some wait", || async { recorder.level(NAME, "prefetched_messages") > 0.5 }).await;
    go.send(true).expect("it waits");
    drained(&queue).await;
    runs.stop().await;
    assert!(recorder.level(NAME, "prefetched_messages").abs() < 0.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_cut_off_or_dropped_counts_as_not_connected() {
    const NAME: &str = "metered_outage";
    let recorder = recorder();
    let (cluster, db) = outage::cluster().await;
    db.create_queue(NAME, &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = db.queue(NAME).await.expect("opened");
    let worker = Worker::new(queue, |_: Message<i64>| async { Ok::<(), Infallible>(()) }).wait(Wait::poll());
    let run = tokio::spawn(worker.run(pending()));
    let connected = |is_so: bool| {
        let level = if is_so { 1.0 } else { 0.0 };
        eventually("it is told", move || async move { (recorder.level(NAME, "connected") - level).abs() < 0.1 })
    };
    connected(true).await;
    outage::stop(&cluster, Stop::Immediate).await;
    connected(false).await;
    outage::start_again(&cluster).await;
    connected(true).await;
    run.abort();
    connected(false).await;
}
