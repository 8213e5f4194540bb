//! A private PostgreSQL for tests and the demo.

use std::sync::{Mutex, PoisonError};

use pyo3::{exceptions::PyRuntimeError, prelude::*};

use crate::runtime::detached;

fn failed(error: trunkline_embedded::Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Creates an empty database on a server that the tests of this process share, and returns its
/// connection string.
#[pyfunction]
pub fn test_database(py: Python<'_>) -> PyResult<String> {
    detached(py, trunkline_embedded::test_database).map_err(failed)
}

/// A temporary cluster, which ends with `stop` or with the process.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Cluster {
    cluster: Mutex<Option<trunkline_embedded::Cluster>>,
    url: String,
}

#[pymethods]
impl Cluster {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let cluster = detached(py, || trunkline_embedded::Cluster::temporary().start()).map_err(failed)?;
        let url = cluster.url("postgres");
        Ok(Self { cluster: Mutex::new(Some(cluster)), url })
    }

    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    fn stop(&self, py: Python<'_>) {
        detached(py, || drop(self.cluster.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
