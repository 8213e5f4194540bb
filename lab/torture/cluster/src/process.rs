//! Processes that this program starts. Signals are sent to process ids, including those of child
//! processes. A watchdog ends all processes, no matter how this program ends.

use std::{
    fs,
    io::Result,
    path::Path,
    process::{Child, Command, Stdio},
};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

/// The shell script that the watchdog runs once its input ends; `$0` is the private folder. The
/// process ids of etcd and Patroni are in `pids`. The process ids of the servers are in their data
/// folders.
const END: &str = r#"
trap '' HUP INT TERM
read -r _
family() { for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do family "$child"; done; echo "$1"; }
for file in "$0"/pids/* "$0"/*/data/postmaster.pid; do
    pid=
    read -r pid 2>/dev/null <"$file"
    case $pid in '' | *[!0-9]*) ;; *) kill -s KILL $(family "$pid") 2>/dev/null ;; esac
done
[ -n "$1" ] || rm -rf -- "$0"
"#;

/// Ends all processes of the private folder, and removes the folder, when this value is dropped or
/// this process ends.
pub struct Watchdog(Child);

impl Watchdog {
    /// Starts the watchdog. With `keep`, it does not remove the folder.
    pub fn start(folder: &Path, keep: bool) -> Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", END]).arg(folder).arg(if keep { "keep" } else { "" });
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // The shell has its own process group, so that Ctrl-C in the terminal does not reach it.
        // Ctrl-C ends this program, and thereby wakes the shell.
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        shell.spawn().map(Self)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Starts a process that writes to a log, and records its id for the watchdog.
pub fn start(mut command: Command, folder: &Path, name: &str) -> Result<Child> {
    let log = fs::File::options().create(true).append(true).open(folder.join(format!("{name}.log")))?;
    command.current_dir(folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.spawn()?;
    fs::create_dir_all(folder.join("pids"))?;
    fs::write(folder.join("pids").join(name), child.id().to_string())?;
    Ok(child)
}

/// Returns a process and all its descendants, parents first.
pub fn family(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    std::iter::once(pid).chain(children.flat_map(family)).collect()
}

/// Sends a signal to each of these processes. A process that no longer exists is not an error.
pub fn signal(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns the server's process id from the first line of `postmaster.pid`, if that process exists.
pub fn postmaster(data: &Path) -> Option<u32> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid: u32 = text.lines().next()?.trim().parse().ok()?;
    // Checks the name of the process: after a SIGKILL the file remains, and the id in it may now
    // belong to another process.
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    (name.trim() == "postgres").then_some(pid)
}
