//! The disk of a private PostgreSQL, made slow or full while the server runs, and its clock, set
//! ahead or back: what benchmarks compare, and what torture tests break.
//!
//! A small library stands between the server's processes and the C library, by `LD_PRELOAD`;
//! [`Disk::new`] builds it through cargo where that has not been done. It needs Linux of 64 bits,
//! and a server that is linked to the C library dynamically, as all common ones are.
//!
//! ```no_run
//! use std::{path::Path, time::Duration};
//!
//! use trunkline_disk::Disk;
//! use trunkline_embedded::Cluster;
//!
//! let disk = Disk::new(Path::new("target"))?;
//! let cluster = disk.environment().into_iter().fold(Cluster::temporary(), |cluster, (name, value)| cluster.env(name, value));
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
        fs::{FileExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// The disk as the servers that were started with its [`environment`](Disk::environment) have it.
/// As it is made, it is as fast and as large as the disk under it; so it is again at the end of
/// this value.
///
/// What is set counts for all of these servers' processes, from their next call on.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    /// Mapped by whoever has the library, so it is written in place and never gets shorter.
    file: Mutex<File>,
}

const LIBRARY: &str = "libtrunkline_disk.so";
const FILE: &str = "disk";

impl Disk {
    /// Builds the library, below `target` (the project's target folder, as in `CARGO_TARGET_DIR`),
    /// and puts it into a folder of its own among the temporary ones, where whoever runs the server
    /// may read it. The first build takes some seconds.
    ///
    /// Fails on other systems than Linux of 64 bits ([`Unsupported`](io::ErrorKind::Unsupported)),
    /// without cargo, when the build fails, and when the folder cannot be written.
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

    /// The variables to start a server with (`Cluster::env` of `trunkline-embedded`): `LD_PRELOAD`,
    /// which is this library alone, and the one that names its file.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library()), ("TRUNKLINE_DISK_FILE", self.folder.join(FILE))]
    }

    /// Whether a process that has written something, as the server's first one has, stands on this
    /// disk. One that may not read the library and its file, or is linked statically, starts
    /// without them and without a word.
    ///
    /// Fails when there is no such process, or it is another user's.
    pub fn is_under(&self, pid: u32) -> io::Result<bool> {
        let maps = PathBuf::from(format!("/proc/{pid}/maps"));
        let text = fs::read(&maps).map_err(|error| named(&maps, &error))?;
        let is_mapped = |file: &PathBuf| {
            let path = file.as_os_str().as_bytes();
            text.split(|byte| *byte == b'\n').any(|line| line.ends_with(path))
        };
        Ok(self.environment().iter().all(|(_, file)| is_mapped(file)))
    }

    /// The least time of each `fsync` and `fdatasync` from now on, and of each write to a file that
    /// is opened with `O_DSYNC` or `O_SYNC`; to the microsecond, and later by what the kernel's
    /// timers add (50 µs). Zero is as the disk is.
    pub fn fsync_takes(&self, least: Duration) -> io::Result<()> {
        let microseconds = u64::try_from(least.as_micros()).unwrap_or(u64::MAX);
        self.write(&[(page::FSYNC, &microseconds.to_ne_bytes())])
    }

    /// Below that folder no file gets any longer from now on (`ENOSPC`), as on a disk without a
    /// free block: what is there may be written again, and files may be created and removed. None
    /// has room again.
    ///
    /// Fails when the folder is not there, or its path, without links, has more than 4,072 bytes.
    pub fn is_full_below(&self, folder: Option<&Path>) -> io::Result<()> {
        let none = 0_u64.to_ne_bytes();
        let Some(folder) = folder else { return self.write(&[(page::LENGTH, &none)]) };
        // The kernel tells the path of an open file without links.
        let path = folder.canonicalize().map_err(|error| named(folder, &error))?;
        let path = path.as_os_str().as_bytes();
        if path.len() > page::LONGEST {
            let told = format!("{}: a path of {} bytes is longer than {}", folder.display(), path.len(), page::LONGEST);
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, told));
        }
        let length = path.len() as u64;
        self.write(&[(page::LENGTH, &none), (page::PATH, path), (page::LENGTH, &length.to_ne_bytes())])
    }

    /// The servers' time of day is so many milliseconds ahead of the machine's from now on, or
    /// behind where that is negative. How long something takes goes by other clocks, which are as
    /// they are.
    pub fn clock_is_ahead_by(&self, milliseconds: i64) -> io::Result<()> {
        self.write(&[(page::CLOCK, &milliseconds.saturating_mul(1000).to_ne_bytes())])
    }

    fn library(&self) -> PathBuf {
        self.folder.join(LIBRARY)
    }

    /// From that word on, one after the other.
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
        // Whoever has mapped the file keeps it.
        let _ = self.write(&[(0, &[0; page::WORDS * 8])]);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// One that nobody else has made; whatever the umask, others may enter it.
fn make_folder() -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let places = std::env::temp_dir().canonicalize()?;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = places.join(format!("trunkline-disk-{}-{count}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => return readable(&folder, 0o755).map(|()| folder),
            // Left by a process of that number, which was killed.
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
