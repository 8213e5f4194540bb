//! The outcomes of a call's messages, as Python reports them.

use std::time::{Duration, Instant};

use pyo3::{
    prelude::*,
    types::{PyFloat, PyString, PyTuple},
};
use tokio::sync::oneshot;
use tracing::debug;
use trunkline::{Attempt, Failure, Lease, Queue};

use crate::{draft::seconds, raw::Raw};

/// The first and the longest pause after a release that failed. Each pause doubles the next one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The handler's outcome for each of its messages.
pub type Answers = Vec<Result<(), Failure>>;

/// The outcome of a message.
pub enum Ending {
    Done,
    Failed(Failure),
    /// The message is released, and the attempt is not counted.
    Released,
}

impl Ending {
    pub fn failed(reason: &str) -> Self {
        Self::Failed(Failure::retry(reason))
    }

    /// Reads an outcome. `None` means done. Otherwise it is a tuple of kind, seconds and reason.
    /// The kind is "retry", "after", "dead", "release" or "cancelled". The last one means a release
    /// if the worker `ends`. Any other value is a failure.
    pub fn read(ending: &Bound<'_, PyAny>, ends: bool) -> Self {
        if ending.is_none() {
            return Self::Done;
        }
        let read = || -> PyResult<Self> {
            let ending = ending.cast::<PyTuple>()?;
            let kind = ending.get_item(0)?;
            let reason = ending.get_item(2)?;
            // Replaces lone surrogates, which a Python text may contain.
            let (kind, reason) =
                (kind.cast::<PyString>()?.to_string_lossy(), reason.cast::<PyString>()?.to_string_lossy());
            Ok(match &*kind {
                "release" => Self::Released,
                "cancelled" if ends => Self::Released,
                "dead" => Self::Failed(Failure::dead(reason)),
                "after" => {
                    let after = ending.get_item(1)?;
                    match seconds(after.cast::<PyFloat>()?.value()) {
                        Ok(after) => Self::Failed(Failure::retry_after(after, reason)),
                        Err(_) => Self::failed(&format!("{reason}; and it cannot be retried after {after:?} s")),
                    }
                }
                _ => Self::failed(&reason),
            })
        };
        read().unwrap_or_else(|_| Self::failed("the handler's outcome cannot be read"))
    }

    /// Returns the outcome to report to the worker. A release is reported as a failure, but the
    /// worker then finds that the lease has ended.
    pub fn answer(self) -> Result<(), Failure> {
        match self {
            Self::Done => Ok(()),
            Self::Failed(failure) => Err(failure),
            Self::Released => Err(Failure::retry("the worker ended")),
        }
    }
}

pub struct Ended {
    pub sender: oneshot::Sender<Answers>,
    pub answers: Answers,
    /// The messages to release before the answer.
    pub releases: Vec<Lease>,
    pub attempt: Option<Attempt<Raw>>,
    pub queue: Queue<Raw>,
}

impl Ended {
    pub fn gives_back(&self) -> bool {
        !self.releases.is_empty()
    }

    /// Releases messages, and then sends the answer. If the lease has not ended by then, the answer
    /// counts an attempt.
    pub async fn settle(self) {
        if self.sender.is_closed() {
            // The worker has abandoned the call. It releases the messages itself, and reports them
            // in its summary, so this release waits to come second.
            tokio::time::sleep(PAUSES.1).await;
        }
        let began = Instant::now();
        // The worker renews leases until it abandons the call.
        let is_over = || self.sender.is_closed() && began.elapsed() > self.queue.description().lease;
        release(self.attempt.as_ref(), &self.queue, &self.releases, is_over).await;
        self.send();
    }

    pub fn send(self) {
        let _ = self.sender.send(self.answers); // the worker may have abandoned the call
    }
}

/// Releases the message of an attempt; without one, releases leases. A release that fails is tried
/// again, because the server may be restarting, until `is_over` returns true.
pub async fn release(attempt: Option<&Attempt<Raw>>, queue: &Queue<Raw>, leases: &[Lease], is_over: impl Fn() -> bool) {
    let mut pause = PAUSES.0;
    loop {
        let released = match attempt {
            Some(attempt) => attempt.release().await,
            None => queue.release(leases.iter().copied()).await,
        };
        let Err(error) = released else { return };
        if error.is_lease_lost() || error.is_no_queue() || is_over() {
            return;
        }
        debug!(%error, "cannot release messages yet; retrying");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}
