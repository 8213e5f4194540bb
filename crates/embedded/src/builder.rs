use crate::account::Account;
use crate::cluster::{Cluster, End};
use crate::error::{Error, Result};
use crate::find::Binaries;
use crate::home::Home;
use crate::places;
use crate::running::{self, Running};
use crate::server::{self, Stop};
use crate::watchdog::Watchdog;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

impl Cluster {
    /// Builds a temporary cluster in a new folder, which is removed when the cluster ends. It
    /// allows 200 connections.
    ///
    /// ```no_run
    /// let cluster = trunkline_embedded::Cluster::temporary().start()?;
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn temporary() -> Builder {
        Builder::new(None)
    }

    /// Builds a cluster that is kept in the folder `path`. The folder is created on demand.
    ///
    /// ```no_run
    /// let cluster = trunkline_embedded::Cluster::at("/srv/queue").stay(true).start()?;
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn at(path: impl AsRef<Path>) -> Builder {
        Builder::new(Some(path.as_ref().to_owned()))
    }

    /// Returns the default folder of a kept cluster: `trunkline/postgres` in `XDG_DATA_HOME`,
    /// `~/.local/share` or `~/Library/Application Support`. For root the folder is in `/var/lib` if
    /// the server's account may not enter the other folders.
    ///
    /// Fails if neither that variable nor `HOME` is set.
    ///
    /// ```
    /// let folder = trunkline_embedded::Cluster::usual_place()?;
    /// assert!(folder.ends_with("trunkline/postgres"));
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn usual_place() -> Result<PathBuf> {
        places::data()
    }

    /// Returns the cluster that runs in the folder `path`, to stop or restart it. Returns `None` if
    /// no cluster runs there. Does not wait for a server that is starting or shutting down.
    /// Dropping the value does not affect the server.
    ///
    /// ```no_run
    /// # use trunkline_embedded::{Cluster, Stop};
    /// if let Some(cluster) = Cluster::attach("/srv/queue")? {
    ///     cluster.stop(Stop::Fast)?;
    /// }
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn attach(path: impl AsRef<Path>) -> Result<Option<Self>> {
        let path = path.as_ref();
        if Self::status(path).is_none() {
            return Ok(None);
        }
        let account = Account::of_the_server()?.of_the_owner(&path.join("data"));
        let home = Home::kept(path, &account)?;
        let _lock = home.lock(&account)?;
        // Checks again, because another process may have stopped the server before this one got the
        // lock.
        let Some(running) = Running::in_data(&home.data()) else { return Ok(None) };
        let mut builder = Self::at(path);
        builder.binaries = Binaries::of_server(&home.data());
        let binaries = builder.programs(Some(&home.data()))?;
        // A server that has only begun its file has not written the folder there yet.
        let named = Some(running.socket_dir()).filter(|folder| !folder.as_os_str().is_empty());
        let socket_dir = named.unwrap_or(home.socket_dir()).to_owned();
        let Builder { settings, environment, .. } = builder;
        Ok(Some(Self { account, binaries, home, settings, environment, end: End::Stay, socket_dir, watchdog: None }))
    }
}

/// The options of a cluster. [`Builder::start`] starts it.
///
/// ```no_run
/// # use trunkline_embedded::Cluster;
/// let cluster = Cluster::temporary().setting("fsync", "off").setting("work_mem", "16MB").start()?;
/// # Ok::<(), trunkline_embedded::Error>(())
/// ```
#[must_use]
pub struct Builder {
    path: Option<PathBuf>,
    stay: bool,
    settings: Vec<(String, String)>,
    environment: Vec<(OsString, OsString)>,
    binaries: Option<Binaries>,
    progress: Box<dyn FnMut(u64, u64)>,
}

impl Builder {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        let connections = path.is_none().then(|| ("max_connections".to_owned(), "200".to_owned()));
        let settings = connections.into_iter().collect();
        Self { path, stay: false, settings, environment: Vec::new(), binaries: None, progress: Box::new(|_, _| {}) }
    }

    /// Adds a server setting, as in postgresql.conf. If a name is set several times, the last value
    /// applies. `listen_addresses`, `port` and `unix_socket_directories` have no effect. A server
    /// that is already running keeps its settings.
    ///
    /// ```
    /// let builder = trunkline_embedded::Cluster::temporary().setting("synchronous_commit", "off");
    /// ```
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Adds an environment variable for the server's processes, in addition to the variables
    /// inherited from this process. If a name is set several times, the last value applies.
    /// Variables whose names begin with `PG` are not inherited, but may be set here. The variable
    /// applies at every start, and also to `pg_ctl`, which starts the server. It does not apply
    /// while the cluster is created. A server that is already running keeps its environment.
    ///
    /// [`start`](Builder::start) fails if a name is empty or contains `=`, or if a name or value
    /// contains a zero byte.
    ///
    /// ```
    /// let builder = trunkline_embedded::Cluster::temporary()
    ///     .env("LD_PRELOAD", "/usr/lib/libfaketime.so.1");
    /// ```
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets whether the server continues to run after this process has ended. Only a kept cluster
    /// may stay.
    ///
    /// ```
    /// let builder = trunkline_embedded::Cluster::at("/srv/queue").stay(true);
    /// ```
    pub fn stay(mut self, stay: bool) -> Self {
        self.stay = stay;
        self
    }

    /// Sets the programs to run, instead of the choice of [`Binaries::find_or_fetch`].
    ///
    /// ```no_run
    /// # use trunkline_embedded::{Binaries, Cluster};
    /// let builder = Cluster::temporary().binaries(Binaries::fetch(|_, _| {})?);
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn binaries(mut self, binaries: Binaries) -> Self {
        self.binaries = Some(binaries);
        self
    }

    /// Sets the function that is called with the bytes done and the total bytes while PostgreSQL is
    /// fetched; see [`Binaries::fetch`].
    ///
    /// ```
    /// let builder = trunkline_embedded::Cluster::temporary()
    ///     .progress(|done, all| eprint!("\r{done} of {all}"));
    /// ```
    pub fn progress(mut self, progress: impl FnMut(u64, u64) + 'static) -> Self {
        self.progress = Box::new(progress);
        self
    }

    /// Starts the cluster, and returns when the server accepts connections. Finds the programs,
    /// creates the cluster and starts the server, unless this is already done. Several processes
    /// may start a cluster in the same folder at the same time.
    ///
    /// Fails if there are no programs, if their major version differs from the cluster's, or if the
    /// server's account cannot use the folder. Also fails if the server does not start within two
    /// minutes; the error then contains the end of the server's log.
    ///
    /// ```no_run
    /// let cluster = trunkline_embedded::Cluster::temporary().start()?;
    /// assert!(cluster.pid().is_some());
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn start(mut self) -> Result<Cluster> {
        crate::settings::file(&self.settings, Path::new("/"))?;
        crate::settings::environment(&self.environment)?;
        let account = Account::of_the_server()?;
        let Some(path) = self.path.take() else { return self.start_temporary(account) };
        let account = account.of_the_owner(&path.join("data"));
        let home = Home::kept(&path, &account)?;
        let lock = home.lock(&account)?;
        let cluster = self.start_kept(account, home)?;
        drop(lock);
        Ok(cluster)
    }

    /// Starts a kept cluster, whose lock the caller must hold.
    fn start_kept(mut self, account: Account, home: Home) -> Result<Cluster> {
        let binaries = self.programs(Some(&home.data()))?;
        let is_running = server::ready(&home.data())?.is_some();
        if !is_running {
            // Removes an old `postmaster.pid`. If the file stays, the watchdog ignores the server
            // that it describes.
            running::forget_stale(&home.data());
        }
        let end = if self.stay || is_running { End::Stay } else { End::Stop };
        let watchdog = if end == End::Stop { Some(Watchdog::start(&account, &home, false)?) } else { None };
        self.cluster(account, binaries, home, end, watchdog)
    }

    fn start_temporary(mut self, account: Account) -> Result<Cluster> {
        if self.stay {
            return Err(Error::new("a temporary cluster cannot stay: use Cluster::at, which keeps its data"));
        }
        let binaries = self.programs(None)?;
        let home = Home::temporary(&account)?;
        let watchdog = Watchdog::start(&account, &home, true)?;
        self.cluster(account, binaries, home, End::Remove, Some(watchdog))
    }

    fn cluster(
        self,
        account: Account,
        binaries: Binaries,
        home: Home,
        end: End,
        watchdog: Option<Watchdog>,
    ) -> Result<Cluster> {
        let socket_dir = home.socket_dir().to_owned();
        let Self { settings, environment, .. } = self;
        let mut cluster = Cluster { account, binaries, home, settings, environment, end, socket_dir, watchdog };
        let running = cluster.run().inspect_err(|_| {
            if cluster.end == End::Stop {
                // Stops the server here, because the caller holds the lock for which the end of the
                // cluster would wait.
                let _ = server::stop(&cluster.account, &cluster.home.data(), Stop::Fast);
                cluster.end = End::Stay;
            }
        })?;
        running.socket_dir().clone_into(&mut cluster.socket_dir);
        Ok(cluster)
    }

    fn programs(&mut self, data: Option<&Path>) -> Result<Binaries> {
        let created_by = data.and_then(|data| std::fs::read_to_string(data.join("PG_VERSION")).ok());
        let major = created_by.and_then(|version| version.trim().parse::<u32>().ok());
        let of_major = || major.map_or(Ok(None), Binaries::of_major);
        let binaries = match self.binaries.take() {
            Some(chosen) => chosen,
            None => of_major()?.map_or_else(|| Binaries::find_or_fetch(&mut self.progress), Ok)?,
        };
        match major {
            Some(major) if major != binaries.major() => Err(Error::new(format!(
                "the cluster in {} was created by PostgreSQL {major}, and {} is {}: install PostgreSQL {major}, and \
                 set TRUNKLINE_PG_BIN to its bin folder if it is not found",
                data.unwrap_or(Path::new("")).display(),
                binaries.dir().display(),
                binaries.version()
            ))),
            _ => Ok(binaries),
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Builder");
        shown.field("path", &self.path).field("stay", &self.stay).field("settings", &self.settings);
        shown.field("environment", &self.environment).field("binaries", &self.binaries).finish_non_exhaustive()
    }
}
