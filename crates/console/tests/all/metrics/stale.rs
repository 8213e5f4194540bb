//! Samples that cannot be taken do not pass for fresh ones.

use std::time::{Duration, Instant};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, UnixStream},
    sync::watch,
};
use trunkline::Db;
use trunkline_console::metrics::Metrics;
use trunkline_embedded::test_cluster;

use super::{count, database, in_all_states};
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
