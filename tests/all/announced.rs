//! A commit in SQL sends a notification only if a consumer has announced that it listens. No
//! consumer misses a message as a result.

use std::time::{Duration, Instant};

use futures_util::future::poll_fn;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls};
use trunkline::{Db, Limits, Settings, Wait};

use crate::fixture::{Place, SOON, connect, database, eventually, place, superuser};

/// A session that listens without the library.
struct Ear {
    sql: Client,
    heard: mpsc::UnboundedReceiver<String>,
}

impl Ear {
    async fn new(url: &str) -> Self {
        let (sql, mut connection) = tokio_postgres::connect(url, NoTls).await.expect("connected");
        let (hear, heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(notification) = message {
                    let _ = hear.send(notification.payload().to_owned());
                }
            }
        });
        Self { sql, heard }
    }

    /// Returns the number of notifications so far. Sends a notification and counts until it
    /// arrives.
    async fn count(&mut self, channel: &str) -> usize {
        self.sql.batch_execute(&format!("notify \"{channel}\", 'end'")).await.expect("notified");
        let mut count = 0;
        loop {
            let heard = tokio::time::timeout(SOON, self.heard.recv()).await.expect("in time").expect("connected");
            if heard == "end" {
                return count;
            }
            count += 1;
        }
    }
}

const CHANNEL: &str = "trunkline.q";

/// Every way in which a commit in SQL makes a message due.
const WAYS: &[&str] = &[
    "select trunkline.enqueue('q', 1::bigint)",
    "select trunkline.enqueue('q', '1')",
    "select trunkline.enqueue('q', 1::bigint, metadata => '{\"a\": \"b\"}')",
    "select trunkline.enqueue_many('q', '{1,2}'::bigint[])",
    "select trunkline.enqueue_many('q', array['1', '2'])",
    "select trunkline.release('q', id, attempt) from trunkline.lease('q')",
    "select trunkline.retry('q', id, attempt) from trunkline.lease('q')",
    "select trunkline.release_many('q', array_agg(id), array_agg(attempt)) from trunkline.lease('q', 2)",
    "select trunkline.retry_many('q', array_agg(id), array_agg(attempt)) from trunkline.lease('q', 2)",
    "select trunkline.charge('q', id, attempt) from trunkline.messages('q') where due_at <= now() and attempt = 0 limit 1",
    "select trunkline.reschedule('q', array[id], now()) from trunkline.messages('q') limit 1",
    "select trunkline.bury('q', id, attempt, 'x') from trunkline.lease('q'); select trunkline.replay_all('q')",
    "select trunkline.enqueue('unique', 1::bigint, unique_key => 'a' || clock_timestamp()::text)",
    "select trunkline.enqueue('unique', 1::bigint)",
    "select trunkline.enqueue('keyed', 1::bigint, key => 'a')",
    "select trunkline.enqueue('laned', 1::bigint, priority => 2)",
    "select trunkline.enqueue('laned', 1::bigint)",
];

fn channel(way: &str) -> String {
    let queue = ["unique", "keyed", "laned"].into_iter().find(|queue| way.contains(&format!("'{queue}'")));
    format!("trunkline.{}", queue.unwrap_or("q"))
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_notifies_only_sessions_that_announced_themselves() {
    let Place { sql, url, db, .. } = place::<i64>(Settings::new("int8")).await;
    db.create_queue("unique", &Settings::new("int8").uniqueness(true)).await.expect("created");
    db.create_queue("keyed", &Settings::new("int8").partitions(2)).await.expect("created");
    db.create_queue("laned", &Settings::new("int8").priorities(3)).await.expect("created");
    let mut plain = Ear::new(&url).await;
    for queue in ["q", "unique", "keyed", "laned"] {
        plain.sql.batch_execute(&format!("listen \"trunkline.{queue}\"")).await.expect("listens");
    }
    for way in WAYS {
        sql.batch_execute(way).await.unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!(plain.count(&channel(way)).await, 0, "{way} notified, and no session had asked for it");
    }
    let announced = Ear::new(&url).await;
    let listen = "select trunkline.listen('q'), trunkline.listen('unique'), trunkline.listen('keyed'), trunkline.listen('laned')";
    announced.sql.batch_execute(listen).await.expect("listens");
    for way in WAYS {
        sql.batch_execute(way).await.unwrap_or_else(|error| panic!("{way}: {error}"));
        assert!(plain.count(&channel(way)).await > 0, "{way} did not notify");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_that_listens_in_sql_hears_its_own_commits_and_others_until_it_ends() {
    let Place { sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    let mut ear = Ear::new(&url).await;
    let enqueue = "select trunkline.enqueue('q', 1::bigint)";
    let asked = || async {
        let asked = "select trunkline.announced('trunkline.q')";
        sql.query_one(asked, &[]).await.expect("asked").get::<_, bool>(0)
    };
    for _ in 0..2 {
        ear.sql.batch_execute("select trunkline.listen('q')").await.expect("listens");
    }
    assert!(asked().await);
    sql.batch_execute(enqueue).await.expect("enqueued");
    ear.sql.batch_execute(enqueue).await.expect("enqueued");
    assert_eq!(ear.count(CHANNEL).await, 2);
    ear.sql.batch_execute("select trunkline.unlisten('q'), trunkline.unlisten('q')").await.expect("ended");
    assert!(!asked().await, "listening twice and no longer is no longer listening");
    let own = ear.sql.query_one("select trunkline.announced('trunkline.q')", &[]).await.expect("asked");
    assert!(!own.get::<_, bool>(0), "the session itself sends no unnecessary notifications either");
    ear.sql.batch_execute("select trunkline.listen('q')").await.expect("listens");
    drop(ear);
    eventually("the end of a session ends its announcement", || async { !asked().await }).await;
    let error = sql.batch_execute("select trunkline.listen('other')").await.expect_err("refused");
    assert!(error.as_db_error().is_some_and(|error| error.message() == "there is no queue 'other'"), "{error:?}");
}

/// Starts a consumer, and returns a channel with the payloads of the messages that it takes.
async fn consumes(db: &Db) -> mpsc::UnboundedReceiver<i64> {
    let (send, received) = mpsc::unbounded_channel();
    let mut consumer = db.queue::<i64>("q").await.expect("opened").consumer(Wait::Notify);
    tokio::spawn(async move {
        while let Ok(messages) = consumer.take(1).await {
            if messages.into_iter().any(|message| send.send(message.payload).is_err()) {
                return;
            }
        }
    });
    received
}

/// The channel's lock, as `pg_locks` shows it.
const ANNOUNCED: &str =
    "select exists (select from pg_locks where locktype = 'advisory' and granted and mode = 'ShareLock'
    and classid = 1953656427 and database = (select oid from pg_database where datname = current_database()))";

/// Transactions that checked for listeners before a consumer's announcement commit without a
/// notification. The consumer polls until these transactions have ended. Prepared transactions
/// outlive their sessions.
#[tokio::test(flavor = "multi_thread")]
async fn message_of_a_transaction_older_than_the_announcement_arrives_at_once() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let sql = superuser(&url).await;
    for (nr, end) in ["commit", "prepare transaction 'old'"].into_iter().enumerate() {
        let old = superuser(&url).await;
        let begin = format!("begin; select trunkline.enqueue('q', {nr}::bigint)");
        old.batch_execute(&begin).await.expect("enqueued");
        if end != "commit" {
            old.batch_execute(end).await.expect("no notification is in it");
        }
        let mut received = consumes(&db).await;
        eventually("the consumer announces itself", || async {
            sql.query_one(ANNOUNCED, &[]).await.expect("read").get(0)
        })
        .await;
        // Enqueues after the announcement, in a transaction that therefore sends a notification.
        sql.batch_execute("select trunkline.enqueue('q', 100::bigint)").await.expect("enqueued");
        let first = tokio::time::timeout(Duration::from_secs(20), received.recv()).await.expect("in time");
        assert_eq!(first, Some(100));
        old.batch_execute(if end == "commit" { end } else { "commit prepared 'old'" }).await.expect("committed");
        let second = tokio::time::timeout(Duration::from_secs(20), received.recv()).await;
        assert_eq!(second.expect("long before the safety poll"), Some(nr as i64), "{end}");
        drop(received);
        // Sends one more message. Then the consumer ends, and thereby withdraws its announcement.
        sql.batch_execute("select trunkline.enqueue('q', 7::bigint)").await.expect("enqueued");
        eventually("the announcement ends with its consumer", || async {
            !sql.query_one(ANNOUNCED, &[]).await.expect("read").get::<_, bool>(0)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn consumer_polls_only_until_older_transactions_have_ended() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let (sql, old) = (connect(&url).await, connect(&url).await);
    old.batch_execute("begin; select trunkline.enqueue('q', 1::bigint, delay => '1 day')").await.expect("enqueued");
    let received = consumes(&db).await;
    let looks = "select coalesce(max(state_change) > clock_timestamp() - interval '300 ms', false), bool_or(query like 'listen%')
                 from pg_stat_activity where datname = current_database() and application_name = 'trunkline'";
    let look = || async {
        let row = sql.query_one(looks, &[]).await.expect("read");
        (row.get::<_, bool>(0), row.get::<_, Option<bool>>(1).unwrap_or(false))
    };
    eventually("the consumer polls", || async { look().await == (true, false) }).await;
    old.batch_execute("rollback").await.expect("ended");
    eventually("the consumer sends nothing more", || async { !look().await.0 }).await;
    drop(received);
}

/// While other processes notify this often, commits that notify would wait for each other. So the
/// consumer stops listening, and polls.
#[tokio::test(flavor = "multi_thread")]
async fn consumer_stops_listening_in_a_flood_and_listens_again() {
    let Place { url, sql, queue, .. } = place::<i64>(Settings::new("int8")).await;
    let mut consumer = queue.consumer(Wait::Adaptive);
    let (got, mut messages) = mpsc::unbounded_channel();
    let consuming = tokio::spawn(async move {
        while let Ok(found) = consumer.take(100).await {
            for message in found {
                let _ = got.send(message.payload); // the test may be over
            }
        }
    });
    let announced = || async {
        let asked = sql.query_one("select trunkline.announced($1)", &[&CHANNEL]).await.expect("answered");
        asked.get::<_, bool>(0)
    };
    eventually("it listens", || async { announced().await }).await;
    // Two sessions enqueue in turn without a pause, so that the flood does not end during the
    // check.
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut floods = Vec::new();
    for _ in 0..2 {
        let (flood, stop) = (connect(&url).await, stop.clone());
        floods.push(tokio::spawn(async move {
            let mut sent = 0_i64;
            let notify = format!(
                "select trunkline.enqueue('q', 0::bigint), count(pg_notify('{CHANNEL}', i::text)) from generate_series(1, 100) i"
            );
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                flood.batch_execute(&notify).await.expect("notified");
                sent += 1;
            }
            sent
        }));
    }
    eventually("it stops listening", || async { !announced().await }).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut sent = 0;
    for flood in floods {
        sent += flood.await.expect("no panic");
    }
    eventually("it listens again once the flood is over", || async { announced().await }).await;
    sql.batch_execute("select trunkline.enqueue('q', 1::bigint)").await.expect("enqueued");
    for nr in 0..=sent {
        let message = tokio::time::timeout(SOON, messages.recv()).await.expect("in time").expect("it consumes");
        assert_eq!(message, i64::from(nr == sent));
    }
    consuming.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn extension_in_a_limited_queue_wakes_no_consumer() {
    let Place { db, sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    db.limit_queue("q", &Limits::none().max_leased(1)).await.expect("limited");
    let limited = db.queue::<i64>("q").await.expect("opened");
    sql.batch_execute("select trunkline.enqueue('q', 1::bigint)").await.expect("enqueued");
    let mut ear = Ear::new(&url).await;
    ear.sql.batch_execute("select trunkline.listen('q')").await.expect("listens");
    let held = limited.lease(1).await.expect("leased");
    let mut heard = 0;
    for _ in 0..20 {
        limited.extend(&held, Duration::from_secs(60)).await.expect("extended");
        let extend = "select trunkline.extend('q', $1, $2, '1 minute')";
        sql.execute(extend, &[&held[0].id, &held[0].attempt]).await.expect("extended");
        heard += ear.count(CHANNEL).await;
    }
    assert_eq!(heard, 0, "an extension makes no room");
    limited.ack(&held).await.expect("acknowledged");
    let deadline = Instant::now() + SOON;
    while ear.count(CHANNEL).await == 0 {
        assert!(Instant::now() < deadline, "an end makes room");
    }
}

/// A session of a pool may listen to a queue that another session drops.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_stops_listening_to_a_queue_that_was_dropped() {
    let Place { db, sql, url, .. } = place::<i64>(Settings::new("int8")).await;
    let listening = connect(&url).await;
    listening.batch_execute("select trunkline.listen('q')").await.expect("listens");
    db.drop_queue("q").await.expect("dropped");
    let announced = async || -> bool {
        sql.query_one("select trunkline.announced($1)", &[&CHANNEL]).await.expect("answered").get(0)
    };
    assert!(announced().await);
    listening.batch_execute("select trunkline.unlisten('q')").await.expect("it had listened");
    assert!(!announced().await);
    let error = listening
        .batch_execute("select trunkline.unlisten('q')")
        .await
        .expect_err("it does not listen, and there is none");
    assert_eq!(error.code(), Some(&tokio_postgres::error::SqlState::UNDEFINED_TABLE), "{error}");
}
