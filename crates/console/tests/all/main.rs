//! Tests of the doctor, the metrics and the web console on real servers.

mod browser;
mod chromium;
mod doctor;
mod metrics;
mod own_metrics;
mod standby;
mod web;

use std::{
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use tokio::{sync::OnceCell, time::timeout};
use trunkline::Db;
use trunkline_embedded::test_cluster;

/// Waits between two polls, so that the processors are free for the tests that run beside this one.
async fn until_next_poll() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Advances the clock of the runtime's timers by `time`. The runtime must have only one thread.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Runs the future while the clock of the runtime is `times` times as fast as a server's. This
/// must be the only thread of the runtime.
async fn hurried<T>(times: u32, work: impl Future<Output = T>) -> T {
    const STEP: Duration = Duration::from_millis(100);
    let mut work = pin!(work);
    loop {
        match timeout(STEP, &mut work).await {
            Ok(done) => return done,
            Err(_) => pass(STEP * (times - 1)).await,
        }
    }
}

/// Creates a database with the schema. Returns its connection string.
///
/// The schema is created once, in a template. A copy of it takes a fraction of a migration's time.
async fn migrated_database() -> String {
    static TEMPLATE: OnceCell<()> = OnceCell::const_new();
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let cluster = tokio::task::spawn_blocking(test_cluster).await.expect("no panic").expect("a server");
    let admin = web::connect(&cluster.url("postgres")).await;
    TEMPLATE
        .get_or_init(|| async {
            // A test that failed here may have left one.
            admin.batch_execute("drop database if exists migrated with (force)").await.expect("dropped");
            admin.batch_execute("create database migrated").await.expect("created");
            let db = Db::connect(&cluster.url("migrated")).await.expect("connected");
            db.migrate().await.expect("migrated");
            drop(db);
            // No database is created from one that has sessions.
            let sessions = "select count(*) from pg_stat_activity where datname = 'migrated'";
            let deadline = Instant::now() + Duration::from_secs(60);
            while admin.query_one(sessions, &[]).await.expect("read").get::<_, i64>(0) > 0 {
                assert!(Instant::now() < deadline, "the template stays in use");
                until_next_poll().await;
            }
        })
        .await;
    let name = format!("copy_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    admin.batch_execute(&format!("create database {name} template migrated")).await.expect("created");
    cluster.url(&name)
}
