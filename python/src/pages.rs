//! Messages that are looked at, as dictionaries: dead letters, the archive, what waits, one by its id.

use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};
use trunkline::{Archived, DeadLetter, Found, Peeked, Readable};

use crate::{message::metadata, raw::Raw};

pub type Seen = Readable<Raw>;

/// A page of them.
pub fn list<T>(
    py: Python<'_>,
    all: Vec<T>,
    each: impl Fn(&Bound<'_, PyDict>, T) -> PyResult<()>,
) -> PyResult<Py<PyAny>> {
    let list = PyList::empty(py);
    for one in all {
        let dict = PyDict::new(py);
        each(&dict, one)?;
        list.append(dict)?;
    }
    Ok(list.into_any().unbind())
}

fn payload(dict: &Bound<'_, PyDict>, seen: Seen) -> PyResult<()> {
    let py = dict.py();
    match seen {
        Readable::Yes(Raw(bytes)) => dict.set_item("payload", PyBytes::new(py, &bytes)),
        Readable::No { why, .. } => dict.set_item("problem", why),
    }
}

pub fn dead(dict: &Bound<'_, PyDict>, letter: DeadLetter<Seen>) -> PyResult<()> {
    dict.set_item("id", letter.id)?;
    dict.set_item("enqueued_at", letter.enqueued_at)?;
    dict.set_item("dead_at", letter.dead_at)?;
    dict.set_item("attempt", letter.attempt)?;
    dict.set_item("error", letter.error)?;
    dict.set_item("metadata", metadata(dict.py(), &letter.metadata)?)?;
    dict.set_item("priority", letter.priority)?;
    dict.set_item("key", letter.key.as_deref())?;
    payload(dict, letter.payload)
}

pub fn archived(dict: &Bound<'_, PyDict>, message: Archived<Seen>) -> PyResult<()> {
    dict.set_item("id", message.id)?;
    dict.set_item("enqueued_at", message.enqueued_at)?;
    dict.set_item("archived_at", message.archived_at)?;
    dict.set_item("attempt", message.attempt)?;
    dict.set_item("metadata", metadata(dict.py(), &message.metadata)?)?;
    dict.set_item("priority", message.priority)?;
    dict.set_item("key", message.key.as_deref())?;
    payload(dict, message.payload)
}

pub fn peeked(dict: &Bound<'_, PyDict>, message: Peeked<Seen>) -> PyResult<()> {
    dict.set_item("id", message.id)?;
    dict.set_item("state", message.state.name())?;
    dict.set_item("enqueued_at", message.enqueued_at)?;
    dict.set_item("due_at", message.due_at)?;
    dict.set_item("attempt", message.attempt)?;
    dict.set_item("error", message.error)?;
    dict.set_item("metadata", metadata(dict.py(), &message.metadata)?)?;
    dict.set_item("priority", message.priority)?;
    dict.set_item("key", message.key.as_deref())?;
    payload(dict, message.payload)
}

pub fn found(dict: &Bound<'_, PyDict>, message: Found<Seen>) -> PyResult<()> {
    dict.set_item("id", message.id)?;
    dict.set_item("state", message.state.name())?;
    dict.set_item("enqueued_at", message.enqueued_at)?;
    dict.set_item("due_at", message.due_at)?;
    dict.set_item("ended_at", message.ended_at)?;
    dict.set_item("attempt", message.attempt)?;
    dict.set_item("error", message.error)?;
    dict.set_item("metadata", metadata(dict.py(), &message.metadata)?)?;
    dict.set_item("priority", message.priority)?;
    dict.set_item("key", message.key.as_deref())?;
    payload(dict, message.payload)
}
