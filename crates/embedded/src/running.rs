use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) const USER: &str = "trunkline";

/// A running server, as described by its `postmaster.pid`.
///
/// ```no_run
/// # use trunkline_embedded::Cluster;
/// if let Some(running) = Cluster::status("/srv/queue") {
///     println!("process {}: {}", running.pid(), running.url("postgres"));
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pid: u32,
    port: u16,
    socket_dir: PathBuf,
    ready: bool,
}

impl Running {
    /// Reads the file `postmaster.pid`, and checks that its process is a server in this folder.
    /// Returns `None` if no server is running.
    pub(crate) fn in_data(data: &Path) -> Option<Self> {
        let found = Self::parse(&std::fs::read_to_string(data.join("postmaster.pid")).ok()?)?;
        let line = command_line(found.pid)?;
        (is_postgres(&line) && line.contains(data.to_str()?)).then_some(found)
    }

    /// Parses the lines of the file: process, data folder, start time, port, socket folder,
    /// address, shared memory, state.
    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let line = |at: usize| lines.get(at).copied().unwrap_or_default();
        Some(Self {
            pid: line(0).parse().ok()?,
            port: line(3).parse().unwrap_or_default(),
            socket_dir: PathBuf::from(line(4)),
            ready: line(7) == "ready",
        })
    }

    /// Returns the process id of the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the port, which is part of the socket's name.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder of the socket.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// Returns the superuser's name.
    #[must_use]
    pub fn user(&self) -> &'static str {
        USER
    }

    /// Returns true if the server accepts connections.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Returns a connection string for a database, in the format of libpq and `tokio-postgres`.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        url(&self.socket_dir, self.port, database)
    }
}

pub(crate) fn url(socket_dir: &Path, port: u16, database: &str) -> String {
    let host = quoted(&socket_dir.to_string_lossy());
    format!("host={host} port={port} user={USER} dbname={}", quoted(database))
}

fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Removes a `postmaster.pid` that a crash left behind, if its process is not PostgreSQL. Otherwise
/// the server would refuse to start. PostgreSQL itself checks for another server.
pub(crate) fn forget_stale(data: &Path) {
    let file = data.join("postmaster.pid");
    let Some(found) = std::fs::read_to_string(&file).ok().and_then(|text| Running::parse(&text)) else { return };
    if !command_line(found.pid).is_some_and(|line| is_postgres(&line)) {
        let _ = std::fs::remove_file(file);
    }
}

/// Returns the arguments of a process, separated by zero bytes on Linux. Returns `None` if the
/// process does not exist, or is a zombie.
fn command_line(pid: u32) -> Option<String> {
    let line = if cfg!(target_os = "linux") {
        std::fs::read(format!("/proc/{pid}/cmdline")).ok()?
    } else {
        Command::new("ps").args(["-p", &pid.to_string(), "-o", "command="]).output().ok()?.stdout
    };
    Some(String::from_utf8_lossy(&line).into_owned()).filter(|line| !line.trim().is_empty())
}

/// Returns true if the program is a server. Arguments may contain the word, like those of the
/// watchdog's script. `pg_ctl` passes `-D` first.
fn is_postgres(line: &str) -> bool {
    let program = match line.split_once('\0').or_else(|| line.split_once(" -D ")) {
        Some((program, _)) => program,
        None => line.split_whitespace().next().unwrap_or_default(),
    };
    matches!(program.rsplit('/').next(), Some("postgres" | "postmaster"))
}

/// Polls until `look` returns a value, because only a parent process is notified of changes.
pub(crate) fn wait_until<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(seen) = look() {
            return Ok(seen);
        }
        if Instant::now() >= deadline {
            return Err(Error::new(format!("{what} within {} seconds", limit.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_blanks_and_quotes_are_quoted() {
        let url = url(Path::new("/a b"), 5432, "it's\\");
        assert_eq!(url, r"host='/a b' port=5432 user=trunkline dbname='it\'s\\'");
    }

    #[test]
    fn server_is_known_by_its_program_and_not_by_its_arguments() {
        for server in [
            "/opt/pg/bin/postgres\0-D\0/srv/queue/data\0",
            "postmaster\0",
            "/Application Support/bin/postgres -D /a b/data\n",
        ] {
            assert!(is_postgres(server), "{server}");
        }
        for other in [
            "/bin/sh\0-c\0read -r pid < postmaster.pid\0/srv/postgres/data\0INT\0",
            "/usr/bin/vi\0/srv/trunkline/postgres\0",
            "/opt/postgres/bin/psql\0",
            "/bin/tail -f /srv/trunkline/postgres\n",
            "",
        ] {
            assert!(!is_postgres(other), "{other}");
        }
    }

    #[test]
    fn half_a_file_is_a_server_that_is_not_ready() {
        let running = Running::parse("17\n/data\n1700000000\n").unwrap();
        assert!(running.pid() == 17 && !running.is_ready());
        assert_eq!(Running::parse(""), None);
    }
}
