use crate::account::{Account, Mode};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::places;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// The maximum length in bytes that every system accepts for the path of a socket. Linux accepts up
/// to 107 bytes.
const LONGEST_SOCKET: usize = 103;

/// The folder of a cluster: `data`, `server.log`, the lock file and, if its path is short enough,
/// the socket.
#[derive(Debug)]
pub(crate) struct Home {
    root: PathBuf,
    socket_dir: PathBuf,
}

impl Home {
    /// Creates a folder in the first temporary directory where the account may create one.
    pub(crate) fn temporary(account: &Account) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let nanos = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.subsec_nanos());
        let name = format!("trunkline-{}-{}-{nanos:x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut failed = Error::new("there is no temporary folder");
        for place in [std::env::temp_dir(), PathBuf::from("/tmp")] {
            let root = place.canonicalize().unwrap_or(place).join(&name);
            match check_name(&root).and_then(|()| account.make_folder(&root)) {
                Ok(()) => return Self::with_socket(root, account),
                Err(why) => failed = why,
            }
        }
        Err(failed)
    }

    /// Opens the folder of a kept cluster, and creates it if it is missing.
    pub(crate) fn kept(path: &Path, account: &Account) -> Result<Self> {
        places::make_path(path, account)?;
        let root = path.canonicalize().map_err(Error::at("cannot find the folder", path))?;
        check_name(&root)?;
        let lock = root.join("lock");
        if !lock.exists() {
            let mut others = root.read_dir().map_err(Error::at("cannot read the folder", &root))?.flatten();
            // Checks the lock again, because another process may be creating the same cluster now.
            if others.any(|entry| entry.file_name() != "lock") && !lock.exists() {
                let root = root.display();
                return Err(Error::new(format!(
                    "{root} holds other files and no cluster of ours: name an empty folder"
                )));
            }
            let only_mine = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&root, only_mine).map_err(Error::at("cannot change the mode of", &root))?;
            account.give(&root)?;
        }
        if !account.can_enter(&root)? {
            let (root, name) = (root.display(), account.name());
            return Err(Error::new(format!(
                "{name} runs the server and cannot enter {root}: name a folder that is open to this user, as one in \
                 /var/lib is"
            )));
        }
        Self::with_socket(root, account)
    }

    fn with_socket(root: PathBuf, account: &Account) -> Result<Self> {
        let fits = root.join(".s.PGSQL.5432").as_os_str().len() <= LONGEST_SOCKET;
        // Clients split a list of hosts at commas, so the path must not contain a comma.
        if fits && !root.to_string_lossy().contains(',') {
            return Ok(Self { socket_dir: root.clone(), root });
        }
        let socket_dir = PathBuf::from(format!("/tmp/trunkline-{:016x}", fnv1a(root.as_os_str().as_encoded_bytes())));
        let made = account.make_folder(&socket_dir);
        if made.is_err() && !account.owns(&socket_dir) {
            let socket_dir = socket_dir.display();
            return Err(Error::new(format!("{socket_dir} is needed for the socket and belongs to another user")));
        }
        Ok(Self { root, socket_dir })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("server.log")
    }

    /// Locks the cluster, so that only one process at a time creates, starts or stops it. Dropping
    /// the file releases the lock.
    ///
    /// The folder belongs to the account. Root creates the file as this account and refuses a link,
    /// which could lead to any file of the system.
    pub(crate) fn lock(&self, account: &Account) -> Result<File> {
        let path = self.root.join("lock");
        if path.symlink_metadata().is_err() {
            account.write(&path, "", Mode::Append)?;
        }
        let there = path.symlink_metadata().map_err(Error::at("cannot find", &path))?;
        if !there.is_file() {
            return Err(Error::new(format!("{} is not a file: remove it", path.display())));
        }
        let file = OpenOptions::new().write(true).open(&path).map_err(Error::at("cannot open", &path))?;
        let opened = file.metadata().map_err(Error::at("cannot open", &path))?;
        if (opened.dev(), opened.ino()) != (there.dev(), there.ino()) {
            return Err(Error::new(format!("{} was replaced while it was opened", path.display())));
        }
        lock(&file, &path)?;
        Ok(file)
    }

    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.root);
        let _ = fs::remove_dir_all(&self.socket_dir);
    }
}

/// Checks that `pg_ctl` can use the path, which it inserts unescaped into double quotes in a shell
/// command.
fn check_name(root: &Path) -> Result<()> {
    match root.to_str() {
        Some(name) if !name.contains(['"', '$', '`', '\\', '\n']) => Ok(()),
        _ => Err(Error::new(format!(
            "PostgreSQL cannot run in {}: name a folder without quotes, dollars, backslashes and line breaks",
            root.display()
        ))),
    }
}

/// Hashes a path. All versions of this library must produce the same result.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
