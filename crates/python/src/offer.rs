//! Messages that were dequeued for a caller who may have left.

use std::{
    cell::RefCell,
    sync::{Mutex, PoisonError},
};

use pyo3::{
    exceptions::{PyException, PyRuntimeError},
    prelude::*,
    types::{PyBytes, PyList},
};

use crate::{error::raised, message::Message, raw::Raw, runtime};

/// Messages that are released unless the caller accepts them.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Offer(Mutex<Option<trunkline::Offer<Raw>>>);

impl Offer {
    pub fn new(offer: trunkline::Offer<Raw>) -> Self {
        Self(Mutex::new(Some(offer)))
    }

    fn take(&self) -> Option<trunkline::Offer<Raw>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(offer) = self.take() {
            runtime::drop_within(offer);
        }
    }
}

#[pymethods]
impl Offer {
    /// Returns the number of messages.
    fn __len__(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, trunkline::Offer::len)
    }

    /// Releases the messages.
    fn refuse(&self) {
        if let Some(offer) = self.take() {
            runtime::drop_within(offer);
        }
    }

    /// Returns the messages, with each payload decoded by `decode`. If decoding a message raises an
    /// exception, the message's attempt fails. If `decode` is interrupted, for example by Ctrl-C,
    /// all messages are released and the exception is raised.
    fn accept<'py>(&self, py: Python<'py>, decode: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyList>> {
        let offer =
            self.take().ok_or_else(|| PyRuntimeError::new_err("the messages have already been accepted or refused"))?;
        let handle = runtime::handle()?;
        let _within = handle.enter();
        let interrupted = RefCell::new(None);
        let read = |Raw(bytes): Raw| {
            let bytes = PyBytes::new(py, &bytes);
            let Some(decode) = decode.filter(|_| interrupted.borrow().is_none()) else {
                return Ok(bytes.into_any().unbind());
            };
            match decode.call1((&bytes,)) {
                Ok(payload) => Ok(payload.unbind()),
                Err(error) if is_of_the_payload(py, &error, decode, &bytes) => Err(error.to_string().into()),
                Err(error) => {
                    interrupted.replace(Some(error));
                    Ok(bytes.into_any().unbind())
                }
            }
        };
        let make = |messages: Vec<trunkline::Message<Py<PyAny>>>| {
            let list = messages.into_iter().map(|message| Py::new(py, Message::of(message)));
            let list = list.collect::<PyResult<Vec<_>>>().and_then(|list| PyList::new(py, list));
            // Checks for a signal at the last moment. A later one is raised after the call, when
            // the caller owns the messages.
            let outcome = interrupted.take().map_or(list, Err).and_then(|list| py.check_signals().map(|()| list));
            outcome.map_err(|error| interrupted.replace(Some(error))).ok()
        };
        let accepted = offer.accept_if(read, make).map_err(|error| raised(py, &error))?;
        accepted
            .ok_or_else(|| interrupted.take().unwrap_or_else(|| PyRuntimeError::new_err("the messages were released")))
    }
}

/// Returns true if the payload causes the error, so that `decode` raises it again. An exception
/// from a signal handler does not repeat, and Ctrl-C and the interpreter's end never depend on a
/// payload.
fn is_of_the_payload(py: Python<'_>, error: &PyErr, decode: &Bound<'_, PyAny>, bytes: &Bound<'_, PyBytes>) -> bool {
    error.is_instance_of::<PyException>(py) && decode.call1((bytes,)).is_err()
}
