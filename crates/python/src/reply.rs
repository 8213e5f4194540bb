//! Returns an answer to Python, either to a future of an event loop or to a waiting thread.

use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    time::Duration,
};

use pyo3::{IntoPyObjectExt, intern, prelude::*, types::PyDict};
use tokio::runtime::Handle;
use trunkline::Error;

use crate::{
    answer::Answer,
    bridge::{Bridge, Call, Owed},
    runtime,
};

pub type Loop<'a> = Option<PyRef<'a, Bridge>>;
pub type Answered = PyResult<Py<PyAny>>;

/// The pause between a waiting thread's checks for signals such as Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// The first and the longest pause of a waiting greenlet, in seconds. Each pause doubles the next
/// one.
const GREENLETS: (f64, f64) = (0.0002, 0.02);

/// Returns `None`, for calls without a result.
pub fn none(py: Python<'_>, (): ()) -> PyResult<Py<PyAny>> {
    Ok(py.None())
}

/// Runs the work in the background. Returns a future if there is an event loop; otherwise waits for
/// the outcome and returns it.
pub fn reply<R: Send + 'static>(
    py: Python<'_>,
    bridge: Option<&Bridge>,
    work: impl Future<Output = Result<R, Error>> + Send + 'static,
    make: impl FnOnce(Python<'_>, R) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Py<PyAny>> {
    deliver(py, bridge, async move { Answer::of(work.await, make) }, false)
}

/// Runs work that stores payloads, like [`reply`].
pub fn reply_for_payload<R: Send + 'static>(
    py: Python<'_>,
    bridge: Option<&Bridge>,
    work: impl Future<Output = Result<R, Error>> + Send + 'static,
    make: impl FnOnce(Python<'_>, R) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Py<PyAny>> {
    deliver(py, bridge, async move { Answer::of_payload(work.await, make) }, false)
}

/// Runs the work like [`reply`], but drops the answer if its caller has left. Dropping it releases
/// the messages in it. Returns the future and the call. The caller ends the call when it leaves.
pub fn reply_or_leave<R: Send + 'static>(
    py: Python<'_>,
    bridge: Option<&Bridge>,
    work: impl Future<Output = Result<R, Error>> + Send + 'static,
    make: impl FnOnce(Python<'_>, R) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Py<PyAny>> {
    deliver(py, bridge, async move { Answer::of(work.await, make) }, true)
}

fn deliver(
    py: Python<'_>,
    bridge: Option<&Bridge>,
    answer: impl Future<Output = Answer> + Send + 'static,
    may_leave: bool,
) -> PyResult<Py<PyAny>> {
    let handle = runtime::handle()?;
    let Some(bridge) = bridge else { return wait(py, &handle, answer) };
    let future = bridge.future(py)?;
    if !may_leave {
        let owed = Owed::new(bridge, future.clone_ref(py));
        handle.spawn(async move { owed.pay(answer.await) });
        return Ok(future);
    }
    let (call, owed) = Call::new(bridge, future.clone_ref(py));
    let task = handle.spawn(async move { owed.pay(answer.await) });
    (future, call.of(task.abort_handle())).into_py_any(py)
}

fn wait(py: Python<'_>, handle: &Handle, work: impl Future<Output = Answer> + Send + 'static) -> PyResult<Py<PyAny>> {
    let (answer, mut answered) = channel();
    let task = handle.spawn(async move {
        let _ = answer.send(work.await); // the answer is dropped if the caller is gone
    });
    let (sleep, mut pause) = (greenlets_sleep(py)?, GREENLETS.0);
    let look = if sleep.is_some() { Duration::ZERO } else { LOOK };
    loop {
        let (came, back) = runtime::detached(py, move || (answered.recv_timeout(look), answered));
        answered = back;
        match came {
            Ok(answer) => return answer.into_python(py),
            Err(RecvTimeoutError::Disconnected) => return Answer::Gone.into_python(py),
            Err(RecvTimeoutError::Timeout) => {
                let paused = match &sleep {
                    Some(sleep) => sleep.call1((pause,)).map(drop),
                    None => py.check_signals(),
                };
                pause = (pause * 2.0).min(GREENLETS.1);
                if let Err(signal) = paused {
                    task.abort();
                    // Drops the receiver within the runtime: the task may still send an answer,
                    // which then releases its messages.
                    let _within = handle.enter();
                    drop(answered);
                    return Err(signal);
                }
            }
        }
    }
}

/// Returns gevent's `sleep` if gevent has replaced Python's threads by greenlets. A wait in native
/// code would stop all greenlets of the thread, even the one that has to end the wait.
fn greenlets_sleep(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?.cast_into::<PyDict>()?;
    let Some(monkey) = modules.get_item(intern!(py, "gevent.monkey"))? else { return Ok(None) };
    if !monkey.call_method1(intern!(py, "is_module_patched"), ("threading",))?.is_truthy()? {
        return Ok(None);
    }
    py.import(intern!(py, "gevent"))?.getattr(intern!(py, "sleep")).map(Some)
}
