//! Converts schedules from and to Python.

use std::collections::HashMap;

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use trunkline::{Metadata, Missed, Schedule, Scheduled};

use crate::message::metadata;

/// A schedule as Python declares it: name, expression, time zone, handling of missed ticks, and
/// options of each message.
#[derive(FromPyObject)]
pub struct Declared {
    name: String,
    expression: String,
    zone: String,
    missed: String,
    metadata: HashMap<String, String>,
    priority: u8,
    key: Option<String>,
}

impl Declared {
    pub fn schedule(self) -> PyResult<Schedule> {
        let missed = match &*self.missed {
            "skip" => Missed::Skip,
            "once" => Missed::Once,
            "each" => Missed::Each,
            other => {
                return Err(PyValueError::new_err(format!("missed is \"skip\", \"once\" or \"each\", not {other:?}")));
            }
        };
        let metadata = self.metadata.into_iter().collect::<Metadata>();
        let schedule = Schedule::new(self.name, self.expression).zone(self.zone).missed(missed).metadata(metadata);
        let schedule = schedule.priority(self.priority);
        Ok(match self.key {
            Some(key) => schedule.key(key),
            None => schedule,
        })
    }
}

pub fn scheduled(dict: &Bound<'_, PyDict>, of: Scheduled) -> PyResult<()> {
    dict.set_item("name", of.name)?;
    dict.set_item("queue", of.queue)?;
    dict.set_item("expression", of.expression)?;
    dict.set_item("zone", of.zone)?;
    dict.set_item("payload", of.payload)?;
    dict.set_item("metadata", metadata(dict.py(), &of.metadata)?)?;
    dict.set_item("missed", of.missed.name())?;
    dict.set_item("priority", of.priority)?;
    dict.set_item("key", of.key)?;
    dict.set_item("is_paused", of.is_paused)?;
    dict.set_item("next", of.next)?;
    dict.set_item("last", of.last)?;
    dict.set_item("problem", of.problem)
}
