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

/// Returns how many sequential writes of 8 KB reach the disk per second. A write-ahead log makes
/// such writes.
pub fn fsyncs_per_s(folder: &Path) -> Result<f64> {
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
