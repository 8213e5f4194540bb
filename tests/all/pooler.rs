//! Behind a pooler that assigns a different server connection to each transaction, everything
//! except notifications works.

mod pgbouncer;

use std::collections::HashSet;

use futures_util::future::join_all;
use postgres_types::{FromSql, ToSql};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};
use tokio_postgres::error::SqlState;
use trunkline::{
    Db, Settings, Wait,
    postgres::{Insert, Statement},
};

use self::pgbouncer::{Pgbouncer, SERVERS};
use crate::fixture::{SOON, Said, connect, database, eventually};

type Nothing = Statement<(), ()>;

static INSERT: Statement<(i32, &str), u64> = Statement::new("insert into t values ($1, $2)");
static PID: Statement<(), (i32,)> = Statement::new("select pg_backend_pid()");
static MINE: Statement<(i32,), (i64,)> = Statement::new("select count(*) from t where n / 10000 = $1");
static SERIES: Statement<(i32,), Vec<(i32,)>> = Statement::new("select generate_series(1, $1)");

#[derive(Debug, Clone, PartialEq, ToSql, FromSql)]
#[postgres(name = "mood", rename_all = "snake_case")]
enum Mood {
    Glad,
    VerySad,
}

/// Runs statements, transactions, rows, streams and a user's type, repeatedly.
async fn use_everything(db: &Db, caller: i32) -> HashSet<i32> {
    static ROWS: Insert<(i32, &str)> = Insert::into("t", &["n", "word"]);
    static ECHO: Statement<(Vec<Mood>,), (Vec<Mood>,)> = Statement::new("select $1::mood[]");
    let mut servers = HashSet::new();
    for turn in 0..10 {
        let first = caller * 10_000 + turn * 1000;
        servers.insert(db.run(&PID, ()).await.expect("told").0);
        let rows = (first..first + 10).map(|n| (n, "many"));
        assert_eq!(db.run_many(&INSERT, rows.clone()).await.expect("inserted"), [1; 10]);
        let twice = db.run_many(&INSERT, rows.clone()).await.expect_err("they are there");
        assert_eq!((twice.failed_statement(), twice.sqlstate()), (Some(0), Some(&SqlState::UNIQUE_VIOLATION)));
        let moods = vec![Mood::VerySad, Mood::Glad];
        assert_eq!(db.run(&ECHO, (moods.clone(),)).await.expect("echoed"), (moods,));

        let transaction = db.begin().await.expect("begun");
        let (server,) = transaction.run(&PID, ()).await.expect("told");
        for n in first + 10..first + 20 {
            transaction.send(&INSERT, (n, "sent")).await.expect("sent");
        }
        let inserted = transaction.insert_many(&ROWS, (first + 20..first + 30).map(|n| (n, "rows"))).await;
        let mut stream = transaction.stream(&SERIES, (10,), 3).await.expect("sent");
        let mut sum = 0;
        while let Some((n,)) = stream.next().await.expect("read") {
            sum += n;
        }
        assert_eq!((inserted.expect("sent").await.expect("inserted"), sum), (10, 55));
        assert_eq!(transaction.run(&PID, ()).await.expect("told"), (server,), "a transaction has one server");
        transaction.commit().await.expect("committed");

        let transaction = db.begin().await.expect("begun");
        transaction.send(&INSERT, (first + 50, "rolled back")).await.expect("sent");
        transaction.run(&INSERT, (first, "again")).await.expect_err("it is there");
        assert!(transaction.commit().await.is_err());
        drop(db.begin().await.expect("begun").send(&INSERT, (first + 51, "dropped")).await.expect("sent"));

        let rows = (first + 30..first + 40).map(|n| (n, "rows"));
        assert_eq!(db.insert_many(&ROWS, rows).await.expect("inserted"), 10);
        let copy = Statement::<(), u64>::new("copy t from stdin");
        assert_eq!(db.copy_in(&copy, format!("{}\tcopy\n", first + 40).as_bytes()).await.expect("copied"), 1);
    }
    assert_eq!(db.run(&MINE, (caller,)).await.expect("counted"), (410,), "of caller {caller}");
    servers
}

async fn callers_use_everything(url: &str) {
    let db = Db::connect(url).await.expect("connected");
    db.run(&Nothing::new("create table t (n int unique, word text)"), ()).await.expect("created");
    db.run(&Nothing::new("create type mood as enum ('glad', 'very_sad')"), ()).await.expect("created");
    let servers = join_all((0..8).map(|caller| {
        let db = db.clone();
        async move { tokio::spawn(async move { use_everything(&db, caller).await }).await.expect("no panic") }
    }));
    let servers = timeout(8 * SOON, servers).await.expect("in time");
    let mut servers: HashSet<i32> = servers.into_iter().flatten().collect();
    // Occupies one server connection by a transaction, so that the next statements use the other
    // one. The pooler may have used only one so far.
    let held = db.begin().await.expect("begun");
    let (holder,): (i32,) = held.run(&PID, ()).await.expect("told");
    let (other,): (i32,) = db.run(&PID, ()).await.expect("told");
    assert_eq!(db.run(&MINE, (0,)).await.expect("counted"), (410,));
    assert_ne!(holder, other);
    held.commit().await.expect("committed");
    servers.extend([holder, other]);
    assert_eq!(servers.len(), SERVERS, "statements went to all servers");
}

/// Enqueues individually and in bulk, takes, leases, acknowledges, and runs exactly-once work, with
/// all three ways to wait at the same time.
async fn consumers_use_everything(url: &str) {
    const COUNT: i64 = 300;
    let db = Db::connect(url).await.expect("connected");
    db.run(&Nothing::new("create table public.effects (payload int8)"), ()).await.expect("created");
    let mut running = JoinSet::new();
    for (nr, wait) in [Wait::poll(), Wait::Notify, Wait::Adaptive].into_iter().enumerate() {
        for once in [false, true] {
            // Lets only one consumer work exactly once, because it holds one server connection
            // while it needs another. If all consumers did so, they would block each other forever.
            let once = once && nr == 1;
            let name = format!("q{nr}{once}");
            let same = db.create_queue(&name, &Settings::new("int8").max_batch(8)).await;
            same.expect("created, or there");
            let queue = db.queue::<i64>(&name).await.expect("opened");
            let produced = queue.clone();
            running.spawn(async move {
                let ids = join_all((0..COUNT / 2).map(|n| produced.enqueue(n))).await;
                assert!(ids.iter().all(Result::is_ok), "{ids:?}");
                let many: Vec<i64> = (COUNT / 2..COUNT).collect();
                produced.enqueue_many(&many).await.expect("enqueued");
            });
            running.spawn(async move {
                let mut consumer = queue.consumer(wait);
                let mut seen = Vec::new();
                while seen.len() < COUNT as usize {
                    match seen.len() % 3 {
                        _ if once => {
                            let work = consumer.take_with(7, |transaction, messages| {
                                Box::pin(async move {
                                    static EFFECT: Statement<(i64,), u64> =
                                        Statement::new("insert into public.effects values ($1)");
                                    let payloads: Vec<i64> = messages.iter().map(|message| message.payload).collect();
                                    for payload in &payloads {
                                        transaction.send(&EFFECT, (*payload,)).await?;
                                    }
                                    Ok::<_, trunkline::Error>(payloads)
                                })
                            });
                            seen.extend(work.await.expect("worked"));
                        }
                        0 => seen.extend(consumer.take(7).await.expect("taken").iter().map(|m| m.payload)),
                        _ => {
                            let leased = consumer.lease(7).await.expect("leased");
                            let (next, lost) = queue.ack_and_lease(&leased, 3).await.expect("exchanged");
                            assert!(lost.is_empty());
                            queue.ack(&next).await.expect("held");
                            seen.extend(leased.iter().chain(&next).map(|message| message.payload));
                        }
                    }
                }
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..COUNT), "{wait:?}: each once");
            });
            if nr != 1 {
                break;
            }
        }
    }
    while let Some(ended) = timeout(8 * SOON, running.join_next()).await.expect("in time") {
        ended.expect("no panic");
    }
    let effects = Statement::<(), (i64, i64)>::new("select count(*), count(distinct payload) from public.effects");
    assert_eq!(db.run(&effects, ()).await.expect("counted"), (COUNT, COUNT), "exactly once");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pgbouncer: see .ci/pgbouncer"]
async fn statements_and_transactions_go_through_a_pooler() {
    let pgbouncer = Pgbouncer::start().await;
    let url = database().await;
    let through = format!("{} prepared_statements=off", pgbouncer.before(&url));
    callers_use_everything(&through).await;
    // Checks that the server connections are in their original state for other users of the pooler.
    let db = Db::connect(&through).await.expect("connected");
    let settings = Statement::<(), (String, String, i64)>::new(
        "select current_setting('jit'), current_setting('default_transaction_isolation'),
                (select count(*) from pg_prepared_statements)",
    );
    let (sql, text) = (connect(&url).await, "select current_setting('jit')");
    let jit: String = sql.query_one(text, &[]).await.expect("told").get(0);
    assert_eq!(db.run(&settings, ()).await.expect("told"), (jit, "read committed".into(), 0));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pgbouncer: see .ci/pgbouncer"]
async fn the_whole_queue_goes_through_a_pooler() {
    let pgbouncer = Pgbouncer::start().await;
    let url = database().await;
    consumers_use_everything(&format!("{} prepared_statements=off", pgbouncer.before(&url))).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pgbouncer: see .ci/pgbouncer"]
async fn pooler_that_follows_prepared_statements_needs_no_settings() {
    let pgbouncer = Pgbouncer::with_statements().await;
    callers_use_everything(&pgbouncer.before(&database().await)).await;
    consumers_use_everything(&pgbouncer.before(&database().await)).await;
}

/// The test runs on one thread, so that its subscriber receives the warnings.
#[tokio::test]
#[ignore = "needs pgbouncer: see .ci/pgbouncer"]
async fn a_listener_that_hears_nothing_says_so_and_consumers_poll() {
    let pgbouncer = Pgbouncer::start().await;
    let warnings = Said::warnings();
    let _ear = warnings.listen();
    let url = database().await;
    let db = Db::connect(&format!("{} prepared_statements=off", pgbouncer.before(&url))).await.expect("connected");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    let sql = connect(&url).await;
    assert!(!db.notifications_arrive().await.expect("tested"), "through the pooler");
    let past = Db::connect(&url).await.expect("connected");
    assert!(past.notifications_arrive().await.expect("tested"), "past it");
    for wait in [Wait::Notify, Wait::Adaptive] {
        let (found, mut finds) = mpsc::unbounded_channel();
        let mut consumer = queue.consumer(wait);
        let consuming =
            tokio::spawn(async move { while found.send(consumer.take(1).await.expect("taken")[0].payload).is_ok() {} });
        // Enqueues from other sessions without any notification: once before the library has
        // detected that none arrive, and once afterwards.
        for payload in [1, 2] {
            sql.execute("select trunkline.enqueue('q', $1::int8)", &[&payload]).await.expect("enqueued");
            assert_eq!(timeout(SOON, finds.recv()).await.expect("it polls"), Some(payload));
            let warned = async || warnings.contains("listener receives no notifications");
            eventually("the listener warns", warned).await;
        }
        consuming.abort();
    }
}

/// A session that a pooler has swapped lacks the prepared statement, which causes this error.
#[tokio::test(flavor = "multi_thread")]
async fn own_statement_that_a_pooler_breaks_gets_the_advice_of_all_others() {
    let db = Db::connect(&database().await).await.expect("connected");
    let lost = Statement::<(), ()>::new("deallocate of_another_session");
    let error = db.run(&lost, ()).await.expect_err("there is no such statement").to_string();
    assert!(error.contains("set its max_prepared_statements"), "{error}");
    assert!(error.contains("(statement 1 in the pipeline: deallocate of_another_session)"), "{error}");
}
