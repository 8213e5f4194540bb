//! A message before it is enqueued.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyBytes,
};
use trunkline::{Metadata, Unique};

use crate::raw::Raw;

/// An encoded payload with options.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Draft(trunkline::Draft<Raw>);

#[pymethods]
impl Draft {
    #[new]
    #[pyo3(signature = (payload, *, after=None, at=None, metadata=None, key=None, priority=0, unique=None, within=None, replaces=false, columns=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn new(
        payload: &[u8],
        after: Option<f64>,
        at: Option<SystemTime>,
        metadata: Option<HashMap<String, String>>,
        key: Option<String>,
        priority: u8,
        unique: Option<String>,
        within: Option<f64>,
        replaces: bool,
        columns: Option<HashMap<String, String>>,
    ) -> PyResult<Self> {
        let mut draft = trunkline::Draft::new(Raw::copy(payload)).priority(priority);
        if let Some(after) = after {
            draft = draft.after(seconds(after)?);
        }
        if let Some(at) = at {
            draft = draft.at(at);
        }
        if let Some(metadata) = metadata {
            draft = draft.metadata(metadata.into_iter().collect::<Metadata>());
        }
        if let Some(key) = key {
            draft = draft.key(key);
        }
        if let Some(key) = unique {
            let mut unique = Unique::key(key);
            if let Some(within) = within {
                unique = unique.within(seconds(within)?);
            }
            draft = draft.unique(if replaces { unique.replacing() } else { unique });
        }
        for (name, text) in columns.into_iter().flatten() {
            draft = draft.column(name, text);
        }
        Ok(Self(draft))
    }
}

pub fn draft_of(message: &Bound<'_, PyAny>) -> PyResult<trunkline::Draft<Raw>> {
    if let Ok(payload) = message.cast::<PyBytes>() {
        return Ok(trunkline::Draft::new(Raw::copy(payload.as_bytes())));
    }
    let draft =
        message.cast::<Draft>().map_err(|_| PyTypeError::new_err("an encoded payload or a draft is expected"))?;
    Ok(draft.get().0.clone())
}

/// Converts seconds to a duration. Fails if the number is negative or infinite.
pub fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!(
            "{seconds} seconds are out of bounds: a duration must be finite, and at least zero"
        ))
    })
}
