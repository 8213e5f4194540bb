//! What was dequeued for a caller who may be gone.

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

/// Messages that go back unless they are accepted.
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
    /// How many messages.
    fn __len__(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, trunkline::Offer::len)
    }

    /// The messages go back.
    fn refuse(&self) {
        if let Some(offer) = self.take() {
            runtime::drop_within(offer);
        }
    }

    /// The messages, each payload as `decode` makes it of its bytes. One that it raises an
    /// exception for fails its attempt. Where `decode` is interrupted, as by Ctrl-C, all messages
    /// go back and that is raised.
    fn accept<'py>(&self, py: Python<'py>, decode: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyList>> {
        let offer = self.take().ok_or_else(|| PyRuntimeError::new_err("the messages were accepted before"))?;
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
            // What comes behind this line is raised behind the call, when the messages are the
            // caller's.
            let outcome = interrupted.take().map_or(list, Err).and_then(|list| py.check_signals().map(|()| list));
            outcome.map_err(|error| interrupted.replace(Some(error))).ok()
        };
        let accepted = offer.accept_if(read, make).map_err(|error| raised(py, &error))?;
        accepted.ok_or_else(|| interrupted.take().unwrap_or_else(|| PyRuntimeError::new_err("the messages went back")))
    }
}

/// Whether the payload is the reason of an error of `decode`: then it comes again. What a handler
/// of signals raises does not, and neither Ctrl-C nor the end of the interpreter is of any payload.
fn is_of_the_payload(py: Python<'_>, error: &PyErr, decode: &Bound<'_, PyAny>, bytes: &Bound<'_, PyBytes>) -> bool {
    error.is_instance_of::<PyException>(py) && decode.call1((bytes,)).is_err()
}
