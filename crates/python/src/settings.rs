//! Converts settings of queues from and to Python.

use std::time::Duration;

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyDict,
};
use trunkline::{Changes, Limits, Settings};

use crate::draft::seconds;

fn unknown(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a queue has no setting {name:?}: max_attempts, lease, max_batch, priorities, aging, uniqueness, partitions, per_key"
    ))
}

fn aging(of: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let number: f64 = of.extract()?;
    if number.is_infinite() { Ok(Duration::MAX) } else { seconds(number) }
}

pub fn settings(payload: &str, named: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let mut settings = Settings::new(payload);
    for (name, value) in named {
        let name: String = name.extract()?;
        settings = match &*name {
            "max_attempts" => settings.max_attempts(value.extract()?),
            "lease" => settings.lease(seconds(value.extract()?)?),
            "max_batch" => settings.max_batch(value.extract()?),
            "priorities" => settings.priorities(value.extract()?),
            "aging" => settings.aging(aging(&value)?),
            "uniqueness" => settings.uniqueness(value.extract()?),
            "partitions" => settings.partitions(value.extract()?),
            "per_key" => settings.per_key(value.extract()?),
            _ => return Err(unknown(&name)),
        };
    }
    Ok(settings)
}

pub fn changes(named: &Bound<'_, PyDict>) -> PyResult<Changes> {
    let mut changes = Changes::new();
    for (name, value) in named {
        let name: String = name.extract()?;
        changes = match &*name {
            "max_attempts" => changes.max_attempts(value.extract()?),
            "lease" => changes.lease(seconds(value.extract()?)?),
            "max_batch" => changes.max_batch(value.extract()?),
            "aging" => changes.aging(aging(&value)?),
            "partitions" => changes.partitions(value.extract()?),
            "per_key" => changes.per_key(value.extract()?),
            "priorities" | "uniqueness" => {
                return Err(PyValueError::new_err(format!(
                    "{name} of a queue cannot be changed: create another queue"
                )));
            }
            _ => return Err(unknown(&name)),
        };
    }
    Ok(changes)
}

pub fn limits(
    max_leased: Option<u32>,
    (per_second, burst): (Option<f64>, Option<u32>),
    (key_per_second, key_burst): (Option<f64>, Option<u32>),
) -> Limits {
    let mut limits = Limits::none();
    limits.max_leased = max_leased;
    (limits.per_second, limits.burst) = (per_second, burst);
    (limits.key_per_second, limits.key_burst) = (key_per_second, key_burst);
    limits
}

pub fn described(dict: &Bound<'_, PyDict>, of: trunkline::Description) -> PyResult<()> {
    dict.set_item("name", of.name)?;
    dict.set_item("payload", of.payload)?;
    dict.set_item("max_attempts", of.max_attempts)?;
    dict.set_item("lease", of.lease)?;
    dict.set_item("max_batch", of.max_batch)?;
    dict.set_item("created_at", of.created_at)?;
    dict.set_item("is_paused", of.is_paused)?;
    dict.set_item("priorities", of.priorities)?;
    dict.set_item("aging", of.aging)?;
    dict.set_item("uniqueness", of.uniqueness)?;
    dict.set_item("partitions", of.partitions)?;
    dict.set_item("per_key", of.per_key)
}
