//! Tests many concurrent callers: nothing is lost, and nothing is delivered twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Duration, timeout},
};
use trunkline::{Message, Settings, Wait};

use crate::{
    contract::{GUARANTEES, Guarantee, WAITS, next},
    fixture::Ids,
    fixture::{Place, SOON, connect, grows_to, place},
};

const CONSUMERS: usize = 35;
const PRODUCERS: i64 = 11;
const EACH: i64 = 1000;

/// The messages that the consumers of a crowd received until the queue was empty.
#[derive(Default)]
struct Tally {
    messages: Mutex<Vec<(i64, i64)>>,
    complete: Notify,
}

impl Tally {
    fn add(&self, messages: &[Message<i64>], all: usize) {
        let mut got = self.messages.lock().expect("no panic");
        got.extend(messages.iter().map(|message| (message.id, message.payload)));
        if got.len() >= all {
            self.complete.notify_waiters();
        }
    }

    fn is_complete(&self, all: usize) -> bool {
        self.messages.lock().expect("no panic").len() >= all
    }
}

async fn crowd(guarantee: Guarantee) {
    let Place { url, db: _db, queue, sql: _ } = place::<i64>(Settings::new("int8")).await;
    let all = usize::try_from(PRODUCERS * EACH).expect("few");
    let tally = Arc::new(Tally::default());
    let mut tasks = JoinSet::new();
    for nr in 0..CONSUMERS {
        let (tally, mut sql) = (tally.clone(), connect(&url).await);
        let (mut consumer, n) = (queue.consumer(WAITS[nr % 3]), [1, 3, 10, 64, 100, 1000][nr % 6]);
        tasks.spawn(async move {
            let complete = tally.complete.notified();
            let mut complete = std::pin::pin!(complete);
            complete.as_mut().enable();
            while !tally.is_complete(all) {
                tokio::select! {
                    messages = next(&mut consumer, guarantee, n, &mut sql) => {
                        assert!((1..=n).contains(&messages.len()), "{} for n = {n}", messages.len());
                        tally.add(&messages, all);
                    }
                    () = &mut complete => {}
                }
            }
        });
    }
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let queue = queue.clone();
        producers.spawn(async move {
            let payloads: Vec<i64> = (producer * EACH..(producer + 1) * EACH).collect();
            match producer % 3 {
                0 => futures_util::future::try_join_all(payloads.iter().map(|payload| queue.enqueue(payload))).await,
                1 => queue.enqueue_many(&payloads).await,
                _ => {
                    let mut ids = Vec::new();
                    for some in payloads.chunks(37) {
                        ids.extend(queue.enqueue_many(some).await.expect("enqueued"));
                    }
                    Ok(ids)
                }
            }
            .expect("enqueued")
            .ids()
            .into_iter()
            .zip(payloads)
            .collect::<Vec<_>>()
        });
    }
    let mut sent: Vec<(i64, i64)> = producers.join_all().await.concat();
    let mut before = 0;
    while timeout(Duration::from_secs(20), async {
        while tasks.join_next().await.transpose().expect("no panic").is_some() {}
    })
    .await
    .is_err()
    {
        let got = tally.messages.lock().expect("no panic").len();
        assert!(got > before, "{guarantee:?}: {got} of {all}, none for 20 s; left: {:?}", queue.stats().await);
        before = got; // requires progress until the next check
    }
    let mut got = tally.messages.lock().expect("no panic").clone();
    got.sort_unstable();
    sent.sort_unstable();
    assert_eq!(got, sent, "{guarantee:?}: everything once");
    assert_eq!(queue.stats().await.expect("counted").messages, 0, "{guarantee:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_loses_and_doubles_nothing() {
    for guarantee in GUARANTEES {
        crowd(guarantee).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_consumers_split_one_batch_among_them() {
    for guarantee in GUARANTEES {
        let Place { url, db: _db, queue, sql: _ } = place::<i64>(Settings::new("int8")).await;
        let ids = queue.enqueue_many(&(0..1024).collect::<Vec<i64>>()).await.expect("enqueued").ids();
        assert_eq!(queue.stats().await.expect("counted").rows, 1, "one batch");
        let (got, count) = (Arc::new(Mutex::new(BTreeMap::new())), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for n in (1..=7).chain(1..=7) {
            let (mut consumer, mut sql) = (queue.consumer(WAITS[n % 3]), connect(&url).await);
            let (got, count) = (got.clone(), count.clone());
            tasks.spawn(async move {
                loop {
                    let messages = next(&mut consumer, guarantee, n, &mut sql).await;
                    assert!((1..=n).contains(&messages.len()));
                    count.fetch_add(messages.len(), Ordering::Relaxed);
                    let mut got = got.lock().expect("no panic");
                    got.extend(messages.into_iter().map(|message| (message.id, message.payload)));
                }
            });
        }
        grows_to("everything is consumed", 1024, || got.lock().expect("no panic").len()).await;
        tasks.shutdown().await;
        assert_eq!(count.load(Ordering::Relaxed), 1024, "{guarantee:?}: nothing twice");
        assert_eq!(*got.lock().expect("no panic"), ids.into_iter().zip(0..).collect(), "{guarantee:?}");
        assert_eq!(queue.stats().await.expect("counted").rows, 0);
    }
}

/// A handler works on the only message for a long time. During that time, the other consumers must
/// not flood the server.
#[tokio::test(flavor = "multi_thread")]
async fn consumers_waiting_for_a_held_message_poll_seldom() {
    let watched = GUARANTEES.map(|guarantee| tokio::spawn(asks_seldom(guarantee)));
    futures_util::future::try_join_all(watched).await.expect("no panic");
}

async fn asks_seldom(guarantee: Guarantee) {
    let Place { url, db: _db, queue, mut sql } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(7).await.expect("enqueued");
    let transaction = sql.transaction().await.expect("begun");
    assert_eq!(queue.take_in(&transaction, 1).await.expect("taken").len(), 1);
    let (mut consumer, mut own) = (queue.consumer(Wait::Adaptive), connect(&url).await);
    let waiter = tokio::spawn(async move { next(&mut consumer, guarantee, 1, &mut own).await });
    let watch = connect(&url).await;
    // The time is measured in whole seconds of the server's clock, because a busy backend reports
    // its statistics at least once a second.
    let transactions = "select xact_commit + xact_rollback, clock_timestamp() from pg_stat_database where datname = current_database()";
    let read = async || -> (i64, SystemTime) {
        let row = watch.query_one(transactions, &[]).await.expect("read");
        (row.get(0), row.get(1))
    };
    let (before, began) = read().await;
    watch.batch_execute("select pg_sleep(2.5)").await.expect("watched");
    let (after, ended) = read().await;
    // Compares the number of transactions with what pauses allow. Within ten pauses, a pause grows
    // to a quarter of a second, so there are four per second, with two or three transactions each.
    // The listener also checks whether the older transaction has ended: first after 100 ms, then
    // every second. The counter includes autovacuum, and transactions that sessions report late.
    // Without the pauses there would be thousands.
    let seconds = ended.duration_since(began).expect("later").as_secs_f64();
    println!("{guarantee:?}: {} transactions in {seconds} s", after - before);
    let most = 300.0 + 40.0 * seconds;
    assert!(((after - before) as f64) < most, "{guarantee:?}: {} transactions in {seconds} s", after - before);
    transaction.rollback().await.expect("rolled back");
    let messages = timeout(SOON, waiter).await.expect("it is due again").expect("no panic");
    assert_eq!(messages[0].payload, 7, "{guarantee:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_acknowledge_interleaved_messages_of_the_same_batches() {
    let Place { url, db: _db, queue, sql: _ } = place::<i64>(Settings::new("int8")).await;
    let elsewhere = trunkline::Db::connect(&url).await.expect("connected").queue::<i64>("q").await.expect("opened");
    for _ in 0..4 {
        queue.enqueue_many(&(0..1000).collect::<Vec<i64>>()).await.expect("enqueued");
    }
    let leases: Vec<_> = queue.lease(4000).await.expect("leased").iter().map(Message::lease).collect();
    let mut tasks = JoinSet::new();
    for part in 0..16 {
        let queue = if part % 2 == 0 { queue.clone() } else { elsewhere.clone() };
        let mut mine: Vec<_> = leases.iter().skip(part).step_by(16).copied().collect();
        if part % 3 == 0 {
            mine.reverse();
        }
        tasks.spawn(async move {
            for some in mine.chunks(50) {
                queue.ack(some).await.expect("acknowledged");
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
    let distinct: BTreeSet<_> = leases.iter().collect();
    assert_eq!(distinct.len(), 4000);
}
