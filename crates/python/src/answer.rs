//! The outcome of a call, for Python.

use pyo3::{exceptions::PyRuntimeError, prelude::*, sync::PyOnceLock, types::PyType};
use trunkline::{Enqueued, Error};

use crate::error::{raised, raised_for_payload};

type Make = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

pub enum Answer {
    Enqueued(Enqueued),
    Made(Make),
    Failed(Error),
    /// The error of a call that stores payloads.
    Refused(Error),
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

    /// Returns the answer of a call that stores payloads.
    pub fn of_payload<R: Send + 'static>(
        outcome: Result<R, Error>,
        make: impl FnOnce(Python<'_>, R) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        match Self::of(outcome, make) {
            Self::Failed(error) => Self::Refused(error),
            other => other,
        }
    }

    pub fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Enqueued(outcome) => enqueued(py, outcome),
            Self::Made(make) => make(py),
            Self::Failed(error) => Err(raised(py, &error)),
            Self::Refused(error) => Err(raised_for_payload(py, &error)),
            Self::Gone => {
                Err(PyRuntimeError::new_err("the call's task ended without an answer; the outcome is unknown"))
            }
        }
    }
}

/// Converts the outcome of an enqueue to the Python class of its kind, a subclass of `int` whose
/// value is the id.
pub fn enqueued(py: Python<'_>, enqueued: Enqueued) -> PyResult<Py<PyAny>> {
    static NEW: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static DUPLICATE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static REPLACED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let (class, name) = match enqueued {
        Enqueued::New(_) => (&NEW, "Enqueued"),
        Enqueued::Duplicate(_) => (&DUPLICATE, "Duplicate"),
        Enqueued::Replaced(_) => (&REPLACED, "Replaced"),
    };
    Ok(class.import(py, "trunkline.enqueued", name)?.call1((enqueued.id(),))?.unbind())
}
