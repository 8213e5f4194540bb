//! The calls of handlers, on their way to the event loop. They are collected in a list, and a byte
//! in a pipe wakes the loop.

use std::{
    io::{Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::{
    sync::oneshot::{self, error::RecvError},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use trunkline::{Attempt, Failure, Message};

use crate::{
    beginning::{Beginning, CallLimits, NextStep},
    delivery::RawDelivery,
    ending::{Answers, release},
    raw::Raw,
    runtime::Owner,
};

/// The reason of messages that a withdrawn call has released.
const NOT_BEGUN: &str = "the event loop was blocked, so the handler did not begin";
/// The time that the event loop gets to decide about a handler that took too long, before a
/// warning.
const SOON: Duration = Duration::from_secs(1);

/// The number of the next call. The stations of a drain follow each other in one worker, which may
/// still run a handler of an earlier station.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// An event for the event loop.
pub enum News {
    Call(RawDelivery),
    /// The call's lease is lost, or the worker will soon abandon the call.
    Lost(u64),
    /// The call's handler has taken too long, and a function in Python decides about retries.
    Late(u64),
    /// The caller of the call has left.
    Over(u64),
}

/// Events for the event loop.
pub struct Inbox {
    pub owner: Owner,
    news: Mutex<Vec<News>>,
    /// The ends of the pipe for the writer and for the event loop; `None` once they are closed.
    wake: Mutex<Option<UnixStream>>,
    wakes: Mutex<Option<UnixStream>>,
    /// True if a warning says that the loop has been blocked since it last fetched its events.
    is_blocked: AtomicBool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbox {
    pub fn new() -> std::io::Result<Arc<Self>> {
        let (wake, wakes) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        wakes.set_nonblocking(true)?;
        Ok(Arc::new(Self {
            owner: Owner::this(),
            news: Mutex::default(),
            wake: Mutex::new(Some(wake)),
            wakes: Mutex::new(Some(wakes)),
            is_blocked: AtomicBool::new(false),
        }))
    }

    /// Returns the descriptor that the loop watches.
    pub fn fileno(&self) -> PyResult<i32> {
        let wakes = lock(&self.wakes);
        wakes.as_ref().map(AsRawFd::as_raw_fd).ok_or_else(|| PyRuntimeError::new_err("the worker has ended"))
    }

    /// Closes the pipe. From now on, nothing wakes the loop.
    pub fn close(&self) {
        *lock(&self.wake) = None;
        *lock(&self.wakes) = None;
    }

    /// Removes and returns all events.
    pub fn fetch(&self) -> Vec<News> {
        if let Some(mut wakes) = lock(&self.wakes).as_ref() {
            let _ = wakes.read(&mut [0; 64]); // removes the bytes that woke the loop, one per list
        }
        self.is_blocked.store(false, Ordering::Relaxed);
        std::mem::take(&mut *lock(&self.news))
    }

    fn push(&self, news: News) {
        let was_empty = {
            let mut all = lock(&self.news);
            all.push(news);
            all.len() == 1
        };
        if was_empty && let Some(mut wake) = lock(&self.wake).as_ref() {
            let _ = wake.write(&[1]); // if the pipe is full, the loop is awake
        }
    }

    /// Calls a task's handler in Python.
    pub async fn call(
        self: Arc<Self>,
        task: usize,
        queue: trunkline::Queue<Raw>,
        messages: Vec<Message<Raw>>,
        attempt: Option<Attempt<Raw>>,
        limits: CallLimits,
    ) -> Answers {
        let (nr, count) = (NEXT.fetch_add(1, Ordering::Relaxed), messages.len());
        let (answer, answered) = oneshot::channel();
        let leases: Vec<_> = match &attempt {
            Some(_) => Vec::new(), // an attempt releases its message itself
            None => messages.iter().map(Message::lease).collect(),
        };
        let beginning = Arc::new(Beginning::new());
        self.push(News::Call(RawDelivery {
            task,
            nr,
            messages,
            attempt: attempt.clone(),
            queue: queue.clone(),
            beginning: beginning.clone(),
            owner: self.owner,
            answer,
        }));
        let mut running = Running { inbox: self, nr, beginning, is_late: false, is_over: false };
        let lost = attempt.as_ref().map(Attempt::lost);
        match running.wait(answered, lost, &limits, &queue).await {
            CallEnd::Answered(Ok(answers)) => {
                running.is_over = true;
                let has_failed = answers.iter().any(Result::is_err);
                if has_failed && running.is_late {
                    attempt.iter().for_each(Attempt::time_out);
                }
                answers
            }
            CallEnd::Answered(Err(_)) => {
                running.is_over = true;
                vec![Err(Failure::retry("the handler was dropped without an answer")); count]
            }
            CallEnd::Withdrawn => {
                running.is_over = true;
                running.inbox.withdrawn(nr, &queue);
                let release = release(attempt.as_ref(), &queue, &leases, || false).await;
                let leases = attempt.iter().map(Attempt::lease).chain(leases);
                leases.map(|lease| Err(release.answer(lease.id, NOT_BEGUN))).collect()
            }
            CallEnd::TimedOut => {
                attempt.iter().for_each(Attempt::time_out);
                let timeout = limits.timeout.unwrap_or_default();
                vec![Err(Failure::retry(format!("the handler took longer than {timeout:?}"))); count]
            }
        }
    }

    /// Forgets a withdrawn call, if the loop has not fetched it.
    fn withdrawn(&self, nr: u64, queue: &trunkline::Queue<Raw>) {
        lock(&self.news).retain(|news| !matches!(news, News::Call(call) if call.nr == nr));
        self.warn_blocked(queue, "messages whose handlers have not begun are released");
    }

    /// Warns once while the loop is blocked.
    fn warn_blocked(&self, queue: &trunkline::Queue<Raw>, effect: &str) {
        if !self.is_blocked.swap(true, Ordering::Relaxed) {
            let queue = queue.description().name.as_str();
            warn!(target: "trunkline::worker", queue, "the event loop is blocked: {effect}");
        }
    }
}

/// A call that is running in Python. Dropping it informs Python that the caller has left, and keeps
/// a handler that has not begun from beginning.
struct Running {
    inbox: Arc<Inbox>,
    nr: u64,
    beginning: Arc<Beginning>,
    /// True once the event loop was asked about a handler that took too long.
    is_late: bool,
    is_over: bool,
}

enum CallEnd {
    Answered(Result<Answers, RecvError>),
    Withdrawn,
    TimedOut,
}

impl Running {
    /// Waits for the call's end. If the loop decides about a handler that took too long, waits for
    /// the loop without a limit. A blocked loop begins no other handlers, and without the decision
    /// the message could be handled again although it must not.
    async fn wait(
        &mut self,
        mut answered: oneshot::Receiver<Answers>,
        mut lost: Option<CancellationToken>,
        limits: &CallLimits,
        queue: &trunkline::Queue<Raw>,
    ) -> CallEnd {
        let mut step = self.beginning.next_step(limits);
        loop {
            let check = match step {
                NextStep::CheckAt(at) => Some(at),
                NextStep::WaitForAnswer => None,
                NextStep::Withdraw => return CallEnd::Withdrawn,
                NextStep::TimeOut if !limits.asks => return CallEnd::TimedOut,
                NextStep::TimeOut if self.is_late => {
                    self.inbox.warn_blocked(queue, "handlers that took too long wait for their retry policies");
                    step = NextStep::WaitForAnswer;
                    None
                }
                NextStep::TimeOut => {
                    self.is_late = true;
                    self.inbox.push(News::Late(self.nr));
                    let at = Instant::now() + SOON;
                    step = NextStep::CheckAt(at);
                    Some(at)
                }
            };
            tokio::select! {
                biased;
                answers = &mut answered => return CallEnd::Answered(answers),
                () = cancelled(lost.as_ref()) => {
                    self.inbox.push(News::Lost(self.nr));
                    lost = None;
                }
                () = until(check) => step = self.beginning.next_step(limits),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            self.beginning.give_up();
            self.inbox.push(News::Over(self.nr));
        }
    }
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
