//! Messages as lines of JSON, which `enqueue --json-lines` reads.

use std::fmt;

use serde_json::Value;
use trunkline::{Description, Metadata, Readable};

use crate::text::Text;

/// Returns true if the queue's payload type is JSON. The program then prints payloads unchanged.
pub fn is_of_json(queue: &Description) -> bool {
    matches!(queue.payload.as_str(), "json" | "jsonb")
}

/// An object on one line, with its fields in the order in which they were added.
#[derive(Debug, Default)]
pub struct Line(String);

impl Line {
    pub fn with(self, name: &str, value: impl Into<Value>) -> Self {
        self.with_raw(name, &value.into().to_string())
    }

    pub fn metadata(self, metadata: &Metadata) -> Self {
        let fields: serde_json::Map<_, _> =
            metadata.iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
        self.with("metadata", fields)
    }

    /// Adds a priority, if the queue has priorities.
    pub fn priority(self, queue: &Description, priority: u8) -> Self {
        if queue.priorities > 1 { self.with("priority", priority) } else { self }
    }

    /// Adds a key, if there is one.
    pub fn key(self, key: Option<&str>) -> Self {
        match key {
            Some(key) => self.with("key", key),
            None => self,
        }
    }

    /// Adds a payload. JSON is added unchanged, so that numbers keep all digits. Other payloads are
    /// added as a string, or in hexadecimal digits if they are not valid text.
    pub fn payload(self, payload: &Text, of_json: bool) -> Self {
        match payload.field() {
            // Replaces line breaks outside strings. Inside strings, JSON escapes them.
            (name, text) if of_json => self.with_raw(name, &text.replace(['\n', '\r'], " ")),
            (name, text) => self.with(name, text),
        }
    }

    /// Adds a payload, or the reason why it is unreadable.
    pub fn payload_of(self, payload: &Readable<Text>, of_json: bool) -> Self {
        match payload {
            Readable::Yes(payload) => self.payload(payload, of_json),
            Readable::No { why, .. } => self.with("unreadable", why.as_str()),
        }
    }

    fn with_raw(mut self, name: &str, json: &str) -> Self {
        let Self(line) = &mut self;
        line.push_str(if line.is_empty() { "\"" } else { ",\"" });
        line.extend([name, "\":", json]); // the program's own names need no escapes
        self
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{{{}}}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_loses_nothing() {
        let line = |payload: &[u8], of_json| Line::default().with("id", 7).payload(&Text(payload.into()), of_json);
        let number = b"{\"b\": 1.10000000000000000001,\r\n \"a\": \"\\n\"}";
        assert_eq!(line(number, true).to_string(), r#"{"id":7,"payload":{"b": 1.10000000000000000001,   "a": "\n"}}"#);
        assert_eq!(line(b"\"\n", false).to_string(), r#"{"id":7,"payload":"\"\n"}"#);
        assert_eq!(line(b"\xff\x00", false).to_string(), r#"{"id":7,"payload_hex":"ff00"}"#);
        let none = Line::default().with("error", None::<String>).metadata(&Metadata::new().with("a\"", "b"));
        assert_eq!(none.to_string(), r#"{"error":null,"metadata":{"a\"":"b"}}"#);
    }
}
