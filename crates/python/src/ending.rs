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

/// The reason of messages that are given back.
const ENDS: &str = "the worker ended";

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

    /// Returns the outcome to report to the worker. That of a release counts only if it fails.
    pub fn answer(self) -> Result<(), Failure> {
        match self {
            Self::Done => Ok(()),
            Self::Failed(failure) => Err(failure),
            Self::Released => Err(Failure::retry(ENDS)),
        }
    }
}

pub struct Ended {
    pub sender: oneshot::Sender<Answers>,
    pub answers: Answers,
    /// The messages to release before the answer, each with its place in the answer.
    pub releases: Vec<(usize, Lease)>,
    pub attempt: Option<Attempt<Raw>>,
    pub queue: Queue<Raw>,
}

impl Ended {
    pub fn gives_back(&self) -> bool {
        !self.releases.is_empty()
    }

    /// Releases messages, and then sends the answer. If a message could not be released, the answer
    /// counts an attempt.
    pub async fn settle(mut self) {
        if self.sender.is_closed() {
            // The worker has abandoned the call. It releases the messages itself, and reports them
            // in its summary, so this release waits to come second.
            tokio::time::sleep(PAUSES.1).await;
        }
        let began = Instant::now();
        // The worker renews leases until it abandons the call.
        let is_over = || self.sender.is_closed() && began.elapsed() > self.queue.description().lease;
        let leases: Vec<Lease> = self.releases.iter().map(|(_, lease)| *lease).collect();
        let release = release(self.attempt.as_ref(), &self.queue, &leases, is_over).await;
        for (place, lease) in &self.releases {
            self.answers[*place] = Err(release.answer(lease.id, ENDS));
        }
        self.send();
    }

    pub fn send(self) {
        let _ = self.sender.send(self.answers); // the worker may have abandoned the call
    }
}

/// The outcome of a release.
pub enum Release {
    /// The messages are released, except those with the ids `lost`, whose leases were lost.
    Done { lost: Vec<i64> },
    /// The queue no longer exists.
    NoQueue,
    /// The release failed, and is not tried again.
    Failed,
}

impl Release {
    /// Returns the answer for a message, which makes the worker count how its lease ended.
    pub fn answer(&self, id: i64, reason: &str) -> Failure {
        match self {
            Self::Done { lost } if !lost.contains(&id) => Failure::released(reason),
            Self::Done { .. } | Self::NoQueue => Failure::lease_lost(reason),
            Self::Failed => Failure::retry(reason),
        }
    }
}

/// Releases the message of an attempt; without one, releases leases. A release that fails is tried
/// again, because the server may be restarting, until `is_over` returns true.
pub async fn release(
    attempt: Option<&Attempt<Raw>>,
    queue: &Queue<Raw>,
    leases: &[Lease],
    is_over: impl Fn() -> bool,
) -> Release {
    let (mut pause, mut may_be_done) = (PAUSES.0, false);
    loop {
        let released = match attempt {
            Some(attempt) => attempt.release().await,
            None => queue.release(leases.iter().copied()).await,
        };
        let error = match released {
            Ok(()) => return Release::Done { lost: Vec::new() },
            Err(error) if error.is_lease_lost() => {
                // An earlier try may have released the messages, and only its reply was lost.
                let lost = if may_be_done { Vec::new() } else { error.lost_ids().to_vec() };
                return Release::Done { lost };
            }
            Err(error) if error.is_no_queue() => return Release::NoQueue,
            Err(_) if is_over() => return Release::Failed,
            Err(error) => error,
        };
        may_be_done |= error.is_outcome_unknown();
        debug!(%error, "cannot release messages yet; retrying");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}
