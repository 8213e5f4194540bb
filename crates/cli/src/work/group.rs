//! The process groups of the commands. Signals go to a whole group, and no group outlives the
//! program.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    mem,
    os::unix::process::CommandExt,
    process::{ChildStdin, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

use crate::{
    address::secret_variables,
    error::{Error, Result},
};

static RUNNING: Mutex<RunningGroups> = Mutex::new(RunningGroups { ids: BTreeSet::new(), guard: None });

/// The running groups, and the input of the guard. The guard is a process that kills the groups if
/// this program is killed.
struct RunningGroups {
    ids: BTreeSet<i32>,
    guard: Option<ChildStdin>,
}

impl RunningGroups {
    /// Notifies the guard. If the guard has ended, commands run without it.
    fn note(&mut self, sign: char, id: i32) {
        let _ = self.guard.as_mut().map(|guard| guard.write_all(format!("{sign}{id}\n").as_bytes()));
    }
}

fn running() -> MutexGuard<'static, RunningGroups> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a process that kills the groups if this program ends without doing so. This works on
/// every Unix, and it also reaches processes that a command has started. Linux can send a signal
/// when a parent process dies, but only to the parent's own children.
pub fn guard() -> Result<()> {
    let mut guard = std::process::Command::new("sh");
    guard.args(["-c", include_str!("guard.sh"), "trunkline-guard"]);
    for name in secret_variables(|name| std::env::var(name).ok()) {
        guard.env_remove(name);
    }
    guard.current_dir("/");
    guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Terminal signals are meant for the program, which stops its commands gracefully.
    let started = guard.process_group(0).spawn();
    let started = started.map_err(|cause| Error::new(format!("cannot start sh: {cause}")))?;
    running().guard = started.stdin;
    Ok(())
}

/// A command's process group. Dropping the value kills the processes that are left in the group.
#[derive(Debug)]
pub struct Group(Pid);

impl Group {
    /// Starts a command in its own process group.
    pub fn start(command: &mut Command) -> io::Result<(Child, Self)> {
        let mut running = running(); // locked, so that `kill_all` misses no command
        let child = command.process_group(0).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = id.ok_or_else(|| io::Error::other("a process without a number"))?;
        running.ids.insert(id.as_raw_nonzero().get());
        running.note('+', id.as_raw_nonzero().get());
        Ok((child, Self(id)))
    }

    pub fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.0, signal); // the group may be empty already
    }

    pub fn is_gone(&self) -> bool {
        test_kill_process_group(self.0).is_err()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let mut running = running();
        running.ids.remove(&self.0.as_raw_nonzero().get());
        running.note('-', self.0.as_raw_nonzero().get());
    }
}

pub fn with_ids<R>(act: impl FnOnce(&BTreeSet<i32>) -> R) -> R {
    act(&running().ids)
}

/// Kills every command, and prevents further commands from starting, because the program is about
/// to exit.
pub fn kill_all() {
    let running = running();
    for id in running.ids.iter().copied().filter_map(Pid::from_raw) {
        let _ = kill_process_group(id, Signal::KILL); // the group may be empty already
    }
    mem::forget(running);
}
