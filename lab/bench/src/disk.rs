//! The disk of the private cluster, which a suite can slow down.

use std::time::Duration;

use trunkline_disk::Disk;
use trunkline_embedded::{Builder, Cluster};
use trunkline_programs::target;

use crate::{Failure, wanted::Wanted};

/// A disk that can be slowed down, or the reason why there is none. Rows that need such a disk show
/// the reason.
pub type SlowDisk = Result<Disk, String>;

/// Prepares the disk before the server starts.
pub fn wanted(wanted: &Wanted) -> SlowDisk {
    match &wanted.url {
        _ if !wanted.slow_disk => Err("this server was started with the disk as it is".to_owned()),
        Some(_) => Err("only the disk of the private cluster is made slow; leave out --database-url".to_owned()),
        None => {
            let target = target().map_err(|unfit| unfit.to_string())?;
            Disk::new(&target).map_err(|error| error.to_string())
        }
    }
}

/// Runs the server on that disk, if there is one.
pub fn under(disk: &SlowDisk, server: Builder) -> Builder {
    let variables = disk.as_ref().ok().map(Disk::environment);
    variables.into_iter().flatten().fold(server, |server, (name, value)| server.env(name, value))
}

/// Checks, once the server is running, that it uses this disk and waits for it.
pub fn proven(disk: SlowDisk, server: Option<&Cluster>, fsync: &str) -> SlowDisk {
    let disk = disk?;
    if fsync == "off" {
        return Err("no commit waits for a disk with fsync=off".to_owned());
    }
    let pid = server.and_then(Cluster::pid).ok_or("the private cluster does not run")?;
    match disk.is_under(pid) {
        Ok(true) => Ok(disk),
        Ok(false) => Err("the server started without the library that makes its disk slow: can the account that runs it read the temporary \
                          folder (TMPDIR)?"
            .to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Keeps the disk slow until this value is dropped, so that the slow disk does not delay the work
/// before and after a turn.
pub struct Slowed<'a>(&'a Disk);

impl<'a> Slowed<'a> {
    /// Slows the disk down. Returns `None` if the row does not request a slow disk.
    pub fn begin(disk: &'a SlowDisk, milliseconds: Option<f64>) -> Result<Option<Self>, Failure> {
        let Some(milliseconds) = milliseconds else { return Ok(None) };
        let disk = disk.as_ref().map_err(String::as_str)?;
        disk.fsync_takes(Duration::try_from_secs_f64(milliseconds / 1000.0)?)?;
        Ok(Some(Self(disk)))
    }
}

impl Drop for Slowed<'_> {
    fn drop(&mut self) {
        // Ignores an error, which means that the folder was removed together with the disk, so
        // nothing is slow.
        let _ = self.0.fsync_takes(Duration::ZERO);
    }
}
