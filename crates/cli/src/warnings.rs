//! Prints the library's warnings, and the ends of what they warned of. Without them, an unavailable
//! database would look like an empty queue, and an unused password file like a wrong password.

use std::{
    fmt::{self, Write},
    sync::OnceLock,
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::{clean::clean, print};

/// The module whose warnings about failed commands are omitted, because the job itself reports them
/// with their exit codes.
const TOLD_ELSEWHERE: &str = "trunkline::worker::hand";
/// The modules whose warnings about lost connections and unreached shards are omitted, unless the
/// verb prints warnings in its own way. Other verbs report that they try again, or fail.
const TOLD_BY_VERBS: [&str; 2] = ["trunkline::postgres::wire::connection", "trunkline::shards::set"];

/// The modules whose events of the level `info` are printed: a server is used again.
const RECOVERIES: [&str; 3] = ["trunkline::worker::outage", "trunkline::shards::shard", "trunkline::shards::reach"];

/// Prints warnings in a verb's own way.
type Say = Box<dyn Fn(&str) + Send + Sync>;

/// The way to print, and whether recoveries are printed, too.
static SAY: OnceLock<(Say, bool)> = OnceLock::new();

/// Starts printing warnings on standard error.
pub fn show() {
    let _ = tracing::subscriber::set_global_default(Warnings); // fails only on a second call, and the program calls this once
}

/// Lets a verb print warnings from now on, for example between the lines of its commands' output.
pub fn show_with(say: impl Fn(&str) + Send + Sync + 'static, recoveries: bool) {
    let _ = SAY.set((Box::new(say), recoveries)); // fails only on a second call, and a verb calls this once
}

struct Warnings;

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        let ours = target.starts_with("trunkline") && target != TOLD_ELSEWHERE;
        let most = if RECOVERIES.contains(&target) { Level::INFO } else { Level::WARN };
        ours && metadata.is_event() && *metadata.level() <= most
    }

    fn event(&self, event: &Event<'_>) {
        let say = SAY.get();
        let is_recovery = *event.metadata().level() == Level::INFO;
        if say.is_none() && TOLD_BY_VERBS.contains(&event.metadata().target())
            || is_recovery && say.is_none_or(|say| !say.1)
        {
            return;
        }
        let mut told = Told::default();
        event.record(&mut told);
        let kind = if is_recovery { "" } else { "warning: " };
        let warning = format!("{kind}{}{}", told.message, told.fields);
        match say {
            Some((say, _)) => say(&clean(&warning)),
            None => print::note(warning),
        }
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
