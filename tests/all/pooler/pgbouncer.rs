//! A private pgbouncer in transaction mode, in front of the cluster.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::fixture::{cluster, eventually, through, user};

/// The number of server connections per database.
pub const SERVERS: usize = 2;

/// The shell script that runs pgbouncer. It stops pgbouncer when its input closes, which happens
/// when the value is dropped or the process ends. Since 1.23, pgbouncer waits for its clients after
/// any other signal. The clients would wait for the thread that waits here.
const RUN: &str = r#""$0" -q "$1/pgbouncer.ini" & cat >/dev/null; kill -s QUIT $!; wait $!; rm -r "$1""#;

pub struct Pgbouncer {
    folder: PathBuf,
    running: Child,
}

impl Drop for Pgbouncer {
    fn drop(&mut self) {
        drop(self.running.stdin.take());
        let _ = self.running.wait(); // the shell has removed the folder
    }
}

/// Returns the program and its version.
fn installed() -> (PathBuf, (u32, u32)) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let found = places.map(|place| place.join("pgbouncer")).find_map(|program| {
        let said = Command::new(&program).arg("--version").output().ok()?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let mut version = said.lines().next()?.strip_prefix("PgBouncer ")?.split('.').map(str::parse);
        Some((program, (version.next()?.ok()?, version.next()?.ok()?)))
    });
    found.expect("no pgbouncer: put the folder of one first in PATH (see .ci/pgbouncer)")
}

impl Pgbouncer {
    pub async fn start() -> Self {
        let (program, _) = installed();
        Self::start_with(&program, "").await
    }

    /// Starts a pgbouncer that tracks prepared statements across server connections.
    pub async fn with_statements() -> Self {
        let (program, (major, minor)) = installed();
        let is_new = (major, minor) >= (1, 21);
        assert!(is_new, "pgbouncer {major}.{minor} has no max_prepared_statements, 1.21 has (see .ci/pgbouncer)");
        Self::start_with(&program, "max_prepared_statements = 100").await
    }

    async fn start_with(program: &Path, more: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("trunkline-pgb-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        // Accounts other than root must be able to enter the folder, because pgbouncer runs under
        // the account that runs the cluster.
        let folder = cluster().socket_dir().parent().expect("not the root").join(name);
        fs::create_dir(&folder).expect("a folder is made");
        let (mine, theirs) = (fs::metadata(&folder), fs::metadata(cluster().data_dir()));
        let (mine, theirs) = (mine.expect("it is there"), theirs.expect("it is there"));
        let text = format!(
            "[databases]\n* = host={} port={} user={}\n[pgbouncer]\npool_mode = transaction\n\
             default_pool_size = {SERVERS}\nmax_client_conn = 200\nauth_type = any\nunix_socket_dir = {}\n\
             listen_port = 6432\nlogfile = {}/log\n{more}\n",
            cluster().socket_dir().display(),
            cluster().port(),
            user(),
            folder.display(),
            folder.display(),
        );
        fs::write(folder.join("pgbouncer.ini"), text).expect("written");
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(RUN).arg(program).arg(&folder).stdin(Stdio::piped()).process_group(0);
        if mine.uid() != theirs.uid() {
            chown(&folder, Some(theirs.uid()), Some(theirs.gid())).expect("given");
            command.uid(theirs.uid()).gid(theirs.gid());
        }
        let running = command.spawn().expect("started");
        let pgbouncer = Self { folder, running };
        let socket = pgbouncer.folder.join(".s.PGSQL.6432");
        eventually("pgbouncer listens", async || socket.exists()).await;
        pgbouncer
    }

    /// Returns the address of a database through this pgbouncer.
    pub fn before(&self, url: &str) -> String {
        through(url, &format!("host={} port=6432", self.folder.display()))
    }
}
