//! A handle outlives its runtime. Whatever the first runtime was doing when it ended, the next
//! runtime continues.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
    time::timeout,
};
use trunkline::{Consumer, Db, Queue, Result, Settings, Wait, postgres::Statement};

use crate::fixture::{SOON, connect, database, eventually};

static NUMBER: Statement<(i32,), (i32,)> = Statement::new("select $1::int4");
static SLEEP: Statement<(), ()> = Statement::new("select pg_sleep(60)");

/// A time limit below the poll interval of a listening consumer, so only a notification is fast
/// enough.
const RUNG: Duration = Duration::from_secs(10);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

fn in_time<T>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    runtime.block_on(async { timeout(SOON, work).await.expect("no call waits without an end") })
}

async fn opened(url: &str) -> (Db, Queue<i64>) {
    let db = Db::connect(url).await.expect("connected");
    let queue = db.queue("q").await.expect("opened");
    (db, queue)
}

/// Creates a database with a queue. Returns its address and handles.
async fn queue() -> (String, Db, Queue<i64>) {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue = db.queue("q").await.expect("opened");
    (url, db, queue)
}

/// Waits until `count` connections listen to a queue's channel.
async fn listening(url: &str, count: i64) {
    let sql = connect(url).await;
    let text = "select count(*) from pg_stat_activity where datname = current_database() and query like 'listen \"%'";
    eventually("they listen", || async { sql.query_one(text, &[]).await.expect("seen").get::<_, i64>(0) == count })
        .await;
}

/// Waits for a message in a task of this runtime. Returns the consumer with the payload.
async fn waiting(mut consumer: Consumer<i64>) -> (Consumer<i64>, i64) {
    let messages = consumer.take(1).await.expect("taken");
    (consumer, messages[0].payload)
}

#[test]
fn other_processes_are_notified_though_the_notifying_runtime_ended() {
    let (first, elsewhere) = (runtime(), runtime());
    let (url, _db, queue) = in_time(&first, queue());
    let (_other, others) = in_time(&elsewhere, opened(&url));
    let waiter = elsewhere.spawn(waiting(others.consumer(Wait::Notify)));
    in_time(&elsewhere, listening(&url, 1));
    in_time(&first, queue.enqueue_many(&[0])).expect("enqueued");
    let mut consumer = in_time(&elsewhere, waiter).expect("no panic").0;
    // Ends the runtime while its notifying task pauses for a few milliseconds. The notification of
    // the next message makes up for the lost one.
    let mut last = first;
    for round in 1..6 {
        let next = runtime();
        let waiter = elsewhere.spawn(async move {
            let mut got = Vec::new();
            while got.len() < 2 {
                got.extend(consumer.take(2).await.expect("taken").iter().map(|message| message.payload));
            }
            (consumer, got)
        });
        in_time(&last, queue.enqueue_many(&[10 * round])).expect("enqueued");
        drop(last);
        in_time(&next, queue.enqueue_many(&[10 * round + 1])).expect("enqueued");
        let rung = async { timeout(RUNG, waiter).await.expect("rung").expect("no panic") };
        let (back, got) = in_time(&elsewhere, rung);
        assert_eq!(got, [10 * round, 10 * round + 1]);
        consumer = back;
        last = next;
    }
}

#[test]
fn consumer_is_notified_though_the_listening_runtime_ended() {
    let (first, second, elsewhere) = (runtime(), runtime(), runtime());
    let (url, _db, queue) = in_time(&first, queue());
    let (_other, others) = in_time(&elsewhere, opened(&url));
    let waiter = first.spawn(waiting(queue.consumer(Wait::Notify)));
    in_time(&first, listening(&url, 1));
    in_time(&elsewhere, others.enqueue(1)).expect("enqueued");
    let (consumer, payload) = in_time(&first, waiter).expect("no panic");
    assert_eq!(payload, 1);
    drop(first);
    // Continues with the same consumer, and with another one of the same handle. Both receive
    // notifications, so neither depends on polling.
    let waiters = [second.spawn(waiting(consumer)), second.spawn(waiting(queue.consumer(Wait::Notify)))];
    in_time(&second, listening(&url, 1));
    in_time(&elsewhere, others.enqueue_many(&[2])).expect("enqueued");
    in_time(&elsewhere, others.enqueue_many(&[3])).expect("enqueued");
    for waiter in waiters {
        in_time(&second, async { timeout(RUNG, waiter).await.expect("rung").expect("no panic") });
    }
}

/// Consumers of one queue share statements, and the runtime of one of the consumers sends each
/// statement. If that runtime ends, the other consumers repeat the statement.
#[test]
fn consumers_ask_again_though_their_statements_runtime_ended() {
    let (sender, second) = (runtime(), runtime());
    let (url, _db, queue) = in_time(&second, queue());
    let (holder, next_holder, sql) =
        in_time(&second, async { (connect(&url).await, connect(&url).await, connect(&url).await) });
    let under_way = "select count(*) from pg_stat_activity where query like '%do_lease_q%' and state = 'active'
                     and pid <> pg_backend_pid() and datname = current_database() and coalesce(wait_event_type, '') like $1";
    let statements = |wait| {
        let sql = &sql;
        async move { sql.query_one(under_way, &[&wait]).await.expect("visible").get::<_, i64>(0) }
    };
    let lock = "begin; lock table trunkline.queue_q in access exclusive mode";
    in_time(&second, holder.batch_execute(lock)).expect("locked");
    let alone = lease(&sender, &queue, &Arc::default());
    in_time(&second, eventually("its statement waits", || async { statements("Lock").await == 1 }));
    // Requests another lock, which waits behind that statement. When it is granted, it blocks the
    // next statement, which serves the two other consumers.
    let next_lock = second.spawn(async move { next_holder.batch_execute(lock).await.map(|()| next_holder) });
    let waiting = "select exists (select from pg_locks where mode = 'AccessExclusiveLock' and not granted
                                  and relation = 'trunkline.queue_q'::regclass
                                  and database = (select oid from pg_database where datname = current_database()))";
    in_time(
        &second,
        eventually("the lock waits", || async { sql.query_one(waiting, &[]).await.expect("visible").get(0) }),
    );
    let waits: [Arc<AtomicBool>; 2] = Default::default();
    let shared = waits.each_ref().map(|waits| lease(&second, &queue, waits));
    in_time(&second, holder.batch_execute("commit")).expect("let go");
    let next_holder = in_time(&second, next_lock).expect("no panic").expect("locked");
    in_time(&second, eventually("their statement waits", || async { statements("Lock").await == 1 }));
    drop((sender, alone));
    in_time(&second, next_holder.batch_execute("commit")).expect("let go");
    in_time(
        &second,
        eventually("they wait", || async {
            waits.iter().all(|waits| waits.load(Ordering::Relaxed)) && statements("%").await == 0
        }),
    );
    in_time(&second, queue.enqueue_many(&[1, 2])).expect("enqueued");
    let mut payloads = shared.map(|lease| in_time(&second, lease).expect("no panic").expect("not their business"));
    payloads.sort_unstable();
    assert_eq!(payloads, [1, 2]);
}

/// Leases a message in a task of this runtime, and sets a flag if the call has to wait.
fn lease(runtime: &Runtime, queue: &Queue<i64>, waits: &Arc<AtomicBool>) -> JoinHandle<Result<i64>> {
    let waits = waits.clone();
    let before_wait = move || waits.store(true, Ordering::Relaxed);
    let mut consumer = queue.consumer(Wait::Notify).before_wait(before_wait);
    runtime.spawn(async move { consumer.lease(1).await.map(|messages| messages[0].payload) })
}

#[test]
fn statements_go_on_though_their_connections_runtime_ended() {
    let (first, second) = (runtime(), runtime());
    let (_url, db, queue) = in_time(&first, queue());
    in_time(&first, async {
        let transaction = db.begin().await.expect("begun");
        transaction.run(&NUMBER, (1,)).await.expect("answered");
        transaction.commit().await.expect("committed");
    });
    for _ in 0..4 {
        let db = db.clone();
        first.spawn(async move { db.run(&SLEEP, ()).await });
    }
    drop(first);
    in_time(&second, async {
        assert_eq!(db.run(&NUMBER, (7,)).await.expect("answered"), (7,));
        let transaction = db.begin().await.expect("begun");
        assert_eq!(transaction.run(&NUMBER, (8,)).await.expect("answered"), (8,));
        transaction.commit().await.expect("committed");
        assert_eq!(queue.enqueue_many(&[1, 2]).await.expect("enqueued").len(), 2);
        assert_eq!(queue.take(5).await.expect("taken").len(), 2);
    });
}

#[test]
fn a_connection_whose_driver_never_ran_is_seen_as_broken() {
    let url = in_time(&runtime(), database());
    // Without prepared statements, connecting needs no setup, and so never waits for the driver.
    // The runtime then ends before the driver has run.
    let first = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let db = first.block_on(Db::connect(&format!("{url} prepared_statements=off"))).expect("connected");
    drop(first);
    in_time(&runtime(), async {
        let transaction = db.begin().await.expect("begun");
        assert_eq!(transaction.run(&NUMBER, (9,)).await.expect("answered"), (9,));
        transaction.commit().await.expect("committed");
    });
}
