//! What a program that listens to the library's traces is warned of.

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
};

use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    dispatcher::{DefaultGuard, set_default},
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

#[derive(Clone, Default)]
pub struct Warnings(Arc<Mutex<String>>);

/// While it lives, this thread's warnings are heard.
pub struct Ear {
    _on: DefaultGuard,
    _second: Dispatch,
}

impl Warnings {
    pub fn listen(&self) -> Ear {
        // Where there is but one subscriber, a place in the code that another thread comes to first is taken for one that nobody
        // listens to. A second one makes `tracing` ask both.
        let second = Dispatch::new(self.clone());
        Ear { _on: set_default(&Dispatch::new(self.clone())), _second: second }
    }

    pub fn said(&self, what: &str) -> bool {
        self.0.lock().expect("no panic").contains(what)
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut said = self.0.lock().expect("no panic");
        event.record(&mut Words(&mut said));
        said.push('\n');
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Words<'a>(&'a mut String);

impl Visit for Words<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name()); // writing to a string cannot fail
    }
}
