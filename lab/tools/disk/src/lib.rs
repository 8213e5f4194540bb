//! Makes the disk of a private PostgreSQL slow or full while the server runs, and sets its clock
//! ahead or back. Benchmarks compare such servers, and torture tests break them.
//!
//! A small library intercepts the calls of the server's processes to the C library, by
//! `LD_PRELOAD`. [`Disk::new`] builds this library with cargo if necessary. It needs 64-bit Linux,
//! and a server that is linked dynamically to the C library, as all common servers are.
//!
//! ```no_run
//! use std::{path::Path, time::Duration};
//!
//! use trunkline_disk::Disk;
//! use trunkline_embedded::Cluster;
//!
//! let disk = Disk::new(Path::new("target"))?;
//! let cluster = disk
//!     .environment()
//!     .into_iter()
//!     .fold(Cluster::temporary(), |cluster, (name, value)| cluster.env(name, value));
//! let cluster = cluster.start()?;
//! assert!(disk.is_under(cluster.pid().unwrap_or(0))?);
//! disk.fsync_takes(Duration::from_millis(20))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
#[path = "../preload/src/page.rs"]
mod page;

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// The disk of the servers that were started with its [`environment`](Disk::environment). A new
/// disk is as fast and as large as the real disk beneath it. The same is true for a dropped disk.
///
/// A setting affects all processes of these servers, from their next call on.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    /// Servers map this file. So it is written in place and never becomes shorter.
    file: Mutex<File>,
}

const LIBRARY: &str = "libtrunkline_disk.so";
const FILE: &str = "disk";

impl Disk {
    /// Builds the library below `target` (the project's target folder, as in `CARGO_TARGET_DIR`),
    /// and puts it into a separate temporary folder, which every user may read. The first build
    /// takes a few seconds.
    ///
    /// Fails on systems other than 64-bit Linux ([`Unsupported`](io::ErrorKind::Unsupported)),
    /// without cargo, if the build fails, and if the folder cannot be written.
    pub fn new(target: &Path) -> io::Result<Self> {
        let library = build::library(target)?;
        let folder = make_folder()?;
        let made = folder.join(FILE);
        let file = File::create_new(&made).map_err(|error| named(&made, &error))?;
        let disk = Self { folder, file: Mutex::new(file) };
        fs::copy(&library, disk.library()).map_err(|error| named(&library, &error))?;
        readable(&disk.library(), 0o755).and_then(|()| readable(&made, 0o644)).map_err(|error| named(&made, &error))?;
        disk.write(&[(0, &[0; page::WORDS * 8])])?;
        Ok(disk)
    }

    /// Returns the variables to start a server with (`Cluster::env` of `trunkline-embedded`):
    /// `LD_PRELOAD`, which is this library alone, and the variable that names its file.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library()), ("TRUNKLINE_DISK_FILE", self.folder.join(FILE))]
    }

    /// Returns true if a process uses this disk. The process must have written something, as the
    /// first process of a server has. A process that may not read the library and its file, or that
    /// is linked statically, starts without the disk and without a warning.
    ///
    /// Fails if there is no such process, or if it belongs to another user and the caller is not
    /// root.
    pub fn is_under(&self, pid: u32) -> io::Result<bool> {
        let maps = PathBuf::from(format!("/proc/{pid}/maps"));
        let text = match fs::read(&maps) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => read_as_owner(&maps),
            read => read,
        };
        let text = text.map_err(|error| named(&maps, &error))?;
        let is_mapped = |file: &PathBuf| {
            let path = file.as_os_str().as_bytes();
            text.split(|byte| *byte == b'\n').any(|line| line.ends_with(path))
        };
        Ok(self.environment().iter().all(|(_, file)| is_mapped(file)))
    }

    /// Sets the minimum duration of each `fsync` and `fdatasync`, and of each write to a file that
    /// is opened with `O_DSYNC` or `O_SYNC`. The duration is exact to the microsecond, apart from
    /// what the kernel's timers add (50 µs). Zero leaves the disk as it is.
    pub fn fsync_takes(&self, least: Duration) -> io::Result<()> {
        let microseconds = u64::try_from(least.as_micros()).unwrap_or(u64::MAX);
        self.write(&[(page::FSYNC, &microseconds.to_ne_bytes())])
    }

    /// Makes the disk full below that folder: no file gets longer (`ENOSPC`), as on a disk without
    /// a free block. Existing bytes may be overwritten, and files may be created and removed.
    /// `None` removes the limit.
    ///
    /// Fails if the folder does not exist, or if its path, without links, has more than 4,072
    /// bytes.
    pub fn is_full_below(&self, folder: Option<&Path>) -> io::Result<()> {
        let none = 0_u64.to_ne_bytes();
        let Some(folder) = folder else { return self.write(&[(page::LENGTH, &none)]) };
        // Resolves all links, because the kernel reports the path of an open file in this form.
        let path = folder.canonicalize().map_err(|error| named(folder, &error))?;
        let path = path.as_os_str().as_bytes();
        if path.len() > page::LONGEST {
            let told = format!("{}: a path of {} bytes is longer than {}", folder.display(), path.len(), page::LONGEST);
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, told));
        }
        let length = path.len() as u64;
        self.write(&[(page::LENGTH, &none), (page::PATH, path), (page::LENGTH, &length.to_ne_bytes())])
    }

    /// Sets the servers' time of day ahead of the machine's by `milliseconds`, or behind it if the
    /// number is negative. Clocks that measure durations are not changed.
    pub fn clock_is_ahead_by(&self, milliseconds: i64) -> io::Result<()> {
        self.write(&[(page::CLOCK, &milliseconds.saturating_mul(1000).to_ne_bytes())])
    }

    fn library(&self) -> PathBuf {
        self.folder.join(LIBRARY)
    }

    /// Writes each change to its word, one after another.
    fn write(&self, changes: &[(usize, &[u8])]) -> io::Result<()> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        for (word, bytes) in changes {
            file.write_all_at(bytes, *word as u64 * 8).map_err(|error| named(self.folder.join(FILE), &error))?;
        }
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Resets the settings, because servers that have mapped the file keep their mapping.
        let _ = self.write(&[(0, &[0; page::WORDS * 8])]);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Reads a file of a process as the user of that process. In a container root may lack the right to
/// read it itself (`CAP_SYS_PTRACE`).
fn read_as_owner(file: &Path) -> io::Result<Vec<u8>> {
    let owner = file.metadata()?;
    let output = Command::new("cat").arg(file).current_dir("/").uid(owner.uid()).gid(owner.gid()).output()?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// Creates a folder that other users may enter, regardless of the umask.
fn make_folder() -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let places = std::env::temp_dir().canonicalize()?;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = places.join(format!("trunkline-disk-{}-{count}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => return readable(&folder, 0o755).map(|()| folder),
            // Tries the next name: a killed process with the same id left this folder.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(named(&folder, &error)),
        }
    }
}

fn readable(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn named(path: impl AsRef<OsStr>, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", Path::new(&path).display()))
}
