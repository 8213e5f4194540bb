//! The outcome of a call, for Python.

use pyo3::{IntoPyObjectExt, exceptions::PyRuntimeError, prelude::*};
use trunkline::{Enqueued, Error};

use crate::error::raised;

type Make = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

pub enum Answer {
    Id(i64),
    Outcome(Enqueued),
    Made(Make),
    Failed(Error),
    /// The call's task panicked, or ended with the runtime.
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
