use crate::cluster::Cluster;
use crate::error::Result;
use crate::say::say;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The address of a new, empty database, for a test that wants one of its own: a connection string
/// to be used as it is.
///
/// The databases of a process are on one temporary cluster, which the first call starts in a second
/// or two; each further one takes some hundredths of a second. It ends with the process, however
/// that one ends, and its folder with it; databases are not dropped before. Nothing is shared with
/// other processes, nor is any server that runs already touched. With `cargo nextest`, which runs a
/// process a test, each test so starts a cluster.
///
/// The server flushes nothing to disk (`fsync=off`), and takes 400 connections. Blocks the thread
/// for as long as it takes.
///
/// Fails as [`Builder::start`](crate::Builder::start) does; the next call tries again.
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

/// The cluster that [`test_database`] makes databases on, for tests that look at the server, or
/// make a database of a template.
///
/// ```no_run
/// let cluster = trunkline_embedded::test_cluster()?;
/// println!("{}", cluster.log_file().display());
/// # Ok::<(), trunkline_embedded::Error>(())
/// ```
pub fn test_cluster() -> Result<&'static Cluster> {
    /// Never dropped: its watchdog ends it.
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
