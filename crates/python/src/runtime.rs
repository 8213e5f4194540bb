//! The runtime of all handles of a process. Its threads never wait for Python's lock.

use std::{
    process,
    sync::{
        OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::runtime::{Builder, Handle};

/// The number of threads: two, because Python keeps one core busy and the server another.
const THREADS: usize = 2;

/// The runtime and the id of its process. A fork has no copy of the threads, so it needs its own
/// runtime.
static RUNTIME: RwLock<Option<(u32, Handle)>> = RwLock::new(None);

/// Returns the runtime of this process, and starts it on first use.
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
    std::mem::forget(runtime); // dropping it would wait at the interpreter's exit
    *place = Some((own, handle.clone()));
    Ok(handle)
}

/// The thread that ends the interpreter, once this has begun.
static ENDS: OnceLock<ThreadId> = OnceLock::new();
/// The time that threads get to return to Python.
const LAST: Duration = Duration::from_millis(5);

/// Runs work without Python's lock. Does not return in a thread that outlives the interpreter:
/// Python would end such a thread when it takes the lock, and with Rust's frames on the stack that
/// would abort the process.
pub fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    py.detach(|| {
        let done = work();
        while ENDS.get().is_some_and(|by| *by != thread::current().id()) {
            thread::park();
        }
        done
    })
}

/// The last exit handler of the interpreter. `atexit` calls its handlers in reverse order, so
/// handlers that were registered before this one are called after it, and may wait for threads that
/// return from calls. `atexit` drops all handlers after it has called them.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Exit {
    is_called: AtomicBool,
}

#[pymethods]
impl Exit {
    #[new]
    fn new() -> Self {
        Self { is_called: AtomicBool::new(false) }
    }

    fn __call__(&self) {
        self.is_called.store(true, Ordering::Relaxed);
    }
}

impl Drop for Exit {
    fn drop(&mut self) {
        // A process that multiprocessing forks also drops the handlers, but does not call them.
        if self.is_called.load(Ordering::Relaxed) {
            let _ = ENDS.set(thread::current().id()); // only the first exit counts
            Python::attach(|py| py.detach(|| thread::sleep(LAST)));
        }
    }
}

/// The process that opened a handle. Its forks cannot use the handle.
#[derive(Debug, Clone, Copy)]
pub struct Owner(u32);

impl Owner {
    pub fn this() -> Self {
        Self(process::id())
    }

    /// Returns false in a fork of the owner.
    pub fn is_this(self) -> bool {
        self.0 == process::id()
    }

    /// # Errors
    /// If this process is a fork of the owner.
    pub fn check(self) -> PyResult<()> {
        if self.is_this() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(format!(
            "this was opened in process {}, of which this process is a fork: a fork cannot use the connections; call Db.connect after the fork",
            self.0
        )))
    }

    /// Drops a value of the owner within the runtime, because a task releases its messages. A fork
    /// forgets its copy, because that task would use the connections of the owner.
    pub fn drop_within<T>(self, what: T) {
        match self.is_this() {
            true => drop_within(what),
            false => std::mem::forget(what),
        }
    }
}

/// Drops a value within the runtime, because a task releases its messages.
pub fn drop_within<T>(what: T) {
    match handle() {
        Ok(handle) => {
            let _within = handle.enter();
            drop(what);
        }
        Err(_) => drop(what),
    }
}
