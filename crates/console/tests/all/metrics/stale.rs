//! Samples that cannot be taken do not pass for fresh ones.

use std::time::{Duration, Instant};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, UnixStream},
    sync::watch,
};
use tokio_postgres::Client;
use trunkline::{Db, Queue, Settings};
use trunkline_console::metrics::Metrics;
use trunkline_embedded::test_cluster;

use super::{count, database, in_all_states, seconds};
use crate::web::connect;

/// A sample is given up after half a minute, and so may be the next.
const SOON: Duration = Duration::from_secs(150);
/// The time that passes at once after each scrape, so that the next sample is soon due.
const AWHILE: Duration = Duration::from_secs(3);

/// Scrapes until the text fits.
async fn until(metrics: &Metrics, db: &Db, fits: impl Fn(&str) -> bool) {
    let deadline = Instant::now() + SOON;
    loop {
        let text = metrics.exposition(db).await;
        if fits(&text) {
            return;
        }
        assert!(Instant::now() < deadline, "{text}");
        crate::until_next_poll().await;
        crate::pass(AWHILE).await;
    }
}

/// Returns true if the queue has this number of due messages.
fn is_due(text: &str, messages: i64) -> bool {
    text.contains(&format!("\ntrunkline_queue_messages{{queue=\"q\",state=\"due\"}} {messages}\n"))
}

fn metrics() -> Metrics {
    Metrics::new().patience(Duration::from_secs(1))
}

#[tokio::test]
async fn samples_that_stop_because_of_a_lock_are_not_up() {
    let (url, db, _sql) = database().await;
    in_all_states(&db, "q").await;
    let metrics = metrics();
    until(&metrics, &db, |text| is_due(text, 10)).await;
    let holder = connect(&url).await;
    holder.batch_execute("begin; lock table trunkline.version in access exclusive mode").await.expect("locked");
    until(&metrics, &db, |text| count(text, "trunkline_up") == 0).await;
    holder.batch_execute("rollback").await.expect("let go");
    until(&metrics, &db, |text| is_due(text, 10)).await;
}

/// Forwards connections to the server. Once the returned sender has a value, the connections that
/// were accepted before receive nothing, but stay open, as if a firewall had forgotten them.
async fn forgetful() -> (u16, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let cluster = test_cluster().expect("a server");
    let socket = cluster.socket_dir().join(format!(".s.PGSQL.{}", cluster.port()));
    let (forget, forgets) = watch::channel(false);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = UnixStream::connect(&socket).await.expect("connected");
            let mut forgets = forgets.clone();
            let is_late = *forgets.borrow();
            tokio::spawn(async move {
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut server) => return,
                    _ = forgets.wait_for(|is| *is), if !is_late => {}
                }
                drop(server);
                std::future::pending::<()>().await; // keeps the connection
            });
        }
    });
    (port, forget)
}

#[tokio::test]
async fn sample_whose_connection_falls_silent_is_given_up() {
    let (url, db, sql) = database().await;
    in_all_states(&db, "q").await;
    let (port, forget) = forgetful().await;
    let rest = &url[url.find(" user=").expect("a user")..];
    let theirs = Db::connect(&format!("host=127.0.0.1 port={port} sslmode=disable{rest}")).await.expect("connected");
    let metrics = metrics();
    until(&metrics, &theirs, |text| is_due(text, 10)).await;
    // The next sample of the database takes some seconds.
    let slow = "alter table trunkline.version rename to quick;
        create view trunkline.version as select q.version, q.oldest from trunkline.quick q, (select pg_sleep(5) offset 0) s";
    sql.batch_execute(slow).await.expect("changed");
    let asked = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
    let deadline = Instant::now() + SOON;
    while sql.query_one(asked, &[]).await.expect("read").get::<_, i64>(0) == 0 {
        assert!(Instant::now() < deadline, "no sample was taken");
        metrics.exposition(&theirs).await;
        crate::pass(AWHILE).await;
    }
    forget.send(true).expect("it forwards");
    let quick = "drop view trunkline.version; alter table trunkline.quick rename to version; select trunkline.enqueue('q', 1::int8)";
    sql.batch_execute(quick).await.expect("changed");
    let hurried = metrics.patience(Duration::from_millis(300));
    // By the clock that is turned: the limit of a sample is thirty seconds.
    let deadline = tokio::time::Instant::now() + SOON;
    while !is_due(&hurried.exposition(&theirs).await, 11) {
        assert!(tokio::time::Instant::now() < deadline, "the sample is not given up");
        crate::pass(AWHILE).await;
    }
}

/// Makes the count of the archive of queue `q` take this many seconds.
async fn slow_down(sql: &Client, seconds: f64) {
    let slow = format!(
        "alter table trunkline.archive_q rename to quick;
         create view trunkline.archive_q as select pg_sleep({seconds}) is null as slept offset 0"
    );
    sql.batch_execute(&slow).await.expect("changed");
}

/// Enqueues a message that has been due for an hour.
async fn enqueue_late(sql: &Client) {
    let late = "insert into trunkline.queue_q (size, payload, due_at) values (1, '{1}', now() - interval '1 hour')";
    sql.batch_execute(late).await.expect("enqueued");
}

fn oldest(text: &str) -> f64 {
    seconds(text, "trunkline_queue_oldest_due_seconds{queue=\"q\"}")
}

#[tokio::test]
async fn oldest_due_message_does_not_wait_for_a_slow_count() {
    for settings in [Settings::new("int8"), Settings::new("int8").priorities(3)] {
        let (_, db, sql) = database().await;
        db.create_queue("q", &settings).await.expect("created");
        slow_down(&sql, 0.3).await;
        let metrics = metrics().patience(SOON);
        let text = metrics.exposition(&db).await;
        assert!(is_due(&text, 0) && oldest(&text) == 0.0, "{text}");
        enqueue_late(&sql).await;
        crate::pass(AWHILE).await;
        let text = metrics.exposition(&db).await;
        assert!(oldest(&text) >= 3600.0, "{text}");
        assert!(is_due(&text, 0), "it was not counted again: {text}");
        sql.batch_execute("delete from trunkline.queue_q").await.expect("deleted");
        until(&metrics, &db, |text| oldest(text) == 0.0).await;
    }
}

#[tokio::test]
async fn oldest_due_message_is_found_while_a_count_runs() {
    let (_, db, sql) = database().await;
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let metrics = metrics();
    until(&metrics, &db, |text| is_due(text, 0)).await;
    slow_down(&sql, 600.0).await;
    until_counts(&metrics, &db, &sql, 1).await;
    enqueue_late(&sql).await;
    crate::pass(Duration::from_secs(120)).await;
    until(&metrics, &db, |text| oldest(text) >= 3600.0).await;
    assert_eq!(cancelled(&sql).await, 1, "the count still runs");
}

/// The statement that counts the slow counts that run.
const COUNTS: &str =
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";

/// Scrapes until this number of slow counts run.
async fn until_counts(metrics: &Metrics, db: &Db, sql: &Client, running: i64) {
    let deadline = Instant::now() + SOON;
    while sql.query_one(COUNTS, &[]).await.expect("read").get::<_, i64>(0) < running {
        assert!(Instant::now() < deadline, "it is not counted");
        metrics.exposition(db).await;
        crate::pass(AWHILE).await;
    }
}

/// Cancels the slow counts. Returns their number.
async fn cancelled(sql: &Client) -> i64 {
    let cancel = COUNTS.replace("count(*)", "count(pg_cancel_backend(pid))");
    sql.query_one(&cancel, &[]).await.expect("read").get(0)
}

#[tokio::test]
async fn queue_that_was_never_counted_has_alarms_while_another_is_counted() {
    let (_, db, sql) = database().await;
    for name in ["q", "uncounted"] {
        db.create_queue(name, &Settings::new("int8")).await.expect("created");
    }
    slow_down(&sql, 600.0).await;
    let metrics = metrics();
    until_counts(&metrics, &db, &sql, 1).await;
    let late =
        "insert into trunkline.queue_uncounted (size, payload, due_at) values (1, '{1}', now() - interval '1 hour')";
    sql.batch_execute(late).await.expect("enqueued");
    let sample = "trunkline_queue_oldest_due_seconds{queue=\"uncounted\"} ";
    let age = |text: &str| text.lines().find_map(|line| line.strip_prefix(sample)?.parse::<f64>().ok());
    until(&metrics, &db, |text| age(text).is_some_and(|age| age >= 3600.0)).await;
    assert_eq!(cancelled(&sql).await, 1, "the count still runs");
}

#[tokio::test]
async fn dead_letter_does_not_wait_for_a_slow_count() {
    let (_, db, sql) = database().await;
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = db.queue("q").await.expect("opened");
    slow_down(&sql, 0.3).await;
    let metrics = metrics().patience(SOON);
    let dead = |text: &str| count(text, "trunkline_queue_messages{queue=\"q\",state=\"dead\"}");
    let text = metrics.exposition(&db).await;
    assert!(is_due(&text, 0) && dead(&text) == 0, "{text}");
    queue.enqueue_many([1, 2, 3]).await.expect("enqueued");
    let leased = queue.lease(2).await.expect("leased");
    queue.bury(&leased, "never").await.expect("buried");
    until(&metrics, &db, |text| is_due(text, 0) && dead(text) == 1).await; // it was not counted again
    let ids: Vec<i64> = leased.iter().map(|message| message.id).collect();
    assert_eq!(queue.discard(&ids).await.expect("discarded"), 2);
    until(&metrics, &db, |text| is_due(text, 0) && dead(text) == 0).await;
}

#[tokio::test]
async fn failed_count_does_not_hide_other_samples_while_the_next_count_runs() {
    let (url, db, sql) = database().await;
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let (port, forget) = forgetful().await;
    let rest = &url[url.find(" user=").expect("a user")..];
    let theirs = Db::connect(&format!("host=127.0.0.1 port={port} sslmode=disable{rest}")).await.expect("connected");
    let metrics = metrics();
    until(&metrics, &theirs, |text| is_due(text, 0)).await;
    slow_down(&sql, 600.0).await;
    until_counts(&metrics, &theirs, &sql, 1).await;
    forget.send(true).expect("it forwards");
    crate::pass(Duration::from_secs(700)).await; // more than the limit of a count
    until_counts(&metrics, &theirs, &sql, 2).await;
    until(&metrics, &theirs, |text| count(text, "trunkline_up") == 1).await;
    assert_eq!(cancelled(&sql).await, 2, "the count still runs");
}
