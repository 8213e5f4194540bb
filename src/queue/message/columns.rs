//! The values of columns that users added to a queue's table.

use std::collections::BTreeMap;

use crate::{
    error::{Error, Result},
    queue::message::draft::sealed::Parts,
};

/// Returns the column values of a message as a JSON object, which has the same text for equal
/// values. Returns `None` if the message has no column values.
///
/// # Errors
/// The message also has a unique key.
pub(crate) fn of_message<T>(message: &impl Parts<T>) -> Result<Option<Box<str>>> {
    let Some(columns) = message.columns() else { return Ok(None) };
    if message.unique().is_some() {
        return Err(Error::invalid("a message with a unique key cannot have values of columns"));
    }
    written(columns).map(Some)
}

fn written(columns: &BTreeMap<Box<str>, Box<str>>) -> Result<Box<str>> {
    serde_json::to_string(columns).map(Into::into).map_err(|error| Error::invalid(error.to_string()))
}
