use crate::error::{Error, Result};
use std::fs::File;
use std::io::{Write, stderr};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The time after which a wait is reported.
const SILENT: Duration = Duration::from_secs(2);

/// Locks a file. Dropping the file releases the lock. A wait has no limit, because the other
/// process may fetch PostgreSQL or recover the cluster. A long wait is reported on standard error.
pub(crate) fn lock(file: &File, path: &Path) -> Result<()> {
    if file.try_lock().is_ok() {
        return Ok(());
    }
    let (_locked, waiting) = mpsc::channel::<()>();
    let note = format!("waiting for another process, which holds the lock {}", path.display());
    thread::spawn(move || {
        if waiting.recv_timeout(SILENT) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = writeln!(stderr(), "{note}"); // a closed standard error is no reason to panic
        }
    });
    file.lock().map_err(Error::at("cannot lock", path))
}
