use crate::account::{Account, Mode};
use crate::error::{Error, Result};
use crate::find::Binaries;
use crate::home::Home;
use crate::running::{self, Running, USER};
use crate::settings;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The time limit for a start. It is long enough for a private cluster's recovery after a crash.
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(60);
const LONGEST_LOG: u64 = 16 << 20;

/// The mode of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Waits until the last client has disconnected, at most a minute.
    Smart,
    /// Ends the clients' sessions, rolls back their transactions, and writes a checkpoint.
    Fast,
    /// Ends at once, as in a crash. The next start recovers from the log, and no committed data is
    /// lost.
    Immediate,
}

/// Creates the data folder atomically.
pub(crate) fn create(account: &Account, binaries: &Binaries, home: &Home, durable: bool, input: Stdio) -> Result<()> {
    let (data, new) = (home.data(), home.root().join("data.new"));
    if new.exists() {
        fs::remove_dir_all(&new).map_err(Error::at("cannot remove", &new))?;
    }
    let mut initdb = account.command(binaries.dir().join("initdb"));
    initdb.arg("-D").arg(&new).arg("--username").arg(USER);
    initdb.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions"]);
    if !durable {
        initdb.arg("--no-sync");
    }
    run(initdb.stdin(input), "create a cluster").map_err(Error::new)?;
    let include = format!("\ninclude_if_exists = '{}'\n", settings::FILE);
    account.write(&new.join("postgresql.conf"), &include, Mode::Append)?;
    fs::rename(&new, &data).map_err(Error::at("cannot rename", &new))
}

pub(crate) fn start(
    account: &Account,
    binaries: &Binaries,
    home: &Home,
    settings: &[(String, String)],
    environment: &[(OsString, OsString)],
    input: Stdio,
) -> Result<Running> {
    let (data, log) = (home.data(), home.log());
    account.write(&data.join(settings::FILE), &settings::file(settings, home.socket_dir())?, Mode::Replace)?;
    running::forget_stale(&data);
    shorten_log(account, home);
    let before = log.metadata().map_or(0, |log| log.len());
    let mut pg_ctl = account.command(binaries.dir().join("pg_ctl"));
    pg_ctl.arg("start").arg("-D").arg(&data).arg("-l").arg(&log);
    pg_ctl.args(["-w", "-s", "-t", &START_LIMIT.as_secs().to_string()]);
    // Sets the library path, because unpacked programs need their own libpq for modules that they
    // load later, for example for replication.
    let libraries = binaries.dir().join("../lib");
    if libraries.join("libpq.so.5").exists() {
        pg_ctl.env("LD_LIBRARY_PATH", libraries);
    }
    pg_ctl.envs(environment.iter().map(|(name, value)| (name, value)));
    run(pg_ctl.stdin(input), "start the server").map_err(|mut text| {
        let (new, log) = (last_lines(&new_lines(account, &log, before)), log.display());
        let _ = write!(text, "\nThe end of {log} shows the reason; fix it and start again:\n{new}");
        Error::new(text)
    })?;
    ready(&data)?.ok_or_else(|| Error::new(format!("the server ended at once: {} shows the reason", log.display())))
}

/// Moves the lines of a long log into a second file, which replaces an older one. The server may be
/// running: it appends to the same file, which becomes empty. The few lines that it writes in
/// between are lost.
pub(crate) fn shorten_log(account: &Account, home: &Home) {
    let (log, older) = (home.log(), home.root().join("server.log.1"));
    if log.metadata().is_ok_and(|log| log.len() > LONGEST_LOG) {
        // If this fails, the log stays as it is, and the next start tries again.
        let _ = account.shell(r#"cp -- "$0" "$1" && : > "$0""#, &[log.as_os_str(), older.as_os_str()]);
    }
}

/// Waits until the server accepts connections, or has ended. Returns `None` if no server runs.
/// Another process may just have started the server, or be stopping it.
pub(crate) fn ready(data: &Path) -> Result<Option<Running>> {
    let what = format!("the server in {} did not get ready", data.display());
    running::wait_until(START_LIMIT, &what, || match Running::in_data(data) {
        None => Some(None),
        running => running.filter(Running::is_ready).map(Some),
    })
}

pub(crate) fn stop(account: &Account, data: &Path, how: Stop) -> Result<()> {
    let Some(running) = Running::in_data(data) else { return Ok(()) };
    let signal = match how {
        Stop::Smart => "TERM",
        Stop::Fast => "INT",
        Stop::Immediate => "QUIT",
    };
    let pid = running.pid().to_string();
    account.shell(r#"kill -s "$0" "$1""#, &[signal.as_ref(), pid.as_ref()])?;
    let advice = match how {
        Stop::Smart => " (clients are still connected: Stop::Fast ends them)",
        Stop::Fast => " (Stop::Immediate ends it at once)",
        Stop::Immediate => "",
    };
    let what = format!("the server, process {pid}, did not stop{advice}");
    running::wait_until(STOP_LIMIT, &what, || Running::in_data(data).is_none().then_some(()))
}

/// Runs a command. Fails with a text that contains the end of its standard error.
fn run(command: &mut Command, what: &str) -> std::result::Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|cause| format!("cannot run {program}: {cause}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("cannot {what}: {program} failed: {}", last_lines(&String::from_utf8_lossy(&output.stderr))))
}

/// Returns what was appended to the log since it had the length `before`. Reads it as the account,
/// because root would follow a symbolic link.
fn new_lines(account: &Account, log: &Path, before: u64) -> String {
    let from = format!("+{}", before + 1);
    let read = account.shell(r#"tail -c "$1" -- "$0""#, &[log.as_os_str(), from.as_ref()]);
    read.map_or_else(|_| String::new(), |read| String::from_utf8_lossy(&read.stdout).into_owned())
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
