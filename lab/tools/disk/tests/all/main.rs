//! Tests that a real server's disk becomes slow, full and normal again while the server is running.

#![cfg(target_os = "linux")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use tokio_postgres::{Client, NoTls, error::SqlState};
use trunkline_disk::Disk;
use trunkline_embedded::Cluster;

/// A duration far longer than a commit on a normal disk takes, even on a busy machine.
const SLOW: Duration = Duration::from_millis(200);

fn disk() -> Disk {
    // Uses the target folder of this test's own build.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
    Disk::new(target).expect("the library is built")
}

fn server(disk: &Disk, settings: &[(&str, &str)]) -> Cluster {
    // Autovacuum must not write during the test.
    let cluster = Cluster::temporary().setting("autovacuum", "off");
    let cluster = settings.iter().fold(cluster, |cluster, (name, value)| cluster.setting(*name, *value));
    let cluster = disk.environment().into_iter().fold(cluster, |cluster, (name, value)| cluster.env(name, value));
    let cluster = cluster.start().expect("a private PostgreSQL starts");
    assert!(disk.is_under(cluster.pid().expect("it runs")).expect("its maps can be read"));
    cluster
}

async fn connect(server: &Cluster) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&server.url("postgres"), NoTls).await.expect("the server takes connections");
    tokio::spawn(connection);
    client.batch_execute("create table written (number int8)").await.expect("a table");
    client
}

/// Returns the minimum duration of several commits, because a busy machine can only add to it.
async fn commit(client: &Client) -> Duration {
    let mut least = Duration::MAX;
    for number in 0..5_i64 {
        let began = Instant::now();
        client.execute("insert into written values ($1)", &[&number]).await.expect("a commit");
        least = least.min(began.elapsed());
    }
    least
}

#[tokio::test]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn commit_takes_the_fsync_time_that_is_currently_set() {
    let disk = disk();
    let server = server(&disk, &[]);
    let client = connect(&server).await;
    assert!(commit(&client).await < SLOW, "the disk as it is");
    disk.fsync_takes(SLOW).expect("it is written");
    let slow = commit(&client).await;
    assert!(slow >= SLOW, "{slow:?}");
    disk.fsync_takes(Duration::ZERO).expect("it is written");
    let again = commit(&client).await;
    assert!(again < SLOW, "{again:?}");
    // Drops the disk while it is slow: it is normal again.
    disk.fsync_takes(SLOW).expect("it is written");
    drop(disk);
    let without = commit(&client).await;
    assert!(without < SLOW, "{without:?}");
}

#[tokio::test]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn every_way_of_writing_the_log_durably_is_slow() {
    for method in ["fsync", "fdatasync", "open_sync", "open_datasync"] {
        let disk = disk();
        let server = server(&disk, &[("wal_sync_method", method)]);
        let client = connect(&server).await;
        disk.fsync_takes(SLOW).expect("it is written");
        let slow = commit(&client).await;
        assert!(slow >= SLOW, "{method}: {slow:?}");
        disk.fsync_takes(Duration::ZERO).expect("it is written");
        let again = commit(&client).await;
        assert!(again < SLOW, "{method}: {again:?}");
    }
}

#[tokio::test]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn a_full_disk_refuses_what_grows_and_has_room_again() {
    const FILL: &str = "insert into written select generate_series(1, 10000)";
    let disk = disk();
    let server = server(&disk, &[]);
    let client = connect(&server).await;
    client.batch_execute("create table other (number int8); insert into other values (0)").await.expect("room");
    disk.is_full_below(Some(&server.data_dir().join("base"))).expect("it is written");
    let error = client.batch_execute(FILL).await.expect_err("a full disk");
    assert_eq!(error.code(), Some(&SqlState::DISK_FULL), "{error:?}");
    // Writes to an existing page, which makes no file longer. The log is in another folder.
    client.batch_execute("insert into other values (1); checkpoint").await.expect("nothing grows");
    disk.is_full_below(None).expect("it is written");
    client.batch_execute(FILL).await.expect("room again");
    let kept: i64 = client.query_one("select count(*) from written", &[]).await.expect("a count").get(0);
    assert_eq!(kept, 10_000);
}

#[tokio::test]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
async fn clock_shifts_do_not_harm_sessions_with_time_limits() {
    let disk = disk();
    let server = server(&disk, &[]);
    let client = connect(&server).await;
    let ahead = async || -> f64 {
        let here = std::time::SystemTime::now();
        let there: std::time::SystemTime =
            client.query_one("select clock_timestamp()", &[]).await.expect("told").get(0);
        there.duration_since(here).map_or_else(|behind| -behind.duration().as_secs_f64(), |ahead| ahead.as_secs_f64())
    };
    for hours in [1, -1, 0] {
        disk.clock_is_ahead_by(hours * 3_600_000).expect("it is written");
        let ahead = ahead().await - hours as f64 * 3600.0;
        assert!(ahead.abs() < 60.0, "{hours} h: {ahead} s");
    }
    // Causes many timeouts. Each is a signal whose handler reads the time in the middle of
    // allocations.
    let session: i32 = client.query_one("select pg_backend_pid()", &[]).await.expect("told").get(0);
    client.batch_execute("set statement_timeout = 1").await.expect("set");
    for turn in 0..1000 {
        disk.clock_is_ahead_by(turn % 7 * 1000).expect("it is written");
        let text = "select sum(length(array_agg::text)) from (select array_agg(repeat('x', n)) from generate_series(1, 3000) n group by n % 7) grouped";
        let error = client.batch_execute(text).await.expect_err("longer than a millisecond");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{error:?}");
    }
    client.batch_execute("set statement_timeout = 0").await.expect("set");
    let now: i32 = client.query_one("select pg_backend_pid()", &[]).await.expect("it is there").get(0);
    assert_eq!(now, session);
}

#[test]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
fn a_folder_that_is_not_there_cannot_be_full() {
    let error = disk().is_full_below(Some(Path::new("/nowhere/at all"))).expect_err("no such folder");
    assert!(error.to_string().contains("/nowhere/at all"), "{error}");
}

#[test]
#[cfg_attr(target_env = "musl", ignore = "needs a Rust that builds shared libraries, as musl's does not")]
fn process_outside_the_disk_lacks_the_library() {
    assert!(!disk().is_under(std::process::id()).expect("its own maps can be read"));
}
