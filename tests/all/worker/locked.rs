//! Another session keeps a message of a worker locked. Other messages of that worker are not
//! affected.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tokio_postgres::Client;
use trunkline::{Attempt, Db, Draft, Failure, Message, Queue, Settings, Wait, Worker};
use trunkline_embedded::{DelayProxy, Hold};

use crate::fixture::{Place, Runs, SOON, cluster, connect, enqueued, eventually, one_waits, place, through, within};

#[tokio::test(flavor = "multi_thread")]
async fn locked_message_holds_up_no_other_renewal() {
    let Place { queue, sql, url, db: _db } = place::<i64>(Settings::new("int8").lease(Duration::from_secs(4))).await;
    let locked = queue.enqueue(1).await.expect("enqueued").id();
    let other = queue.enqueue(2).await.expect("enqueued").id();
    let worker = Worker::new(queue.clone(), |_: Message<i64>| pending::<Result<(), Failure>>());
    let runs = Runs::start(worker.concurrency(2).shutdown_after(Duration::ZERO));
    let both = "select count(*) = 2 from trunkline.queue_q where attempt = 1";
    eventually("both are leased", || async { sql.query_one(both, &[]).await.expect("read").get(0) }).await;
    let session = connect(&url).await;
    session.batch_execute("begin").await.expect("begun");
    session.execute("select from trunkline.queue_q where id = $1 for update", &[&locked]).await.expect("locked");
    // Checks that the lease is renewed. Otherwise it would end within four seconds.
    let renewed = "select attempt = 1 and due_at > trunkline.clock() + interval '2 seconds'
                     and due_at > $2::timestamptz + interval '6 seconds' from trunkline.queue_q where id = $1";
    let until: std::time::SystemTime =
        sql.query_one("select due_at from trunkline.queue_q where id = $1", &[&other]).await.expect("read").get(0);
    eventually("the other lease was renewed twice", || async {
        sql.query_one(renewed, &[&other, &until]).await.expect("still leased").get(0)
    })
    .await;
    session.batch_execute("rollback").await.expect("unlocked");
    runs.stop().await;
}

/// A message whose last lease expired waits for the end of the running handler. It is the only
/// prefetched message, and it is not given back before the shutdown.
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_settles_results_while_a_prefetched_message_is_locked() {
    let Place { queue, sql, url, db: _db } = place::<i64>(Settings::new("int8").lease(Duration::from_secs(600))).await;
    let locked = queue.enqueue(-1).await.expect("enqueued").id();
    assert_eq!(queue.lease(1).await.expect("leased").len(), 1);
    enqueued(&queue, 100).await; // quick messages, after which the worker prefetches
    let slow = queue.enqueue(1000).await.expect("enqueued").id();
    let (gate, (starts, mut started)) = (Arc::new(Semaphore::new(0)), mpsc::unbounded_channel());
    let opens = gate.clone();
    let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
        let (gate, starts) = (opens.clone(), starts.clone());
        async move {
            if message.payload == 1000 {
                starts.send(()).expect("the test goes on");
                gate.acquire().await.expect("open").forget();
            }
            Ok::<(), Infallible>(())
        }
    });
    let runs = Runs::start(worker.concurrency(1).wait(Wait::Poll(Duration::from_millis(20))));
    timeout(SOON, started.recv()).await.expect("in time").expect("it runs");
    let expires = "update trunkline.queue_q set due_at = trunkline.clock() where id = $1";
    sql.execute(expires, &[&locked]).await.expect("expired");
    let leased = "select attempt = 2 from trunkline.queue_q where id = $1";
    eventually("it is prefetched", || async { sql.query_one(leased, &[&locked]).await.expect("read").get(0) }).await;
    let session = connect(&url).await;
    session.batch_execute("begin").await.expect("begun");
    session.execute("select from trunkline.queue_q where id = $1 for update", &[&locked]).await.expect("locked");
    let stopping = tokio::spawn(runs.stop());
    eventually("its release waits", || one_waits(&sql)).await;
    gate.add_permits(1);
    let settled = "select not exists (select from trunkline.queue_q where id = $1)";
    within(Duration::from_secs(2), "the result is settled", || async {
        sql.query_one(settled, &[&slow]).await.expect("read").get(0)
    })
    .await;
    session.batch_execute("rollback").await.expect("unlocked");
    let summary = stopping.await.expect("no panic");
    assert_eq!((summary.done, summary.lost), (101, 0), "{summary:?}");
    assert!(summary.released >= 1, "{summary:?}");
}

/// A worker that handles one message and has prefetched others, whose release waits for a lock of
/// the test.
struct HeldUp {
    runs: Runs,
    /// The attempt of the handler, which returns once the gate opens.
    attempt: Attempt<i64>,
    gate: Arc<Semaphore>,
    /// The session with the lock.
    holder: Client,
}

/// Selects true if a release waits for the lock.
const WAITS: &str =
    "select exists (select from pg_stat_activity where wait_event = 'advisory' and datname = current_database())";

impl HeldUp {
    const MESSAGES: i64 = 1000;

    async fn place() -> Place<i64> {
        Self::with_keys(None).await
    }

    /// Creates a queue. If `per_key` is set, each message has a key of its own.
    async fn with_keys(per_key: Option<u32>) -> Place<i64> {
        let settings = Settings::new("int8").max_batch(1).max_attempts(1).lease(Duration::from_secs(600));
        let Some(per_key) = per_key else {
            let place = place(settings).await;
            enqueued(&place.queue, Self::MESSAGES).await;
            return place;
        };
        let place = place(settings.partitions(1).per_key(per_key)).await;
        let drafts: Vec<_> = (0..Self::MESSAGES).map(|nr| Draft::new(nr).key(format!("key {nr}"))).collect();
        place.queue.enqueue_many(&drafts).await.expect("enqueued");
        place
    }

    async fn start(place: &Place<i64>) -> Self {
        Self::start_with(place, place.queue.clone()).await
    }

    /// Starts the worker with this handle of the queue.
    async fn start_with(Place { queue, sql, url, .. }: &Place<i64>, handle: Queue<i64>) -> Self {
        let waits = "create function public.hold_up() returns trigger language plpgsql as
                         $$ begin perform pg_advisory_xact_lock_shared(7); return new; end $$;
                     create trigger hold_up before update on trunkline.queue_q for each row
                         when (new.error = '') execute function public.hold_up()";
        sql.batch_execute(waits).await.expect("created");
        let holder = connect(url).await;
        holder.batch_execute("select pg_advisory_lock(7)").await.expect("locked");
        let (gate, (starts, mut started)) = (Arc::new(Semaphore::new(0)), mpsc::unbounded_channel());
        let opens = gate.clone();
        // The first messages are quick, so that the worker prefetches some.
        let worker = Worker::with_attempt(handle, move |message: Message<i64>, attempt: Attempt<i64>| {
            let (gate, starts) = (opens.clone(), starts.clone());
            async move {
                if message.payload >= 300 {
                    let _ = starts.send(attempt); // the test awaits the first one only
                    gate.acquire().await.expect("open").forget();
                }
                Ok::<(), Infallible>(())
            }
        });
        let runs = Runs::start(worker.concurrency(1));
        let attempt = timeout(SOON, started.recv()).await.expect("in time").expect("it runs");
        eventually("others are prefetched", || async { queue.stats().await.expect("counted").leased > 1 }).await;
        Self { runs, attempt, gate, holder }
    }

    async fn unlock(holder: &Client) {
        holder.batch_execute("select pg_advisory_unlock(7)").await.expect("unlocked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_handler_is_notified_while_a_release_waits() {
    let place = HeldUp::place().await;
    let HeldUp { runs, attempt, gate, holder } = HeldUp::start(&place).await;
    let Place { queue, sql, .. } = &place;
    eventually("a release waits", || async { sql.query_one(WAITS, &[]).await.expect("read").get(0) }).await;
    queue.cancel(&[attempt.lease().id]).await.expect("cancelled");
    timeout(Duration::from_secs(5), attempt.lost().cancelled()).await.expect("its handler is notified");
    HeldUp::unlock(&holder).await;
    gate.add_permits(HeldUp::MESSAGES as usize);
    assert_eq!(runs.stop().await.lost, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn release_that_waits_holds_up_no_later_release() {
    let place = HeldUp::place().await;
    let HeldUp { runs, attempt: _attempt, gate, holder } = HeldUp::start(&place).await;
    let Place { queue, sql, .. } = &place;
    eventually("a release waits", || async { sql.query_one(WAITS, &[]).await.expect("read").get(0) }).await;
    let later = enqueued(queue, 3 * HeldUp::MESSAGES).await;
    // Lets releases of these messages pass. The first one continues to wait.
    let passes = format!(
        "create or replace function public.hold_up() returns trigger language plpgsql as
             $$ begin if new.id < {} then perform pg_advisory_xact_lock_shared(7); end if; return new; end $$",
        later[0]
    );
    sql.batch_execute(&passes).await.expect("replaced");
    // The worker handles all it can reach of the first messages, and then quickly some later ones.
    gate.add_permits(HeldUp::MESSAGES as usize);
    let released = "select exists (select from trunkline.queue_q where id >= $1 and released > 0)";
    eventually("later messages are released", || async {
        sql.query_one(released, &[&later[0]]).await.expect("read").get(0)
    })
    .await;
    let earlier = "select exists (select from trunkline.queue_q where id < $1 and released > 0)";
    assert!(!sql.query_one(earlier, &[&later[0]]).await.expect("read").get::<_, bool>(0), "the first release waits");
    eventually("the first release waits", || async { sql.query_one(WAITS, &[]).await.expect("read").get(0) }).await;
    HeldUp::unlock(&holder).await;
    gate.add_permits(4 * HeldUp::MESSAGES as usize);
    assert_eq!(runs.stop().await.lost, 0);
}

/// A heartbeat gives the messages back, or a shutdown does.
#[tokio::test(flavor = "multi_thread")]
async fn release_is_repeated_after_a_lost_connection() {
    for per_key in [None, Some(1), Some(4)] {
        for stops_first in [true, false] {
            release_is_repeated(per_key, stops_first).await;
        }
    }
}

async fn release_is_repeated(per_key: Option<u32>, stops_first: bool) {
    let place = HeldUp::with_keys(per_key).await;
    let HeldUp { runs, attempt: _attempt, gate, holder } = HeldUp::start(&place).await;
    let Place { queue, sql, .. } = &place;
    if !stops_first {
        eventually("a release waits", || async { sql.query_one(WAITS, &[]).await.expect("read").get(0) }).await;
    }
    let stopping = tokio::spawn(runs.stop());
    // After half a second, the release waits on a connection of its own.
    let cut = "select count(*) filter (where pg_terminate_backend(pid, 10000)) > 0 from pg_stat_activity
               where wait_event = 'advisory' and datname = current_database()
                 and clock_timestamp() - query_start > '700 ms'";
    eventually("its connection is cut", || async { sql.query_one(cut, &[]).await.expect("cut").get(0) }).await;
    HeldUp::unlock(&holder).await;
    gate.add_permits(1);
    let summary = stopping.await.expect("no panic");
    assert_eq!((summary.released, summary.lost), (released(sql).await, 0), "{summary:?}");
    let due = "select count(*) from trunkline.queue_q where due_at <= clock_timestamp() and attempt = released";
    let due: i64 = sql.query_one(due, &[]).await.expect("counted").get(0);
    assert_eq!(due as u64 + summary.done, HeldUp::MESSAGES as u64, "all are due at once, and no attempt is counted");
    if per_key.is_none() {
        let due = queue.lease(HeldUp::MESSAGES as usize).await.expect("leased");
        assert_eq!(due.len() as u64 + summary.done, HeldUp::MESSAGES as u64, "all are due at once");
        assert!(due.iter().all(|message| message.attempts() == 1), "no attempt is counted");
    }
}

/// Returns the number of released messages.
async fn released(sql: &Client) -> u64 {
    let released = "select sum(released) from trunkline.queue_q";
    let released: i64 = sql.query_one(released, &[]).await.expect("read").get(0);
    assert!(released > 0, "some were prefetched");
    released as u64
}

/// The server has released the messages before the connection is lost.
#[tokio::test(flavor = "multi_thread")]
async fn release_whose_reply_is_lost_counts() {
    for per_key in [None, Some(1), Some(4)] {
        let place = HeldUp::with_keys(per_key).await;
        let proxy = DelayProxy::start("127.0.0.1:0", cluster(), Duration::ZERO).expect("started");
        let way = format!("host=127.0.0.1 port={} sslmode=disable", proxy.addr().port());
        let far = Db::connect(&through(&place.url, &way)).await.expect("connected");
        let handle = far.queue("q").await.expect("opened");
        let HeldUp { runs, attempt: _attempt, gate, holder } = HeldUp::start_with(&place, handle).await;
        let sql = &place.sql;
        eventually("a release waits", || async { sql.query_one(WAITS, &[]).await.expect("read").get(0) }).await;
        proxy.hold(Hold::Answers);
        HeldUp::unlock(&holder).await;
        let done = "select exists (select from trunkline.queue_q where released > 0)";
        eventually("they are released", || async { sql.query_one(done, &[]).await.expect("read").get(0) }).await;
        proxy.cut_all(); // loses the reply
        proxy.hold(Hold::Nothing);
        let stopping = tokio::spawn(runs.stop());
        gate.add_permits(1);
        let summary = stopping.await.expect("no panic");
        assert_eq!((summary.released, summary.lost), (released(sql).await, 0), "{per_key:?}: {summary:?}");
    }
}
