//! Waiting consumers share a wait list. Many consumers cost as much as one, one statement serves
//! all, and a consumer that leaves loses no message.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::join_all};
use tokio::{
    sync::{Semaphore, mpsc},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use trunkline::{Failure, Message, Queue, Result, Settings, Wait};

use crate::fixture::{Place, SOON, Said, drained, enqueued, eventually, move_time, place, until_asleep};

/// The way in which a consumer dequeues.
#[derive(Clone, Copy)]
enum By {
    Take,
    Lease,
}

/// A consumer's task, which returns the messages that the consumer received.
type Task = JoinHandle<Vec<Message<i64>>>;

/// Starts `count` consumers. The counter records how many times they started to wait.
fn waiters(queue: &Queue<i64>, wait: Wait, count: usize, by: By) -> (Vec<Task>, Arc<AtomicUsize>) {
    let waits = Arc::new(AtomicUsize::new(0));
    let tasks = (0..count).map(|_| {
        let waits = waits.clone();
        let mut consumer = queue.consumer(wait).before_wait(move || {
            waits.fetch_add(1, Ordering::Relaxed);
        });
        tokio::spawn(async move {
            let found: Result<Vec<Message<i64>>> = match by {
                By::Take => consumer.take(1).await,
                By::Lease => consumer.lease(1).await,
            };
            found.expect("dequeued")
        })
    });
    (tasks.collect(), waits)
}

async fn until_all_wait(waits: &AtomicUsize, count: usize) {
    eventually("all of them wait", || async { waits.load(Ordering::Relaxed) >= count }).await;
}

/// Returns the messages of all tasks. Each task must have received at least one.
async fn messages(tasks: Vec<Task>) -> Vec<Message<i64>> {
    let all = timeout(SOON, join_all(tasks)).await.expect("all are woken");
    all.into_iter().flat_map(|found| found.expect("no panic")).collect()
}

async fn got(tasks: Vec<Task>) -> BTreeSet<i64> {
    let mut ids = BTreeSet::new();
    for Message { id, .. } in messages(tasks).await {
        assert!(ids.insert(id), "{id} came once");
    }
    ids
}

#[tokio::test]
async fn a_hundred_that_wait_cost_what_one_costs() {
    let statements = Said::statements();
    let _ear = statements.listen();
    let mut costs = Vec::new();
    for count in [1, 100] {
        let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
        let (tasks, waits) = waiters(&queue, Wait::default(), count, By::Lease);
        until_all_wait(&waits, count).await;
        until_asleep(&sql).await;
        statements.take();
        for _ in 0..20 {
            let before = statements.count();
            move_time(Duration::from_secs(31)).await;
            eventually("it looks", || async { statements.count() > before }).await;
            until_asleep(&sql).await; // waits until the consumers' next probe has ended completely
        }
        costs.push(statements.take());
        let sessions = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'trunkline'";
        eventually("one session dequeues and one listens", || async {
            sql.query_one(sessions, &[]).await.expect("visible").get::<_, i64>(0) == 2
        })
        .await;
        let ids = enqueued(&queue, count as i64).await;
        assert_eq!(got(tasks).await, ids.into_iter().collect(), "and all are awake at once");
    }
    let [one, hundred] = &costs[..] else { panic!("two were counted") };
    assert!((20..=62).contains(&one.len()), "in 620 seconds, at most one in ten: {one:?}");
    assert!(hundred.len() <= one.len() + 2, "a hundred cost what one costs: {hundred:?}");
}

/// Each transaction of a consumer needs a connection. The work on the first message lasts until the
/// test ends it.
#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_waiters_without_a_message_open_few_connections() {
    const CONSUMERS: usize = 50;
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let (waits, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (starts, mut started) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for _ in 0..CONSUMERS {
        let (waits, ends, starts) = (waits.clone(), ends.clone(), starts.clone());
        let mut consumer = queue.consumer(Wait::Notify).before_wait(move || {
            waits.fetch_add(1, Ordering::Relaxed);
        });
        tasks.spawn(async move {
            let worked = consumer.take_with(1, |_, messages| {
                let (ends, starts) = (ends.clone(), starts.clone());
                let work = async move {
                    starts.send(messages[0].payload).expect("the test receives");
                    ends.acquire().await.expect("open").forget();
                    Ok::<_, Failure>(messages[0].payload)
                };
                work.boxed()
            });
            worked.await.expect("worked")
        });
    }
    until_all_wait(&waits, CONSUMERS).await;
    until_asleep(&sql).await;
    queue.enqueue(-1).await.expect("enqueued");
    assert_eq!(timeout(SOON, started.recv()).await.expect("one is woken"), Some(-1));

    let sessions = "select pid from pg_sleep(0.01), pg_stat_activity
                    where datname = current_database() and application_name = 'trunkline'";
    let (mut seen, mut most, since) = (BTreeSet::new(), 0, Instant::now());
    while since.elapsed() < Duration::from_secs(2) {
        let rows = sql.query(sessions, &[]).await.expect("visible");
        most = most.max(rows.len());
        seen.extend(rows.iter().map(|row| row.get::<_, i32>(0)));
    }
    assert!(most < 12 && seen.len() < 12, "{most} sessions at the same time, {} in all", seen.len());

    // Many messages reach as many consumers, although the first work goes on.
    queue.enqueue_many(&(0..20).collect::<Vec<i64>>()).await.expect("enqueued");
    let mut got = BTreeSet::new();
    while got.len() < 20 {
        got.extend(timeout(SOON, started.recv()).await.expect("others are woken"));
    }
    assert_eq!(got, (0..20).collect());
    ends.add_permits(21);
    for _ in 0..21 {
        timeout(SOON, tasks.join_next()).await.expect("the work ends").expect("a task").expect("no panic");
    }
    tasks.shutdown().await;
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_statement_serves_all_waiters_in_order_of_arrival() {
    for wait in [Wait::Notify, Wait::Adaptive] {
        let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
        let (mut tasks, mut waits) = (Vec::new(), Vec::new());
        for nr in 1..=20 {
            let (one, waiting) = waiters(&queue, wait, 1, By::Lease);
            until_all_wait(&waiting, 1).await;
            tasks.extend(one);
            waits.push(waiting);
            assert_eq!(waits.len(), nr);
        }
        let all = enqueued(&queue, 20).await;
        let got: Vec<i64> = messages(tasks).await.iter().map(|message| message.id).collect();
        assert_eq!(got, all, "{wait:?}");
        let statements = "select count(distinct xmin::text) from trunkline.queue_q";
        assert_eq!(
            sql.query_one(statements, &[]).await.expect("read").get::<_, i64>(0),
            1,
            "{wait:?}: one for all of them"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_that_get_nothing_go_on_waiting() {
    for wait in [Wait::Notify, Wait::Adaptive, Wait::Poll(Duration::from_millis(5))] {
        let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
        let (tasks, waits) = waiters(&queue, wait, 9, By::Lease);
        if !matches!(wait, Wait::Poll(_)) {
            until_all_wait(&waits, 9).await;
        }
        let mut all = BTreeSet::new();
        for _ in 0..3 {
            all.extend(enqueued(&queue, 3).await);
        }
        assert_eq!(got(tasks).await, all, "{wait:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_and_leases_wait_beside_each_other() {
    let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let (mut tasks, waits) = waiters(&queue, Wait::Notify, 5, By::Lease);
    let (takes, others) = waiters(&queue, Wait::Notify, 5, By::Take);
    let (polls, _) = waiters(&queue, Wait::Poll(Duration::from_millis(5)), 5, By::Take);
    until_all_wait(&waits, 5).await;
    until_all_wait(&others, 5).await;
    tasks.extend(takes);
    tasks.extend(polls);
    let all = enqueued(&queue, 15).await;
    assert_eq!(got(tasks).await, all.into_iter().collect());
    assert_eq!(queue.stats().await.expect("counted").leased, 5);
}

/// A call may be dropped before its statement, while the statement runs, or afterwards. Messages
/// that were dequeued for the call are delivered again.
#[tokio::test(flavor = "multi_thread")]
async fn leaving_consumer_takes_no_messages_along() {
    for by in [By::Take, By::Lease] {
        let Place { queue, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
        for _ in 0..20 {
            let (mut tasks, waits) = waiters(&queue, Wait::Notify, 8, by);
            until_all_wait(&waits, 8).await;
            let leaving = tasks.split_off(4);
            let sent = queue.clone();
            let sending = tokio::spawn(async move { enqueued(&sent, 4).await });
            leaving.iter().for_each(JoinHandle::abort);
            let mut all = Vec::new();
            for left in leaving {
                all.extend(left.await.unwrap_or_default()); // a call may have received messages before it was aborted
            }
            let sent: BTreeSet<i64> = sending.await.expect("no panic").into_iter().collect();
            // Enqueues as many further messages as the aborted calls received, so that each
            // remaining consumer receives one.
            let more: BTreeSet<i64> = enqueued(&queue, all.len() as i64).await.into_iter().collect();
            all.extend(messages(tasks).await);
            let ids: BTreeSet<i64> = all.iter().map(|message| message.id).collect();
            assert_eq!((ids.len(), ids), (all.len(), sent.union(&more).copied().collect()));
            if matches!(by, By::Lease) {
                queue.ack(&all).await.expect("they are held");
            }
            drained(&queue).await;
        }
    }
}

/// A runtime that ends drops the watch. The consumers in another runtime then start a new watch.
#[test]
fn watch_that_ended_with_its_runtime_is_replaced() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (one, two) = (runtime(), runtime());
    let Place { queue, sql, db: _db, .. } = two.block_on(place::<i64>(Settings::new("int8")));
    let (gone, first_waits) = {
        let _in = one.enter();
        waiters(&queue, Wait::Notify, 1, By::Lease)
    };
    two.block_on(until_all_wait(&first_waits, 1));
    let (stays, waits) = {
        let _in = two.enter();
        waiters(&queue, Wait::Notify, 1, By::Lease)
    };
    two.block_on(until_all_wait(&waits, 1));
    one.shutdown_timeout(Duration::from_secs(5));
    drop(gone);
    // Waits until no statement is running: one that was sent earlier could lease the next message
    // for the dropped call, and that lease would have to expire.
    two.block_on(until_asleep(&sql));
    let ids = two.block_on(enqueued(&queue, 1));
    assert_eq!(two.block_on(got(stays)), ids.into_iter().collect());
}

/// The next message must arrive within the pause, which no test can guarantee. So the test repeats
/// until that happens.
#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgement_shares_the_transaction_of_the_next_lease() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute(
        "create table public.noted (verb text, transaction xid8 default pg_current_xact_id());
         create function public.note() returns trigger language plpgsql as
             $$ begin insert into public.noted (verb) values (tg_op); return null; end $$;
         create trigger note after update or delete on trunkline.queue_q for each row execute function public.note()",
    )
    .await
    .expect("noted");
    let mut consumer = queue.consumer(Wait::Notify);
    queue.enqueue(0).await.expect("enqueued");
    let mut held = timeout(SOON, consumer.lease(2)).await.expect("woken").expect("leased");
    let shared = "select exists (select from public.noted d join public.noted u using (transaction)
                                 where d.verb = 'DELETE' and u.verb = 'UPDATE')";
    for round in 1..=500 {
        let next = async { timeout(SOON, consumer.ack_and_lease(&held, 2)).await.expect("woken").expect("leased") };
        let ((next, lost), sent) = tokio::join!(next, queue.enqueue(round));
        sent.expect("enqueued");
        assert_eq!((next.len(), lost), (1, Vec::new()));
        held = next;
        if sql.query_one(shared, &[]).await.expect("read").get(0) {
            return;
        }
    }
    panic!("500 acknowledgements had transactions of their own");
}
