//! Prints the library's trace events about its connections.

use std::{fmt::Write, time::Instant};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Prints the events of `trunkline::postgres`, and ignores spans.
pub struct Lines(Instant);

impl Lines {
    pub fn start() -> Result<(), tracing::subscriber::SetGlobalDefaultError> {
        tracing::subscriber::set_global_default(Self(Instant::now()))
    }
}

impl Subscriber for Lines {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        about.is_event() && *about.level() <= Level::DEBUG && about.target().starts_with("trunkline::postgres")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = format!("{:9.3} {}", self.0.elapsed().as_secs_f64(), event.metadata().target());
        event.record(&mut Fields(&mut line));
        eprintln!("{line}");
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
