//! The environment of the measurement: the server, its durability, and its disk.

use std::{
    fs::{self, File},
    io::{self, Seek, Write},
    path::Path,
    time::Instant,
};

use tokio_postgres::NoTls;

use crate::error::{Error, Result};

pub struct Server {
    pub version: String,
    pub fsync: String,
    pub synchronous_commit: String,
}

impl Server {
    pub async fn ask(url: &str) -> Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let all = "select pg_catalog.current_setting('server_version'), pg_catalog.current_setting('fsync'), pg_catalog.current_setting('synchronous_commit')";
        let row = client.query_one(all, &[]).await?;
        Ok(Self { version: row.get(0), fsync: row.get(1), synchronous_commit: row.get(2) })
    }
}

/// The disk beneath the server's data.
pub struct Disk {
    pub fsyncs_per_s: f64,
    /// True if the data is in memory, so that an fsync reaches no disk.
    pub is_in_memory: bool,
}

impl Disk {
    pub fn measure(folder: &Path) -> Result<Self> {
        Ok(Self { fsyncs_per_s: fsyncs_per_s(folder)?, is_in_memory: is_in_memory(folder) })
    }
}

/// Returns true if a folder is in a tmpfs or a ramfs. Only Linux has them.
#[cfg(target_os = "linux")]
fn is_in_memory(folder: &Path) -> bool {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    rustix::fs::statfs(folder).is_ok_and(|found| [TMPFS, RAMFS].contains(&(found.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_: &Path) -> bool {
    false
}

/// Returns how many sequential writes of 8 KB reach the disk per second. A write-ahead log makes
/// such writes.
fn fsyncs_per_s(folder: &Path) -> Result<f64> {
    const WRITES: u32 = 100;
    let path = folder.join("trunkline-demo-fsync");
    let measure = || -> io::Result<f64> {
        let mut file = File::create(&path)?;
        let page = [7; 8192];
        file.write_all(&page)?;
        file.sync_all()?;
        let began = Instant::now();
        for _ in 0..WRITES {
            file.rewind()?;
            file.write_all(&page)?;
            file.sync_data()?;
        }
        Ok(f64::from(WRITES) / began.elapsed().as_secs_f64())
    };
    let measured =
        measure().map_err(|cause| Error::new(format!("cannot measure the disk in {}: {cause}", folder.display())));
    let _ = fs::remove_file(&path); // the folder is deleted later anyway
    measured
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn folders_in_memory_are_known_by_their_file_system() {
        let mounts = fs::read_to_string("/proc/mounts").expect("the mounts are listed");
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let tmpfs: Vec<&str> = fields.filter(|fields| fields[2] == "tmpfs").map(|fields| fields[1]).collect();
        // Another mount may hide one of them.
        assert!(tmpfs.is_empty() || tmpfs.iter().any(|folder| is_in_memory(Path::new(folder))), "{tmpfs:?}");
        for folder in ["/proc", "/nowhere"] {
            assert!(!is_in_memory(Path::new(folder)), "{folder}");
        }
    }
}
