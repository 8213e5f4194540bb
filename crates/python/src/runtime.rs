//! The runtime that all handles of a process share, in threads of its own. None of them ever waits
//! for Python's lock.

use std::{
    process,
    sync::{OnceLock, PoisonError, RwLock},
    thread::{self, ThreadId},
    time::Duration,
};

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::runtime::{Builder, Handle};

/// Python keeps one core busy, the server another.
const THREADS: usize = 2;

/// With the process that started it: the threads do not come along through a fork.
static RUNTIME: RwLock<Option<(u32, Handle)>> = RwLock::new(None);

/// That of this process, which ends with it.
pub fn handle() -> PyResult<Handle> {
    let own = process::id();
    if let Some((of, handle)) = &*RUNTIME.read().unwrap_or_else(PoisonError::into_inner)
        && *of == own
    {
        return Ok(handle.clone());
    }
    let mut place = RUNTIME.write().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, handle)) = &*place
        && *of == own
    {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("trunkline").enable_all().build();
    let runtime = runtime.map_err(|cause| PyRuntimeError::new_err(format!("cannot start threads: {cause}")))?;
    let handle = runtime.handle().clone();
    std::mem::forget(runtime); // it must not wait for anything at the interpreter's exit
    *place = Some((own, handle.clone()));
    Ok(handle)
}

/// The thread that ends the interpreter, once one does.
static ENDS: OnceLock<ThreadId> = OnceLock::new();
/// How long threads that come back to Python just then have for it.
const LAST: Duration = Duration::from_millis(5);

/// Does what needs no Python without its lock. Does not return in a thread that outlives the
/// interpreter: Python would end the thread where it asks for the lock, which with Rust's frames
/// below aborts the process.
pub fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    py.detach(|| {
        let done = work();
        while ENDS.get().is_some_and(|by| *by != thread::current().id()) {
            thread::park();
        }
        done
    })
}

/// The interpreter is about to end, in this thread.
#[pyfunction]
pub fn at_exit(py: Python<'_>) {
    let _ = ENDS.set(thread::current().id()); // it ends once
    py.detach(|| thread::sleep(LAST));
}

/// The process that made something which cannot be used in another.
#[derive(Debug, Clone, Copy)]
pub struct Owner(u32);

impl Owner {
    pub fn this() -> Self {
        Self(process::id())
    }

    /// # Errors
    /// This process is a fork of the owner.
    pub fn check(self) -> PyResult<()> {
        if self.0 == process::id() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(format!(
            "this was opened in process {}, of which this one is a fork: connections do not come along; call Db.connect after the fork",
            self.0
        )))
    }
}

/// Drops something that goes back to the queue in a task.
pub fn drop_within<T>(what: T) {
    match handle() {
        Ok(handle) => {
            let _within = handle.enter();
            drop(what);
        }
        Err(_) => drop(what),
    }
}
