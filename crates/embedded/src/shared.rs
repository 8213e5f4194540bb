use crate::cluster::Cluster;
use crate::error::Result;
use crate::say::say;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Creates an empty database for a test, and returns its connection string.
///
/// The databases of a process are on one temporary cluster. The first call starts the cluster in
/// one or two seconds; each later call takes a few hundredths of a second. No database is dropped
/// until the process ends. Then the cluster and its folder are removed, even if the process is
/// killed. The cluster shares nothing with other processes, and affects no server that is already
/// running. `cargo nextest` runs one process per test, so each test starts a cluster.
///
/// The server flushes nothing to disk (`fsync=off`), and accepts 400 connections. The call blocks
/// its thread.
///
/// Fails for the same reasons as [`Builder::start`](crate::Builder::start); the next call tries
/// again.
///
/// ```no_run
/// let url = trunkline_embedded::test_database()?;
/// assert!(url.contains("dbname=test_"));
/// # Ok::<(), trunkline_embedded::Error>(())
/// ```
pub fn test_database() -> Result<String> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let cluster = test_cluster()?;
    let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    say(&cluster.socket_dir().join(format!(".s.PGSQL.{}", cluster.port())), &format!("create database {name}"))?;
    Ok(cluster.url(&name))
}

/// Returns the cluster of [`test_database`], for tests that inspect the server, or create a
/// database from a template.
///
/// ```no_run
/// let cluster = trunkline_embedded::test_cluster()?;
/// println!("{}", cluster.log_file().display());
/// # Ok::<(), trunkline_embedded::Error>(())
/// ```
pub fn test_cluster() -> Result<&'static Cluster> {
    /// The shared cluster. It is never dropped: its watchdog ends the server.
    static SHARED: Mutex<Option<&'static Cluster>> = Mutex::new(None);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cluster) = *shared {
        return Ok(cluster);
    }
    let cluster = Cluster::temporary().setting("fsync", "off").setting("max_connections", "400").start()?;
    let cluster: &'static Cluster = Box::leak(Box::new(cluster));
    *shared = Some(cluster);
    Ok(cluster)
}
