//! A process with all its children, which are ended by their ids.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

/// The watchdog's script. It waits for the end of its input, which comes when this process ends.
/// Then it kills the broker's processes and removes the broker's folder, `$0`.
const END: &str = r#"
trap '' HUP INT TERM
read -r _
family() { for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do family "$child"; done; echo "$1"; }
for file in "$0"/pids/*; do
    pid=
    read -r pid 2>/dev/null <"$file"
    # An id that was given again is of a process that knows nothing of this folder.
    grep -qF "$0" "/proc/$pid/environ" 2>/dev/null && kill -s KILL $(family "$pid") 2>/dev/null
done
rm -rf -- "$0"
"#;

/// Kills processes started in a folder and removes it, when dropped or when this process ends.
pub(super) struct Watchdog(Child);

impl Watchdog {
    pub fn start(folder: &Path) -> std::io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", END]).arg(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // The shell has its own process group. So Ctrl-C in the terminal ends only this process,
        // whose end wakes the shell.
        shell.process_group(0).spawn().map(Self)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A process that ends when dropped.
pub struct Process(Child);

impl Process {
    /// Starts the process in a folder, with its output in a log. Records its id for the watchdog.
    pub(super) fn start(mut command: Command, folder: &Path, log: &str) -> Self {
        let file = fs::File::options().create(true).append(true).open(folder.join(log)).expect("a log");
        command.stdout(file.try_clone().expect("a log")).stderr(file).stdin(Stdio::null());
        command.current_dir(folder).process_group(0).env("TRUNKLINE_BROKER_FOLDER", folder);
        let child = command.spawn().expect("the program starts");
        fs::create_dir_all(folder.join("pids")).expect("a folder");
        fs::write(folder.join("pids").join(child.id().to_string()), format!("{}\n", child.id())).expect("a file");
        Self(child)
    }

    pub fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    pub fn kill(&mut self) {
        if self.runs() {
            self.signal(Signal::KILL);
            let _ = self.0.wait();
        }
    }

    /// Ends the process with SIGTERM. Returns its exit status.
    pub fn end(&mut self) -> Option<ExitStatus> {
        if self.runs() {
            let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        }
        self.0.wait().ok()
    }

    /// Returns the resident memory in KiB, from `/proc`.
    pub fn resident(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).ok()?;
        status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?.parse().ok()
    }

    /// Sends a signal to the process and its descendants. Its id cannot be reused, because the
    /// process was not waited for.
    fn signal(&self, signal: Signal) {
        for pid in family(self.0.id()).into_iter().filter_map(|id| Pid::from_raw(id.cast_signed())) {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a process and its descendants, parents first.
fn family(id: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let children = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let children: Vec<u32> =
        children.flat_map(|text| text.split_whitespace().map(str::parse).collect::<Vec<_>>()).flatten().collect();
    std::iter::once(id).chain(children.into_iter().flat_map(family)).collect()
}
