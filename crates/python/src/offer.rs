//! What was dequeued for a caller who may be gone.

use std::sync::{Mutex, PoisonError};

use pyo3::{
    exceptions::PyRuntimeError,
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

    /// The messages, each payload as `decode` makes it of its bytes. What it raises an exception for fails its attempt.
    fn accept<'py>(&self, py: Python<'py>, decode: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyList>> {
        let offer = self.take().ok_or_else(|| PyRuntimeError::new_err("the messages were accepted before"))?;
        let handle = runtime::handle()?;
        let _within = handle.enter();
        let messages = offer.accept(|Raw(bytes)| {
            let bytes = PyBytes::new(py, &bytes);
            match decode {
                None => Ok(bytes.into_any().unbind()),
                Some(decode) => decode.call1((bytes,)).map(Bound::unbind).map_err(|error| error.to_string().into()),
            }
        });
        let messages = messages.map_err(|error| raised(py, &error))?;
        PyList::new(
            py,
            messages.into_iter().map(|message| Py::new(py, Message::of(message))).collect::<PyResult<Vec<_>>>()?,
        )
    }
}
