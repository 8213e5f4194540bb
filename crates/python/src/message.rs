//! A message and its lease.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyTuple},
};
use trunkline::Metadata;

/// The right to one message during one attempt.
#[pyclass(frozen, eq, hash, ord, from_py_object, get_all, module = "trunkline._trunkline")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lease {
    pub id: i64,
    pub attempt: i32,
}

#[pymethods]
impl Lease {
    #[new]
    fn new(id: i64, attempt: i32) -> Self {
        Self { id, attempt }
    }

    /// Returns the arguments of `__new__`, for pickling and copying.
    fn __getnewargs__(&self) -> (i64, i32) {
        (self.id, self.attempt)
    }

    fn __repr__(&self) -> String {
        format!("Lease(id={}, attempt={})", self.id, self.attempt)
    }
}

impl From<Lease> for trunkline::Lease {
    fn from(Lease { id, attempt }: Lease) -> Self {
        Self { id, attempt }
    }
}

impl From<trunkline::Lease> for Lease {
    fn from(trunkline::Lease { id, attempt }: trunkline::Lease) -> Self {
        Self { id, attempt }
    }
}

/// A message as a consumer receives it.
#[pyclass(frozen, generic, module = "trunkline._trunkline")]
pub struct Message {
    #[pyo3(get)]
    id: i64,
    #[pyo3(get)]
    attempt: i32,
    #[pyo3(get)]
    attempts: u32,
    #[pyo3(get)]
    payload: Py<PyAny>,
    enqueued_at: SystemTime,
    metadata: Metadata,
    key: Option<Arc<str>>,
}

impl Message {
    pub fn of(message: trunkline::Message<Py<PyAny>>) -> Self {
        let attempts = message.attempts();
        let trunkline::Message { id, attempt, enqueued_at, payload, metadata, key, .. } = message;
        Self { id, attempt, attempts, payload, enqueued_at, metadata, key }
    }
}

#[pymethods]
impl Message {
    /// Restores a message from a pickle or a copy.
    #[new]
    fn new(
        id: i64,
        attempt: i32,
        attempts: u32,
        payload: Py<PyAny>,
        enqueued_at: SystemTime,
        metadata: HashMap<String, String>,
        key: Option<String>,
    ) -> Self {
        let (metadata, key) = (metadata.into_iter().collect(), key.map(Arc::from));
        Self { id, attempt, attempts, payload, enqueued_at, metadata, key }
    }

    /// Returns the arguments of `__new__`, for pickling and copying.
    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let metadata = metadata(py, &self.metadata)?;
        let payload = self.payload.bind(py);
        (self.id, self.attempt, self.attempts, payload, self.enqueued_at, metadata, self.key()).into_pyobject(py)
    }

    #[getter]
    fn enqueued_at(&self) -> SystemTime {
        self.enqueued_at
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        metadata(py, &self.metadata)
    }

    #[getter]
    fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    #[getter]
    pub fn lease(&self) -> Lease {
        Lease { id: self.id, attempt: self.attempt }
    }

    /// Returns the same message with another payload.
    fn with_payload(&self, payload: Py<PyAny>) -> Self {
        let Self { id, attempt, attempts, enqueued_at, .. } = *self;
        Self { id, attempt, attempts, payload, enqueued_at, metadata: self.metadata.clone(), key: self.key.clone() }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let payload = self.payload.bind(py).repr()?;
        Ok(format!("Message(id={}, attempt={}, payload={payload})", self.id, self.attempt))
    }
}

pub fn metadata<'py>(py: Python<'py>, metadata: &Metadata) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, text) in metadata.iter() {
        dict.set_item(name, text)?;
    }
    Ok(dict)
}

pub fn leases(of: &Bound<'_, PyAny>) -> PyResult<Vec<trunkline::Lease>> {
    if let Some(lease) = one(of) {
        return Ok(vec![lease]);
    }
    let wrong = || PyTypeError::new_err("a message, a lease, or several of them are expected");
    of.try_iter().map_err(|_| wrong())?.map(|each| one(&each?).ok_or_else(wrong)).collect()
}

fn one(of: &Bound<'_, PyAny>) -> Option<trunkline::Lease> {
    if let Ok(message) = of.cast::<Message>() {
        return Some(message.get().lease().into());
    }
    of.cast::<Lease>().ok().map(|lease| (*lease.get()).into())
}
