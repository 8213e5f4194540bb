//! A handler call: its messages and their outcomes.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::{
    exceptions::PyRuntimeError,
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};
use tokio::sync::oneshot;
use trunkline::Attempt;

use crate::{
    beginning::Beginning,
    draft::seconds,
    ending::{Answers, Ended, Ending},
    message::{Message, metadata},
    raw::Raw,
    reply::{Loop, none, reply},
    runtime::Owner,
};

/// A handler call. Dropping it without an answer counts as a failure.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Delivery {
    /// The task's index in the worker, and the number of the call.
    #[pyo3(get)]
    task: usize,
    #[pyo3(get)]
    nr: u64,
    messages: Vec<trunkline::Message<Raw>>,
    attempt: Option<Attempt<Raw>>,
    queue: trunkline::Queue<Raw>,
    beginning: Arc<Beginning>,
    owner: Owner,
    answer: Mutex<Option<oneshot::Sender<Answers>>>,
}

/// A delivery before Python receives it.
pub struct RawDelivery {
    pub task: usize,
    pub nr: u64,
    pub messages: Vec<trunkline::Message<Raw>>,
    pub attempt: Option<Attempt<Raw>>,
    pub queue: trunkline::Queue<Raw>,
    pub beginning: Arc<Beginning>,
    pub owner: Owner,
    pub answer: oneshot::Sender<Answers>,
}

impl From<RawDelivery> for Delivery {
    fn from(RawDelivery { task, nr, messages, attempt, queue, beginning, owner, answer }: RawDelivery) -> Self {
        Self { task, nr, messages, attempt, queue, beginning, owner, answer: Mutex::new(Some(answer)) }
    }
}

impl Delivery {
    /// Returns the outcomes of the messages, with the channel to the worker. Returns `None` the
    /// second time.
    pub fn ended(&self, ending: &Bound<'_, PyAny>, ends: bool) -> Option<Ended> {
        let sender = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let mut endings: Vec<Ending> = match ending.cast::<PyList>() {
            Ok(each) => each.iter().map(|one| Ending::read(&one, ends)).collect(),
            Err(_) => vec![Ending::read(ending, ends)],
        };
        endings.resize_with(self.messages.len(), || Ending::failed("the handler reported no outcome for the message"));
        if endings.iter().any(|ending| matches!(ending, Ending::Released)) {
            self.beginning.give_up(); // a handler that has not begun does not begin any more
        }
        let given_back = self.messages.iter().zip(&endings).enumerate();
        let given_back = given_back.filter(|(_, (_, ending))| matches!(ending, Ending::Released));
        let releases = match self.beginning.is_withdrawn() {
            true => Vec::new(), // the call releases the messages itself
            false => given_back.map(|(place, (message, _))| (place, message.lease())).collect(),
        };
        let answers = endings.into_iter().map(Ending::answer).collect();
        Some(Ended { sender, answers, releases, attempt: self.attempt.clone(), queue: self.queue.clone() })
    }

    fn first(&self) -> PyResult<&trunkline::Message<Raw>> {
        self.messages.first().ok_or_else(|| PyRuntimeError::new_err("a delivery without a message"))
    }

    fn attempt(&self) -> PyResult<Attempt<Raw>> {
        self.owner.check()?;
        self.attempt
            .clone()
            .ok_or_else(|| PyRuntimeError::new_err("a handler of batches has no attempt for one message"))
    }
}

#[pymethods]
impl Delivery {
    /// Records that the handler begins. Returns false if the handler must not begin: the lease is
    /// lost, the worker has given up on the call, or the call waited too long for the event loop.
    fn begin(&self) -> bool {
        // A worker that ends cancels the token shortly before it gives up on the call.
        let is_lost = self.attempt.as_ref().is_some_and(|attempt| attempt.lost().is_cancelled());
        !is_lost && self.beginning.begin()
    }

    /// Ends the handler's time limit. A handler's thread or coroutine calls this method, because
    /// the event loop, which its outcome passes, may be blocked.
    fn end(&self) {
        self.beginning.end();
    }

    /// Returns the payload of the first message.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let Raw(bytes) = &self.first()?.payload;
        Ok(PyBytes::new(py, bytes))
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        metadata(py, &self.first()?.metadata)
    }

    /// Returns true if the first message has metadata, which may carry a trace.
    #[getter]
    fn has_metadata(&self) -> PyResult<bool> {
        Ok(!self.first()?.metadata.is_empty())
    }

    #[getter]
    fn attempts(&self) -> PyResult<u32> {
        Ok(self.first()?.attempts())
    }

    /// Returns the first message, with `payload` instead of its own payload.
    fn message(&self, payload: Py<PyAny>) -> PyResult<Message> {
        Ok(Message::of(with(self.first()?, payload)))
    }

    /// Returns all messages, each with its payload as bytes.
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = self.messages.iter().map(|message| {
            let Raw(bytes) = &message.payload;
            Py::new(py, Message::of(with(message, PyBytes::new(py, bytes).into_any().unbind())))
        });
        PyList::new(py, all.collect::<PyResult<Vec<_>>>()?)
    }

    /// Extends the lease, so that it ends `by` seconds from now.
    #[pyo3(signature = (bridge, by))]
    fn extend(&self, py: Python<'_>, bridge: Loop<'_>, by: f64) -> PyResult<Py<PyAny>> {
        let (attempt, by) = (self.attempt()?, seconds(by)?);
        reply(py, bridge.as_deref(), async move { attempt.extend(by).await }, none)
    }

    /// Releases the message without counting the attempt.
    #[pyo3(signature = (bridge))]
    fn release(&self, py: Python<'_>, bridge: Loop<'_>) -> PyResult<Py<PyAny>> {
        let attempt = self.attempt()?;
        reply(py, bridge.as_deref(), async move { attempt.release().await }, none)
    }

    /// Lets the handler make the acknowledgement on its own connection.
    #[pyo3(signature = (bridge))]
    fn ends_elsewhere(&self, py: Python<'_>, bridge: Loop<'_>) -> PyResult<Py<PyAny>> {
        let attempt = self.attempt()?;
        let work = async move {
            attempt.ends_elsewhere().await;
            Ok(())
        };
        reply(py, bridge.as_deref(), work, none)
    }
}

/// Returns a copy of the message, with another payload.
fn with(message: &trunkline::Message<Raw>, payload: Py<PyAny>) -> trunkline::Message<Py<PyAny>> {
    message.clone().map(|_| payload)
}
