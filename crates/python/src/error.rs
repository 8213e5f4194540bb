//! Converts the library's errors to exceptions. Their classes are in `python/trunkline/errors.py`.

use pyo3::{intern, prelude::*, sync::PyOnceLock};
use trunkline::Error;

static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Returns the exception for the error of a call, with the values of all the error's predicates.
/// The call stores no payload, so a refusal is not about a payload.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error, false)
}

/// Returns the exception for the error of a call that stores payloads.
pub fn raised_for_payload(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error, error.is_bad_payload())
}

fn exception(py: Python<'_>, error: &Error, is_bad_payload: bool) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let make = MAKE
            .get_or_try_init(py, || py.import("trunkline.errors")?.getattr(intern!(py, "made")).map(Bound::unbind))?;
        let flags = (
            error.is_lease_lost(),
            error.is_outcome_unknown(),
            error.is_closed(),
            error.is_no_queue(),
            error.is_wrong_type(),
            is_bad_payload,
            error.is_drained(),
        );
        let sqlstate = error.sqlstate().map(|code| code.code());
        let value = make.bind(py).call1((error.to_string(), sqlstate, error.lost_ids().to_vec(), flags))?;
        Ok(PyErr::from_value(value))
    };
    made().unwrap_or_else(|error| error)
}
