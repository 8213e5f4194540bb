//! Prints the library's warnings between lines of the commands' output. Without them, an
//! unavailable database would look like an empty queue.

use std::fmt::{self, Write};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::clean::clean;

/// The module whose warnings about failed commands are omitted, because the job itself reports them
/// with their exit codes.
const TOLD_ELSEWHERE: &str = "trunkline::worker::hand";

/// Starts printing warnings.
pub fn show(say: impl Fn(&str) + Send + Sync + 'static) {
    let _ = tracing::subscriber::set_global_default(Warnings(say)); // fails only on a second call, and the program calls this once
}

struct Warnings<F>(F);

impl<F: Fn(&str) + Send + Sync + 'static> Subscriber for Warnings<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = metadata.target().starts_with("trunkline") && metadata.target() != TOLD_ELSEWHERE;
        ours && metadata.is_event() && *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut told = Told::default();
        event.record(&mut told);
        (self.0)(&clean(&format!("warning: {}{}", told.message, told.fields)));
    }

    // No span is enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Told {
    message: String,
    fields: String,
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, ", {name}: {value:?}"),
        };
    }
}
