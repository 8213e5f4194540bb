//! The commands' process groups: signalled as a whole, and none outlives the program where the program can help it.

use std::{
    collections::BTreeSet,
    io, mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command's process group. Dropped, it is killed, with whatever is left in it.
#[derive(Debug)]
pub struct Group(Pid);

impl Group {
    /// Starts a command in a group of its own.
    pub fn start(command: &mut Command) -> io::Result<(Child, Self)> {
        let mut running = running(); // so that `kill_all` misses none
        let child = command.process_group(0).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = id.ok_or_else(|| io::Error::other("a process without a number"))?;
        running.insert(id.as_raw_nonzero().get());
        Ok((child, Self(id)))
    }

    pub fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.0, signal); // there may be nobody left, which is as well
    }

    pub fn is_gone(&self) -> bool {
        test_kill_process_group(self.0).is_err()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        running().remove(&self.0.as_raw_nonzero().get());
    }
}

/// Kills every command, and lets none start any more: the program is about to exit.
pub fn kill_all() {
    let running = running();
    for id in running.iter().copied().filter_map(Pid::from_raw) {
        let _ = kill_process_group(id, Signal::KILL); // as above
    }
    mem::forget(running);
}
