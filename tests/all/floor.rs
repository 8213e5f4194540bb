//! Tests the floor: a late commit is found, and an old snapshot slows down no caller.

use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_postgres::Client;
use trunkline::{Db, Json, Message, Queue, Settings, Wait};

use crate::fixture::{Place, SOON, connect, database, eventually, one_waits, place, superuser, within};

/// The payload of background traffic. All relevant messages have non-negative payloads.
const TRAFFIC: i64 = -1;

/// Traffic in the background until the test ends, and the messages that its consumer receives.
struct Flow {
    received: mpsc::UnboundedReceiver<(i64, SystemTime)>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Flow {
    fn start(queue: &Queue<i64>, wait: Wait) -> Self {
        let (sender, received) = mpsc::unbounded_channel();
        let (producer, mut consumer) = (queue.clone(), queue.consumer(wait));
        let produce = tokio::spawn(async move {
            loop {
                producer.enqueue(TRAFFIC).await.expect("enqueued");
            }
        });
        let consume = tokio::spawn(async move {
            loop {
                let messages = consumer.lease(10).await.expect("leased");
                consumer.queue().ack(&messages).await.expect("acknowledged");
                for Message { payload, enqueued_at, .. } in messages {
                    let _ = sender.send((payload, enqueued_at)); // fails only when the test is over
                }
            }
        });
        Self { received, tasks: [produce, consume] }
    }

    /// Lets the traffic run for `time` by the server's clock, which is enough for several probes.
    /// No other message may arrive during that time.
    async fn pass(&mut self, time: Duration) {
        let (_, began) = self.received.recv().await.expect("traffic flows");
        loop {
            let (payload, at) = self.received.recv().await.expect("traffic flows");
            assert_eq!(payload, TRAFFIC, "nothing that is not committed");
            if at.duration_since(began).is_ok_and(|passed| passed > time) {
                return;
            }
        }
    }

    /// Waits for payloads that have just become available. They must arrive before any traffic that
    /// is enqueued later than `within` from now, by the server's clock.
    async fn arrive(&mut self, what: &str, sql: &Client, within: Duration, mut wanted: Vec<i64>) {
        let now: SystemTime = sql.query_one("select clock_timestamp()", &[]).await.expect("told").get(0);
        while !wanted.is_empty() {
            let next = timeout(SOON, self.received.recv()).await;
            let (payload, at) = next.unwrap_or_else(|_| panic!("{what}: {wanted:?} are lost")).expect("traffic flows");
            wanted.retain(|wanted| *wanted != payload);
            assert!(wanted.is_empty() || at <= now + within, "{what}: {wanted:?} are lost, or late");
        }
    }
}

const TWO_SECONDS: Duration = Duration::from_secs(2);
/// The maximum time for which a lowered due time may hide messages under traffic, as the README
/// promises.
const PROMISED: Duration = Duration::from_secs(10);
/// The time for which a late transaction stays open: several times the interval between probes.
const SEVERAL_LOOKS: Duration = Duration::from_millis(700);

/// The cases: a name, a statement that begins a transaction, and a statement that ends it late. In
/// each case, message 7 becomes visible late, and it is the only message left.
const LATE: [(&str, &str, &str); 7] = [
    ("late commit", "begin; select trunkline.enqueue('q', 7::bigint)", "commit"),
    (
        "savepoint rolled back before",
        "begin; savepoint s; select trunkline.enqueue('q', 8::bigint); rollback to s;
         select trunkline.enqueue('q', 7::bigint)",
        "commit",
    ),
    (
        "savepoint rolled back after",
        "begin; select trunkline.enqueue('q', 7::bigint); savepoint s; select trunkline.enqueue('q', 8::bigint)",
        "rollback to s; commit",
    ),
    (
        "prepared transaction",
        // The row is inserted directly, because PostgreSQL cannot prepare a transaction that has
        // sent a notification.
        "begin; insert into trunkline.queue_q (size, payload) values (1, '{7}'); prepare transaction 'PREPARED'",
        "commit prepared 'PREPARED'",
    ),
    (
        "replayed dead letter",
        "insert into trunkline.dead_q (id, enqueued_at, attempt, error, payload) values (nextval('trunkline.id_q'), now(), 1, '', 7);
         begin; select trunkline.replay_all('q')",
        "commit",
    ),
    (
        "delayed message brought forward",
        "insert into trunkline.queue_q (due_at, size, payload) values ('2200-01-01', 1, '{7}');
         begin; update trunkline.queue_q set due_at = trunkline.clock() where due_at = '2200-01-01'",
        "commit",
    ),
    (
        "row taken and rolled back",
        "begin; insert into trunkline.queue_q (size, payload) values (1, '{7}'); savepoint s;
         select trunkline.take('q', 1)",
        "rollback to s; commit",
    ),
];

async fn late(nr: usize, wait: Wait, url: String) {
    let (what, begin, end) = LATE[nr];
    let prepared = format!("late {url} {nr}");
    let sql = connect(&url).await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    sql.batch_execute(&begin.replace("PREPARED", &prepared)).await.expect(what);
    let mut flow = Flow::start(&queue, wait);
    flow.pass(SEVERAL_LOOKS).await;
    sql.batch_execute(&end.replace("PREPARED", &prepared)).await.expect(what);
    flow.arrive(what, &sql, TWO_SECONDS, vec![7]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_transaction_that_commits_late_arrive() {
    for nr in 0..LATE.len() {
        late(nr, [Wait::Adaptive, Wait::Notify][nr % 2], database().await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_arrive_where_the_databases_default_is_repeatable_read() {
    let url = database().await;
    let name = "select format('alter database %I set default_transaction_isolation to ''repeatable read''', current_database())";
    let sql = superuser(&url).await;
    let alter: String = sql.query_one(name, &[]).await.expect("named").get(0);
    sql.batch_execute(&alter).await.expect("altered");
    late(0, Wait::Notify, url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_locked_by_another_session_arrives_once_unlocked() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(7).await.expect("enqueued");
    for (take, payload) in [("select from trunkline.queue_q for update", 7), ("delete from trunkline.queue_q", 9)] {
        sql.batch_execute(&format!("begin; {take}")).await.expect("locked");
        let mut flow = Flow::start(&queue, Wait::Adaptive);
        flow.pass(SEVERAL_LOOKS).await;
        sql.batch_execute("rollback").await.expect("rolled back");
        flow.arrive(take, &sql, TWO_SECONDS, vec![payload]).await;
        drop(flow);
        queue.purge().await.expect("purged"); // deletes traffic that no consumer has received yet
        queue.enqueue(9).await.expect("enqueued");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_below_the_floor_is_found_by_a_sweep() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let mut flow = Flow::start(&queue, Wait::Adaptive);
    flow.pass(SEVERAL_LOOKS).await;
    let stepped_back = "insert into trunkline.queue_q (due_at, size, payload)
                        values (now() - interval '1 hour', 2, '{7,8}')";
    sql.batch_execute(stepped_back).await.expect("inserted");
    flow.arrive("a clock that stepped back", &sql, PROMISED, vec![7, 8]).await;
}

/// The tolerated extra cost of a dequeue while a floor lags slightly.
const FEW_PAGES: i64 = 4;

/// The parts of `explain (format json)` that the tests read.
#[derive(Debug, Deserialize)]
struct Explained {
    #[serde(rename = "Plan")]
    plan: Pages,
}

#[derive(Debug, Deserialize)]
struct Pages {
    #[serde(rename = "Actual Rows")]
    rows: f64,
    #[serde(rename = "Shared Hit Blocks")]
    hit: i64,
    #[serde(rename = "Shared Read Blocks")]
    read: i64,
}

/// Counts the pages that one call of the statement touches, including those inside the function.
async fn cost(sql: &Client, floor: &str) -> i64 {
    let explain = format!("explain (analyze, buffers, format json) select * from trunkline.do_take_q(1, {floor})");
    let Json(explained) = sql.query_one(&explain, &[]).await.expect("explained").get::<_, Json<[Explained; 1]>>(0);
    let [Explained { plan: Pages { rows, hit, read } }] = explained;
    assert!((rows - 1.0).abs() < 0.1, "one message is taken, not {rows}");
    hit + read
}

/// Returns the minimum cost of several calls, because the first calls make plans and load the
/// catalog.
async fn least_cost(sql: &Client, floor: &str) -> i64 {
    let mut least = i64::MAX;
    for _ in 0..5 {
        least = least.min(cost(sql, floor).await);
    }
    least
}

/// Returns the pages of the table and its indexes that one dequeue of the library touches.
/// Terminates the backends, because backends report their statistics when they end.
async fn library_cost(db: &Db, queue: &Queue<i64>, url: &str, sql: &Client) -> f64 {
    library_cost_of(db, queue, url, sql, "0").await
}

/// Returns the same as [`library_cost`], for messages with a priority.
pub async fn library_cost_of(db: &Db, queue: &Queue<i64>, url: &str, sql: &Client, priority: &str) -> f64 {
    const CALLS: i32 = 200;
    let pages = || async {
        let ended = "select count(pg_terminate_backend(pid)) = 0 from pg_stat_activity
                     where application_name in ('trunkline', 'filler') and datname = current_database()";
        eventually("the backends end", || async { sql.query_one(ended, &[]).await.expect("ended").get(0) }).await;
        for lane in ["one", "the other"] {
            eventually(lane, || async { db.list_queues().await.is_ok() }).await;
        }
        let pages = "select heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read
                     from pg_statio_user_tables where relname = 'queue_q'";
        sql.query_one(pages, &[]).await.expect("counted").get::<_, i64>(0)
    };
    let fill =
        format!("select trunkline.enqueue_many('q', array_fill(1::bigint, array[$1::int]), priority => {priority})");
    connect(&format!("{url} application_name=filler")).await.execute(&fill, &[&CALLS]).await.expect("enqueued");
    let before = pages().await;
    for _ in 0..CALLS {
        assert_eq!(queue.take(1).await.expect("taken").len(), 1);
    }
    (pages().await - before) as f64 / f64::from(CALLS)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_snapshot_does_not_make_a_dequeue_dearer() {
    let Place { url, queue, sql, db } = place::<i64>(Settings::new("int8").max_batch(1)).await;
    let few = "select trunkline.enqueue_many('q', array_fill(1::bigint, array[20]))";
    sql.execute(few, &[]).await.expect("enqueued");
    let fresh = least_cost(&sql, "trunkline.floor('q')").await;
    let fresh_library = library_cost(&db, &queue, &url, &sql).await;

    let old = connect(&url).await;
    old.batch_execute("begin isolation level repeatable read; select count(*) from trunkline.queue_q")
        .await
        .expect("held");
    let mut through = queue.take(1000).await.expect("taken").len();
    while through < 100_000 {
        let many = "select trunkline.enqueue_many('q', array_fill(1::bigint, array[5000]))";
        sql.execute(many, &[]).await.expect("enqueued");
        through += queue.take(5000).await.expect("taken").len();
    }

    sql.execute(few, &[]).await.expect("enqueued");
    let without = least_cost(&sql, "'-infinity'").await;
    assert!(without > 30 * fresh, "a scan from the far left walks the dead rows: {without} against {fresh} pages");
    // Waits for the floors, which catch up within a few probes, or later if another test keeps a
    // transaction open.
    within(Duration::from_secs(120), "a dequeue costs what it cost", || async {
        sql.execute(few, &[]).await.expect("enqueued");
        least_cost(&sql, "trunkline.floor('q')").await <= fresh + FEW_PAGES
    })
    .await;
    queue.purge().await.expect("purged");
    // Includes a part of the cost of all dead rows in the limit. The library updates its floor only
    // after these 200 calls, so each call reads the rows that the earlier calls have deleted, about
    // one page per hundred rows.
    let bar = fresh_library + without as f64 / 20.0;
    let (began, mut costs) = (Instant::now(), Vec::new());
    while !costs.last().is_some_and(|cost| *cost <= bar) {
        assert!(began.elapsed() < Duration::from_secs(120), "the library's: {fresh_library} fresh, then {costs:?}");
        costs.push(library_cost(&db, &queue, &url, &sql).await);
    }
}

/// Inserts a row below the floor, as a restore or a clock that was ahead may do.
async fn put_below(sql: &Client) {
    sql.batch_execute(
        "insert into trunkline.queue_q (size, payload, due_at) values (1, '{7}', now() - interval '1 hour');
         update trunkline.floor set reached = clock_timestamp()",
    )
    .await
    .expect("put below the floor");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_sessions_and_processes_find_messages_below_a_kept_floor() {
    let Place { url, sql, .. } = place::<i64>(Settings::new("int8")).await;
    put_below(&sql).await;
    let taken = connect(&url).await.query("select payload from trunkline.take('q')", &[]).await.expect("taken");
    assert_eq!(taken.len(), 1, "by a session that is new");
    put_below(&sql).await;
    let db = Db::connect(&url).await.expect("connected");
    let taken = db.queue::<i64>("q").await.expect("opened").take(1).await.expect("taken");
    assert_eq!(taken.len(), 1, "by a process that is new");

    // Adds enough dead rows that each sweep reads only a part of them. Together the sweeps read
    // everything.
    let old = connect(&url).await;
    old.batch_execute("begin isolation level repeatable read; select 1 from trunkline.queue_q").await.expect("held");
    sql.batch_execute(
        "insert into trunkline.queue_q (size, payload) select 1, '{1}' from generate_series(1, 40000);
         delete from trunkline.queue_q",
    )
    .await
    .expect("dead");
    put_below(&sql).await;
    eventually("one of many finds it", || async {
        !connect(&url).await.query("select payload from trunkline.take('q')", &[]).await.expect("taken").is_empty()
    })
    .await;
}

/// A session that stores a floor locks the floor's row before it reads the queue's table. A drop of
/// the queue must lock them in the same order.
#[tokio::test]
async fn queue_is_dropped_after_a_floor_is_stored() {
    let Place { url, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let dropping = connect(&url).await;
    sql.batch_execute("begin; select from trunkline.floor where queue = 'q' for update").await.expect("locked");
    let dropped = tokio::spawn(async move { dropping.batch_execute("select trunkline.drop_queue('q')").await });
    let sees = connect(&url).await;
    eventually("the drop waits", || one_waits(&sees)).await;
    sql.batch_execute("select count(*) from trunkline.queue_q; commit").await.expect("read without a deadlock");
    timeout(SOON, dropped).await.expect("soon").expect("no panic").expect("dropped");
}
