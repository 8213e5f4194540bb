//! Connects the runtime's threads with an event loop. Outcomes are collected in a list, and a byte
//! in a pipe wakes the loop, which resolves all of them at once. So no thread of the runtime waits
//! for Python's lock, and several calls share a wake-up.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use futures_util::stream::{FuturesUnordered, StreamExt};
use pyo3::{intern, prelude::*};
use tokio::task::AbortHandle;
use trunkline::{Draft, Queue};

use crate::{answer::Answer, raw::Raw, runtime};

/// The number of calls in one turn of the loop after which the bridge sends them early, so that the
/// server works while Python continues.
const CHUNK: usize = 256;
/// The maximum number of outcomes per wake-up.
const READY: usize = 4096;

/// The bridge of one event loop.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Bridge {
    list: Arc<List>,
    wakes: UnixStream,
    create_future: Py<PyAny>,
    call_soon: Py<PyAny>,
    out: Mutex<Out>,
}

/// The enqueues of the current turn of the loop.
#[derive(Default)]
struct Out {
    calls: Vec<Enqueue>,
    /// True if the loop will call `flush`.
    is_scheduled: bool,
}

struct Enqueue {
    queue: Queue<Raw>,
    draft: Draft<Raw>,
    owed: Owed,
}

/// The outcomes that the loop has not read yet.
struct List {
    done: Mutex<VecDeque<Done>>,
    wake: UnixStream,
    /// The number of enqueues without an answer.
    under_way: AtomicUsize,
}

struct Done {
    future: Py<PyAny>,
    answer: Answer,
}

impl List {
    fn done(&self) -> MutexGuard<'_, VecDeque<Done>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, more: impl IntoIterator<Item = Done>) {
        let was_empty = {
            let mut done = self.done();
            let was_empty = done.is_empty();
            done.extend(more);
            was_empty
        };
        if was_empty {
            // Ignores an error: if the pipe is full, the loop is already awake, and if the pipe is
            // closed, it has no reader.
            let _ = (&self.wake).write(&[1]);
        }
    }
}

/// A promise of an answer to a future. Dropping it reports that there will be no answer.
pub struct Owed {
    list: Arc<List>,
    future: Option<Py<PyAny>>,
    /// Set under the list's lock once no caller waits any longer.
    gone: Option<Arc<AtomicBool>>,
}

impl Owed {
    pub fn new(bridge: &Bridge, future: Py<PyAny>) -> Self {
        Self { list: bridge.list.clone(), future: Some(future), gone: None }
    }

    pub fn pay(mut self, answer: Answer) {
        self.settle(answer);
    }

    fn settle(&mut self, answer: Answer) {
        let Some(future) = self.future.take() else { return };
        let mut done = self.list.done();
        if self.gone.as_ref().is_some_and(|gone| gone.load(Ordering::Relaxed)) {
            drop(done);
            drop(answer); // dropped in the runtime, so that its messages are released
            return;
        }
        let was_empty = done.is_empty();
        done.push_back(Done { future, answer });
        drop(done);
        if was_empty {
            let _ = (&self.list.wake).write(&[1]);
        }
    }

    fn into_done(mut self, answer: Answer) -> Option<Done> {
        self.future.take().map(|future| Done { future, answer })
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.settle(Answer::Gone);
    }
}

/// A call whose caller may leave before the answer arrives.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Call {
    list: Arc<List>,
    gone: Arc<AtomicBool>,
    task: Option<AbortHandle>,
}

impl Call {
    pub fn new(bridge: &Bridge, future: Py<PyAny>) -> (Self, Owed) {
        let gone = Arc::new(AtomicBool::new(false));
        let owed = Owed { list: bridge.list.clone(), future: Some(future), gone: Some(gone.clone()) };
        (Self { list: bridge.list.clone(), gone, task: None }, owed)
    }

    pub fn of(self, task: AbortHandle) -> Self {
        Self { task: Some(task), ..self }
    }
}

#[pymethods]
impl Call {
    /// Ends the call. Releases messages that arrive later, or that the caller has not read.
    fn leave(&self) {
        let left = {
            let mut done = self.list.done();
            self.gone.store(true, Ordering::Relaxed);
            std::mem::take(&mut *done)
        };
        if let Some(task) = &self.task {
            task.abort();
        }
        let _ = Python::attach(|py| resolve(py, left)); // fails only if the event loop is closed
    }
}

#[pymethods]
impl Bridge {
    /// `event_loop` is the running loop of this thread.
    #[new]
    fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (wake, wakes) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        wakes.set_nonblocking(true)?;
        let list = Arc::new(List { done: Mutex::default(), wake, under_way: AtomicUsize::new(0) });
        Ok(Self {
            list,
            wakes,
            create_future: event_loop.getattr("create_future")?.unbind(),
            call_soon: event_loop.getattr("call_soon")?.unbind(),
            out: Mutex::default(),
        })
    }

    /// Returns the descriptor that the loop watches.
    fn fileno(&self) -> i32 {
        self.wakes.as_raw_fd()
    }

    /// Resolves the futures whose outcomes have arrived.
    fn resolve(&self, py: Python<'_>) -> PyResult<()> {
        let mut bytes = [0; 64];
        loop {
            match (&self.wakes).read(&mut bytes) {
                Ok(read) if read == bytes.len() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => break, // the pipe is empty
            }
        }
        let done = std::mem::take(&mut *self.list.done());
        resolve(py, done)
    }

    /// Sends the enqueues of the current turn.
    fn flush(&self) -> PyResult<()> {
        let calls = {
            let mut out = self.out();
            out.is_scheduled = false;
            std::mem::take(&mut out.calls)
        };
        self.send(calls)
    }
}

/// Resolves all futures, even if one of them raises: a signal handler may raise in any of these
/// calls. Returns the first error.
fn resolve(py: Python<'_>, done: VecDeque<Done>) -> PyResult<()> {
    done.into_iter().map(|done| done.resolve(py)).fold(Ok(()), PyResult::and)
}

impl Done {
    fn resolve(self, py: Python<'_>) -> PyResult<()> {
        let future = self.future.bind(py);
        let is_done = future.call_method0(intern!(py, "done")).and_then(|is_done| is_done.is_truthy());
        if !matches!(is_done, Ok(false)) {
            runtime::drop_within(self.answer); // the caller of this future was cancelled
            return is_done.map(drop);
        }
        match self.answer.into_python(py) {
            Ok(result) => future.call_method1(intern!(py, "set_result"), (result,))?,
            Err(error) => future.call_method1(intern!(py, "set_exception"), (error,))?,
        };
        Ok(())
    }
}

impl Bridge {
    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn future(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.create_future.call0(py)
    }

    /// Adds an enqueue to the other calls of this turn of the loop. Sends it at once if no enqueue
    /// is in flight.
    pub fn enqueue(bridge: &Bound<'_, Self>, queue: &Queue<Raw>, draft: Draft<Raw>) -> PyResult<Py<PyAny>> {
        let (this, py) = (bridge.get(), bridge.py());
        let future = this.future(py)?;
        let owed = Owed::new(this, future.clone_ref(py));
        let call = Enqueue { queue: queue.clone(), draft, owed };
        let (calls, schedules) = {
            let mut out = this.out();
            out.calls.push(call);
            let is_lonely = out.calls.len() == 1 && this.list.under_way.load(Ordering::Relaxed) == 0;
            match is_lonely || out.calls.len() >= CHUNK {
                true => (std::mem::take(&mut out.calls), false),
                false => (Vec::new(), !std::mem::replace(&mut out.is_scheduled, true)),
            }
        };
        if schedules && let Err(error) = this.schedule(bridge) {
            // A signal handler may raise in the loop's code. Without this call, the enqueues would
            // wait for a turn that is not scheduled, and so would all later ones.
            let _ = this.flush(); // its error would hide the signal's
            return Err(error);
        }
        this.send(calls)?;
        Ok(future)
    }

    /// Lets the loop call `flush` at the end of its turn.
    fn schedule(&self, bridge: &Bound<'_, Self>) -> PyResult<()> {
        let py = bridge.py();
        self.call_soon.call1(py, (bridge.getattr(intern!(py, "flush"))?,)).map(drop)
    }

    fn send(&self, calls: Vec<Enqueue>) -> PyResult<()> {
        if calls.is_empty() {
            return Ok(());
        }
        let handle = runtime::handle()?;
        let list = self.list.clone();
        let under_way = UnderWay::of(list.clone(), calls.len());
        handle.spawn(async move {
            let mut under_way = under_way;
            let calls: FuturesUnordered<_> = calls.into_iter().map(Enqueue::run).collect();
            let mut ready = calls.ready_chunks(READY);
            while let Some(answers) = ready.next().await {
                under_way.less(answers.len());
                list.push(answers.into_iter().filter_map(|(owed, answer)| owed.into_done(answer)));
            }
        });
        Ok(())
    }
}

impl Enqueue {
    async fn run(self) -> (Owed, Answer) {
        let Self { queue, draft, owed } = self;
        let answer = match queue.enqueue(draft).await {
            Ok(enqueued) => Answer::Enqueued(enqueued),
            Err(error) => Answer::Refused(error),
        };
        (owed, answer)
    }
}

/// Counts enqueues while they are in flight.
struct UnderWay {
    list: Arc<List>,
    count: usize,
}

impl UnderWay {
    fn of(list: Arc<List>, count: usize) -> Self {
        list.under_way.fetch_add(count, Ordering::Relaxed);
        Self { list, count }
    }

    fn less(&mut self, count: usize) {
        self.count -= count;
        self.list.under_way.fetch_sub(count, Ordering::Relaxed);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.list.under_way.fetch_sub(self.count, Ordering::Relaxed);
    }
}
