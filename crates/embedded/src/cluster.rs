use crate::account::Account;
use crate::error::{Error, Result};
use crate::find::Binaries;
use crate::home::Home;
use crate::running::{self, Running, USER};
use crate::server::{self, Stop};
use crate::settings::PORT;
use crate::watchdog::Watchdog;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A private PostgreSQL. It listens only on a socket in a folder that is closed to other users.
///
/// The cluster ends when the value is dropped, and also when its process is killed. A temporary
/// cluster is then stopped and removed, and a kept cluster is stopped. A cluster that stays
/// ([`stay`](crate::Builder::stay)), or that was already running, continues to run.
///
/// ```no_run
/// # use trunkline_embedded::{Cluster, Stop};
/// let cluster = Cluster::temporary().setting("fsync", "off").start()?;
/// println!("{}", cluster.url("postgres"));
/// cluster.restart(Stop::Immediate)?;
/// # Ok::<(), trunkline_embedded::Error>(())
/// ```
#[derive(Debug)]
pub struct Cluster {
    pub(crate) account: Account,
    pub(crate) binaries: Binaries,
    pub(crate) home: Home,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) end: End,
    /// The folder of the socket. A server that was already running keeps its own folder.
    pub(crate) socket_dir: PathBuf,
    pub(crate) watchdog: Option<Watchdog>,
}

/// The effect of dropping a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Remove,
    Stop,
    Stay,
}

impl Cluster {
    /// Returns the server that runs in the folder `path` of [`Cluster::at`], or `None` if no server
    /// runs there.
    ///
    /// ```
    /// assert_eq!(trunkline_embedded::Cluster::status("/nowhere"), None);
    /// ```
    pub fn status(path: impl AsRef<Path>) -> Option<Running> {
        Running::in_data(&path.as_ref().canonicalize().ok()?.join("data"))
    }

    /// Returns a connection string for a database, in the format of libpq and `tokio-postgres`:
    /// `host=/folder port=5432 user=trunkline dbname=postgres`.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        running::url(&self.socket_dir, PORT, database)
    }

    /// Returns the folder of the socket.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// Returns the port, which is part of the socket's name. The server opens no network port.
    #[must_use]
    pub fn port(&self) -> u16 {
        PORT
    }

    /// Returns the name of the superuser, who needs no password.
    #[must_use]
    pub fn user(&self) -> &'static str {
        USER
    }

    /// Returns PostgreSQL's data folder.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.home.data()
    }

    /// Returns the server's log file. A start moves the lines of a log above 16 MiB into
    /// `server.log.1`, also if the server is already running. In between, the log has no limit.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.home.log()
    }

    /// Returns the programs of the cluster.
    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// Returns the process id of the server; `None` while it is stopped. Each start changes it.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        Running::in_data(&self.home.data()).map(|running| running.pid())
    }

    /// Stops the server and returns when it has exited. Does nothing if the server is not running.
    ///
    /// Fails after a minute, for example if clients stay connected during [`Stop::Smart`].
    ///
    /// ```no_run
    /// # use trunkline_embedded::{Cluster, Stop};
    /// let cluster = Cluster::temporary().start()?;
    /// cluster.stop(Stop::Immediate)?;
    /// assert_eq!(cluster.pid(), None);
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn stop(&self, how: Stop) -> Result<()> {
        let _lock = self.home.lock(&self.account)?;
        server::stop(&self.account, &self.home.data(), how)
    }

    /// Starts the server after [`Cluster::stop`], with the same settings and environment. Does
    /// nothing if the server is running.
    ///
    /// Fails for the same reasons as [`Builder::start`](crate::Builder::start).
    ///
    /// ```no_run
    /// # use trunkline_embedded::{Cluster, Stop};
    /// let cluster = Cluster::temporary().start()?;
    /// cluster.stop(Stop::Fast)?;
    /// cluster.start_again()?;
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn start_again(&self) -> Result<()> {
        let _lock = self.home.lock(&self.account)?;
        self.run().map(drop)
    }

    /// Calls [`Cluster::stop`] and [`Cluster::start_again`] under one lock, so no other process can
    /// use the cluster in between.
    ///
    /// ```no_run
    /// # use trunkline_embedded::{Cluster, Stop};
    /// let cluster = Cluster::temporary().start()?;
    /// cluster.restart(Stop::Immediate)?;
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn restart(&self, how: Stop) -> Result<()> {
        let _lock = self.home.lock(&self.account)?;
        server::stop(&self.account, &self.home.data(), how)?;
        self.run().map(drop)
    }

    /// Creates the cluster if it does not exist, and starts the server if it is not running. The
    /// caller must hold the lock.
    pub(crate) fn run(&self) -> Result<Running> {
        let data = self.home.data();
        if let Some(running) = server::ready(&data)? {
            server::shorten_log(&self.account, &self.home);
            return Ok(running);
        }
        let input = || self.watchdog.as_ref().map_or_else(Stdio::null, Watchdog::leash);
        if !data.exists() {
            if !self.home.root().exists() {
                return Err(Error::new(format!("the folder {} has been removed", self.home.root().display())));
            }
            server::create(&self.account, &self.binaries, &self.home, self.end != End::Remove, input())?;
        }
        server::start(&self.account, &self.binaries, &self.home, &self.settings, &self.environment, input())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        match self.end {
            End::Stay => {}
            End::Stop => drop(self.stop(Stop::Fast)),
            End::Remove => {
                let _ = self.stop(Stop::Immediate);
                self.home.remove();
            }
        }
    }
}
