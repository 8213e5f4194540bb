//! Passes the library's events to Python's `logging`. The events are collected in a bounded list,
//! which a Python thread empties. No thread of the runtime waits for Python's lock, and an event
//! that no logger wants costs one atomic read.

use std::{
    collections::BTreeMap,
    process,
    sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use pyo3::prelude::*;
use tracing::{
    Level, Metadata, Subscriber,
    level_filters::LevelFilter,
    span,
    subscriber::{Interest, set_global_default},
};

use crate::{
    draft::seconds,
    event::{Event, level, logger},
    runtime,
};

/// The maximum size of waiting events, in bytes. Further events are counted and dropped.
const MOST: usize = 8 << 20;

/// The events of one process, until Python fetches them.
struct Logs {
    process: u32,
    /// The minimum level of each logger. A logger without an entry uses that of its nearest parent.
    levels: RwLock<BTreeMap<String, i32>>,
    list: Mutex<EventList>,
    came: Condvar,
    /// The events of a fork. A fork must not touch a lock that a thread of its parent may have
    /// held.
    fork: OnceLock<&'static Logs>,
}

#[derive(Default)]
struct EventList {
    events: Vec<Event>,
    bytes: usize,
    dropped: u64,
    /// True after the reader has ended.
    is_closed: bool,
}

static FIRST: OnceLock<&'static Logs> = OnceLock::new();

impl Logs {
    fn new() -> &'static Self {
        Box::leak(Box::new(Self {
            process: process::id(),
            levels: RwLock::default(),
            list: Mutex::default(),
            came: Condvar::new(),
            fork: OnceLock::new(),
        }))
    }

    fn current() -> Option<&'static Self> {
        let mut logs = *FIRST.get()?;
        while let Some(fork) = logs.fork.get() {
            logs = fork;
        }
        Some(logs)
    }

    fn list(&self) -> MutexGuard<'_, EventList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wants(&self, about: &Metadata<'_>) -> bool {
        let target = about.target();
        if !about.is_event() || !(target == "trunkline" || target.starts_with("trunkline::")) {
            return false;
        }
        let levels = self.levels.read().unwrap_or_else(PoisonError::into_inner);
        let logger = logger(target);
        let mut name = logger.as_str();
        loop {
            match (levels.get(name), name.rsplit_once('.')) {
                (Some(from), _) => return level(*about.level()) >= *from,
                (None, Some((parent, _))) => name = parent,
                (None, None) => return false,
            }
        }
    }

    fn push(&self, event: Event) {
        let bytes = event.bytes();
        let mut list = self.list();
        if list.is_closed {
            return;
        }
        if list.bytes + bytes > MOST {
            list.dropped += 1;
            return;
        }
        list.bytes += bytes;
        list.events.push(event);
        let is_first = list.events.len() == 1;
        drop(list);
        if is_first {
            self.came.notify_one();
        }
    }

    /// Waits for events, for at most `longest`, and returns them. Returns `None` after the end,
    /// once all events have been read.
    fn next(&self, longest: Duration) -> Option<(Vec<Event>, u64)> {
        let is_idle = |list: &mut EventList| list.events.is_empty() && !list.is_closed;
        let waited = self.came.wait_timeout_while(self.list(), longest, is_idle);
        let (mut list, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if list.is_closed && list.events.is_empty() && list.dropped == 0 {
            return None;
        }
        list.bytes = 0;
        Some((std::mem::take(&mut list.events), std::mem::take(&mut list.dropped)))
    }
}

/// The subscriber of `tracing`. It ignores spans: the library's spans are for Rust subscribers, and
/// Python's are in `tracing.py`.
struct Door;

impl Subscriber for Door {
    fn register_callsite(&self, about: &'static Metadata<'static>) -> Interest {
        if self.enabled(about) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, about: &Metadata<'_>) -> bool {
        Logs::current().is_some_and(|logs| logs.wants(about))
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let levels = Logs::current()?.levels.read().unwrap_or_else(PoisonError::into_inner);
        let from = levels.values().min().copied().unwrap_or(i32::MAX);
        let all = [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR];
        Some(all.into_iter().find(|one| level(*one) >= from).map_or(LevelFilter::OFF, LevelFilter::from_level))
    }

    fn event(&self, event: &tracing::Event<'_>) {
        if let Some(logs) = Logs::current() {
            logs.push(Event::of(event));
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1) // all spans have the same id, because none is recorded
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Starts the list of events. Returns true if this process had no list before.
#[pyfunction]
pub fn begin_logs() -> bool {
    let is_new = match Logs::current() {
        None => FIRST.set(Logs::new()).is_ok(),
        Some(logs) if logs.process != process::id() => logs.fork.set(Logs::new()).is_ok(),
        Some(_) => false,
    };
    let _ = set_global_default(Door); // fails if it is set already
    is_new
}

/// Sets the minimum level of each logger. This is cheap if no level has changed.
#[pyfunction]
pub fn log_levels(levels: BTreeMap<String, i32>) {
    let Some(logs) = Logs::current() else { return };
    {
        let mut known = logs.levels.write().unwrap_or_else(PoisonError::into_inner);
        if *known == levels {
            return;
        }
        *known = levels;
    }
    tracing::callsite::rebuild_interest_cache();
}

/// Waits at most `longest` seconds for events. Returns them with the number of dropped events.
/// Returns `None` after the end, once all events have been read.
#[pyfunction]
pub fn next_logs(py: Python<'_>, longest: f64) -> PyResult<Option<(Vec<Py<PyAny>>, u64)>> {
    let longest = seconds(longest)?;
    let Some((events, dropped)) = runtime::detached(py, || Logs::current()?.next(longest)) else { return Ok(None) };
    let events = events.into_iter().map(|event| event.into_python(py)).collect::<PyResult<Vec<_>>>()?;
    Ok(Some((events, dropped)))
}

/// Logs `count` warnings or traces from a thread of the runtime. For tests.
#[pyfunction]
pub fn test_logs(py: Python<'_>, count: u64, warns: bool) -> PyResult<()> {
    let task = runtime::handle()?.spawn(async move {
        for nr in 0..count {
            if warns {
                tracing::warn!(target: "trunkline::test", nr, name = "a test", "an event");
            } else {
                tracing::trace!(target: "trunkline::test", nr, name = "a test", "an event");
            }
        }
    });
    runtime::detached(py, || {
        while !task.is_finished() {
            std::thread::yield_now();
        }
    });
    Ok(())
}

/// Refuses further events, and wakes the reader.
#[pyfunction]
pub fn end_logs() {
    if let Some(logs) = Logs::current() {
        logs.list().is_closed = true;
        logs.came.notify_all();
    }
}
