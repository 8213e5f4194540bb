//! Writes a line before each operation and a line after it, each in a single write.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

#[derive(Clone)]
pub struct History(Arc<(File, AtomicU64)>);

impl History {
    pub fn create(path: &str) -> io::Result<Self> {
        let file = OpenOptions::new().create_new(true).append(true).open(path)?;
        Ok(Self(Arc::new((file, AtomicU64::new(1)))))
    }

    pub fn invoked(&self, call: Value) -> u64 {
        let op = self.0.1.fetch_add(1, Ordering::Relaxed);
        self.say(op, "invoked", call);
        op
    }

    pub fn say(&self, op: u64, name: &str, said: Value) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_micros() as u64);
        let line = format!("{}\n", json!({ "at": at, "op": op, name: said }));
        // A run without its history proves nothing.
        (&self.0.0).write_all(line.as_bytes()).expect("the history can be written");
    }

    /// Records the outcome of a call. After an error the outcome is unknown, because the connection
    /// may be lost.
    pub fn end<T, E: std::fmt::Display>(
        &self,
        op: u64,
        outcome: Result<T, E>,
        said: impl FnOnce(&T) -> Value,
    ) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.say(op, "ok", said(&value));
                Some(value)
            }
            Err(error) => {
                self.say(op, "unknown", json!(error.to_string()));
                None
            }
        }
    }
}
