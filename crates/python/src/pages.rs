//! Messages for inspection, as dictionaries: dead letters, the archive, waiting messages, one
//! message by its id.

use std::time::SystemTime;

use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};
use trunkline::{Archived, DeadLetter, Found, Metadata, Peeked, Readable};

use crate::{message::metadata, raw::Raw};

pub type Seen = Readable<Raw>;

/// Returns a page of messages as a list.
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

/// Sets the fields that all kinds of messages have.
fn seen(
    dict: &Bound<'_, PyDict>,
    (id, enqueued_at, attempt): (i64, SystemTime, i32),
    (about, priority, key): (&Metadata, u8, Option<&str>),
    payload: Seen,
) -> PyResult<()> {
    let py = dict.py();
    dict.set_item("id", id)?;
    dict.set_item("enqueued_at", enqueued_at)?;
    dict.set_item("attempt", attempt)?;
    dict.set_item("metadata", metadata(py, about)?)?;
    dict.set_item("priority", priority)?;
    dict.set_item("key", key)?;
    match payload {
        Readable::Yes(Raw(bytes)) => dict.set_item("payload", PyBytes::new(py, &bytes)),
        Readable::No { why, .. } => dict.set_item("problem", why),
    }
}

pub fn dead(dict: &Bound<'_, PyDict>, of: DeadLetter<Seen>) -> PyResult<()> {
    dict.set_item("dead_at", of.dead_at)?;
    dict.set_item("error", of.error)?;
    seen(dict, (of.id, of.enqueued_at, of.attempt), (&of.metadata, of.priority, of.key.as_deref()), of.payload)
}

pub fn archived(dict: &Bound<'_, PyDict>, of: Archived<Seen>) -> PyResult<()> {
    dict.set_item("archived_at", of.archived_at)?;
    seen(dict, (of.id, of.enqueued_at, of.attempt), (&of.metadata, of.priority, of.key.as_deref()), of.payload)
}

pub fn peeked(dict: &Bound<'_, PyDict>, of: Peeked<Seen>) -> PyResult<()> {
    dict.set_item("state", of.state.name())?;
    dict.set_item("due_at", of.due_at)?;
    dict.set_item("error", of.error)?;
    seen(dict, (of.id, of.enqueued_at, of.attempt), (&of.metadata, of.priority, of.key.as_deref()), of.payload)
}

pub fn found(dict: &Bound<'_, PyDict>, of: Found<Seen>) -> PyResult<()> {
    dict.set_item("state", of.state.name())?;
    dict.set_item("due_at", of.due_at)?;
    dict.set_item("ended_at", of.ended_at)?;
    dict.set_item("error", of.error)?;
    seen(dict, (of.id, of.enqueued_at, of.attempt), (&of.metadata, of.priority, of.key.as_deref()), of.payload)
}
