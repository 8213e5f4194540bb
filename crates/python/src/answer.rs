//! The way of an answer back to Python: to a future of an event loop, or to a thread that waits.

use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    time::Duration,
};

use pyo3::{IntoPyObjectExt, exceptions::PyRuntimeError, prelude::*};
use tokio::runtime::Handle;
use trunkline::{Enqueued, Error};

use crate::{
    bridge::{Bridge, Call, Owed},
    error::raised,
    runtime,
};

/// A thread that waits looks at the signals so often, and so obeys Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

type Make = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// What came of a call.
pub enum Answer {
    Id(i64),
    Outcome(Enqueued),
    Made(Make),
    Failed(Error),
    /// Its task panicked, or ended with the runtime.
    Gone,
}

impl Answer {
    pub fn of<R: Send + 'static>(
        outcome: Result<R, Error>,
        make: impl FnOnce(Python<'_>, R) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        match outcome {
            Ok(result) => Self::Made(Box::new(move |py| make(py, result))),
            Err(error) => Self::Failed(error),
        }
    }

    pub fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Id(id) => id.into_py_any(py),
            Self::Outcome(enqueued) => outcome(py, enqueued),
            Self::Made(make) => make(py),
            Self::Failed(error) => Err(raised(py, &error)),
            Self::Gone => {
                Err(PyRuntimeError::new_err("the call's task ended without an answer; the outcome is unknown"))
            }
        }
    }
}

fn outcome(py: Python<'_>, enqueued: Enqueued) -> PyResult<Py<PyAny>> {
    let name = match enqueued {
        Enqueued::New(_) => "new",
        Enqueued::Duplicate(_) => "duplicate",
        Enqueued::Replaced(_) => "replaced",
    };
    (enqueued.id(), name).into_py_any(py)
}

/// Does the work in the background. With an event loop, returns a future of it; without, waits for
/// the outcome and returns that.
pub fn reply<R: Send + 'static>(
    py: Python<'_>,
    bridge: Option<&Bridge>,
    work: impl Future<Output = Result<R, Error>> + Send + 'static,
    make: impl FnOnce(Python<'_>, R) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Py<PyAny>> {
    deliver(py, bridge, async move { Answer::of(work.await, make) }, false)
}

/// As [`reply`]; what comes for nobody any more is dropped, which gives it back. Returns a pair
/// with what a caller that leaves has to end.
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
        let _ = answer.send(work.await); // dropped here where the caller is gone
    });
    loop {
        let (came, back) = runtime::detached(py, move || (answered.recv_timeout(LOOK), answered));
        answered = back;
        match came {
            Ok(answer) => return answer.into_python(py),
            Err(RecvTimeoutError::Disconnected) => return Answer::Gone.into_python(py),
            Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| task.abort())?,
        }
    }
}
