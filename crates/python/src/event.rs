//! An event of the library, which becomes a record of Python's `logging`.

use std::{
    fmt::{Debug, Write},
    time::SystemTime,
};

use pyo3::{IntoPyObjectExt, prelude::*, types::PyDict};
use tracing::{
    Level, Metadata,
    field::{Field, Visit},
};

/// An event, with its source.
pub struct Event {
    about: &'static Metadata<'static>,
    at: SystemTime,
    /// The text for people: the message and its fields.
    text: String,
    fields: Vec<(&'static str, Value)>,
}

enum Value {
    Text(String),
    Whole(i64),
    Natural(u64),
    Real(f64),
    Yes(bool),
}

impl Event {
    pub fn of(event: &tracing::Event<'_>) -> Self {
        let mut this = Self { about: event.metadata(), at: SystemTime::now(), text: String::new(), fields: Vec::new() };
        let mut message = String::new();
        event.record(&mut Seen { event: &mut this, message: &mut message });
        this.text.insert_str(0, &message);
        this
    }

    /// Returns the event's approximate size in memory.
    pub fn bytes(&self) -> usize {
        let texts = self.fields.iter().map(|(_, value)| if let Value::Text(text) = value { text.len() } else { 0 });
        size_of::<Self>() + self.text.len() + self.fields.len() * size_of::<(&str, Value)>() + texts.sum::<usize>()
    }

    /// Returns level, logger, text, time in seconds since 1970, file, line, and the fields.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Self { about, at, text, fields } = self;
        let dict = PyDict::new(py);
        for (name, value) in fields {
            match value {
                Value::Text(text) => dict.set_item(name, text),
                Value::Whole(number) => dict.set_item(name, number),
                Value::Natural(number) => dict.set_item(name, number),
                Value::Real(number) => dict.set_item(name, number),
                Value::Yes(yes) => dict.set_item(name, yes),
            }?;
        }
        let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let (file, line) = (source(about.file().unwrap_or_default()), about.line().unwrap_or_default());
        (level(*about.level()), logger(about.target()), text, at, file, line, dict).into_py_any(py)
    }
}

/// Returns a file's path within the library, without the folder of the build.
fn source(file: &str) -> &str {
    file.rfind("src/").map_or(file, |place| &file[place..])
}

pub fn logger(target: &str) -> String {
    target.replace("::", ".")
}

pub fn level(level: Level) -> i32 {
    match level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => 5,
    }
}

/// A visitor that collects the fields of an event.
struct Seen<'a> {
    event: &'a mut Event,
    message: &'a mut String,
}

impl Seen<'_> {
    fn add(&mut self, field: &Field, shown: impl Debug, value: Value) {
        let _ = write!(self.event.text, " {}={shown:?}", field.name()); // cannot fail
        self.event.fields.push((field.name(), value));
    }
}

impl Visit for Seen<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}"); // cannot fail
        } else {
            self.add(field, value, Value::Text(format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message.push_str(value);
        } else {
            self.add(field, format_args!("{value}"), Value::Text(value.to_owned()));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value, Value::Whole(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value, Value::Natural(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value, Value::Real(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value, Value::Yes(value));
    }
}
