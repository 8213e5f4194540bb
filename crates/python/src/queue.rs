//! A queue and its verbs. The verbs that take ids are in `by_id`.

use std::time::{Duration, Instant};

use pyo3::{IntoPyObjectExt, exceptions::PyValueError, prelude::*, types::PyDict};
use trunkline::{Dequeue, Error, Wait, testing};

use crate::{
    answer::enqueued,
    bridge::Bridge,
    consumer::Consumer,
    draft::{draft_of, seconds},
    ending::release,
    message::leases,
    offer::{Dequeued, Offer},
    pages::Seen,
    raw::Raw,
    reply::{Answered, Loop, none, reply, reply_for_payload, reply_or_leave},
    runtime::{self, Owner},
    schedule::Declared,
};

/// A queue of payloads as bytes.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Queue {
    pub queue: trunkline::Queue<Raw>,
    /// The same queue, for inspecting payloads that may be impossible to decode.
    pub seen: trunkline::Queue<Seen>,
    pub owner: Owner,
}

impl Queue {
    pub fn reply<R: Send + 'static, F: Future<Output = Result<R, Error>> + Send + 'static>(
        &self,
        py: Python<'_>,
        bridge: &Loop<'_>,
        work: impl FnOnce(trunkline::Queue<Raw>) -> F,
        make: impl FnOnce(Python<'_>, R) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Answered {
        self.owner.check()?;
        reply(py, bridge.as_deref(), work(self.queue.clone()), make)
    }

    /// Runs work that stores payloads, like [`Queue::reply`].
    pub fn store<R: Send + 'static, F: Future<Output = Result<R, Error>> + Send + 'static>(
        &self,
        py: Python<'_>,
        bridge: &Loop<'_>,
        work: impl FnOnce(trunkline::Queue<Raw>) -> F,
        make: impl FnOnce(Python<'_>, R) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Answered {
        self.owner.check()?;
        reply_for_payload(py, bridge.as_deref(), work(self.queue.clone()), make)
    }
}

#[pymethods]
impl Queue {
    #[getter]
    fn name(&self) -> &str {
        &self.queue.description().name
    }

    #[getter]
    fn column(&self) -> &str {
        &self.queue.description().payload
    }

    /// Returns the length of a lease, in seconds.
    #[getter]
    fn lease_seconds(&self) -> f64 {
        self.queue.description().lease.as_secs_f64()
    }

    /// Enqueues a payload or a draft.
    #[pyo3(signature = (bridge, message))]
    fn enqueue(&self, py: Python<'_>, bridge: Option<&Bound<'_, Bridge>>, message: &Bound<'_, PyAny>) -> Answered {
        self.owner.check()?;
        let draft = draft_of(message)?;
        if let Some(bridge) = bridge {
            return Bridge::enqueue(bridge, &self.queue, draft);
        }
        let queue = self.queue.clone();
        reply_for_payload(py, None, async move { queue.enqueue(draft).await }, enqueued)
    }

    #[pyo3(signature = (bridge, messages))]
    fn enqueue_many(&self, py: Python<'_>, bridge: Loop<'_>, messages: &Bound<'_, PyAny>) -> Answered {
        let drafts = messages.try_iter()?.map(|message| draft_of(&message?)).collect::<PyResult<Vec<_>>>()?;
        let work = |queue: trunkline::Queue<Raw>| async move { queue.enqueue_many(drafts).await };
        self.store(py, &bridge, work, |py, all| {
            let all = all.into_iter().map(|one| enqueued(py, one)).collect::<PyResult<Vec<_>>>()?;
            all.into_py_any(py)
        })
    }

    /// Sends a message inside a notification. If no consumer waits for direct messages, enqueues
    /// it.
    #[pyo3(signature = (bridge, message))]
    fn send_direct(&self, py: Python<'_>, bridge: Loop<'_>, message: &Bound<'_, PyAny>) -> Answered {
        let draft = draft_of(message)?;
        self.store(py, &bridge, |queue| async move { queue.send_direct(draft).await }, enqueued)
    }

    #[pyo3(signature = (bridge, n))]
    fn take(&self, py: Python<'_>, bridge: Loop<'_>, n: usize) -> Answered {
        self.owner.check()?;
        let queue = self.queue.clone();
        let work = async move { queue.offer_take(n).await.map(Dequeued::taken) };
        reply_or_leave(py, bridge.as_deref(), work, |py, dequeued| Offer::new(dequeued).into_py_any(py))
    }

    #[pyo3(signature = (bridge, n, lease=None))]
    fn lease(&self, py: Python<'_>, bridge: Loop<'_>, n: usize, lease: Option<f64>) -> Answered {
        self.owner.check()?;
        let queue = self.queue.clone();
        // Requests the lease time explicitly, because the queue's own may be shorter by now.
        let lease = lease.map_or_else(|| Ok(queue.description().lease), seconds)?;
        let request = Dequeue::up_to(n).lease_for(lease);
        let work = async move {
            let offer = queue.offer_lease(request).await?;
            Ok(Dequeued::leased(offer, queue, lease))
        };
        reply_or_leave(py, bridge.as_deref(), work, |py, dequeued| Offer::new(dequeued).into_py_any(py))
    }

    #[pyo3(signature = (bridge, of))]
    fn ack(&self, py: Python<'_>, bridge: Loop<'_>, of: &Bound<'_, PyAny>) -> Answered {
        let leases = leases(of)?;
        self.reply(py, &bridge, |queue| async move { queue.ack(leases).await }, none)
    }

    #[pyo3(signature = (bridge, of))]
    fn archive(&self, py: Python<'_>, bridge: Loop<'_>, of: &Bound<'_, PyAny>) -> Answered {
        let leases = leases(of)?;
        self.reply(py, &bridge, |queue| async move { queue.archive(leases).await }, none)
    }

    #[pyo3(signature = (bridge, of))]
    fn release(&self, py: Python<'_>, bridge: Loop<'_>, of: &Bound<'_, PyAny>) -> Answered {
        let leases = leases(of)?;
        self.reply(py, &bridge, |queue| async move { queue.release(leases).await }, none)
    }

    /// Releases messages like `release`, but does not report the outcome. If that fails, tries
    /// again until the leases end.
    fn release_unheard(&self, of: &Bound<'_, PyAny>) -> PyResult<()> {
        self.owner.check()?;
        let (queue, leases) = (self.queue.clone(), leases(of)?);
        let end = Instant::now() + queue.description().lease;
        runtime::handle()?.spawn(async move { release(None, &queue, &leases, || Instant::now() > end).await });
        Ok(())
    }

    #[pyo3(signature = (bridge, of, after, error))]
    fn retry(&self, py: Python<'_>, bridge: Loop<'_>, of: &Bound<'_, PyAny>, after: f64, error: String) -> Answered {
        let (leases, after) = (leases(of)?, seconds(after)?);
        self.reply(py, &bridge, |queue| async move { queue.retry(leases, after, error).await }, none)
    }

    #[pyo3(signature = (bridge, of, reason))]
    fn bury(&self, py: Python<'_>, bridge: Loop<'_>, of: &Bound<'_, PyAny>, reason: String) -> Answered {
        let leases = leases(of)?;
        self.reply(py, &bridge, |queue| async move { queue.bury(leases, reason).await }, none)
    }

    #[pyo3(signature = (bridge, of, by))]
    fn extend(&self, py: Python<'_>, bridge: Loop<'_>, of: &Bound<'_, PyAny>, by: f64) -> Answered {
        let (leases, by) = (leases(of)?, seconds(by)?);
        self.reply(py, &bridge, |queue| async move { queue.extend(leases, by).await }, none)
    }

    #[pyo3(signature = (bridge))]
    fn stats(&self, py: Python<'_>, bridge: Loop<'_>) -> Answered {
        self.reply(
            py,
            &bridge,
            |queue| async move { queue.stats().await },
            |py, stats| {
                let dict = PyDict::new(py);
                dict.set_item("due", stats.due)?;
                dict.set_item("delayed", stats.delayed)?;
                dict.set_item("leased", stats.leased)?;
                dict.set_item("to_retry", stats.to_retry)?;
                dict.set_item("dead", stats.dead)?;
                dict.set_item("archived", stats.archived)?;
                dict.set_item("rows", stats.rows)?;
                dict.set_item("messages", stats.messages)?;
                dict.set_item("oldest_due", stats.oldest_due)?;
                dict.into_py_any(py)
            },
        )
    }

    #[pyo3(signature = (bridge))]
    fn purge(&self, py: Python<'_>, bridge: Loop<'_>) -> Answered {
        self.reply(py, &bridge, |queue| async move { queue.purge().await }, |py, count| count.into_py_any(py))
    }

    #[pyo3(signature = (bridge, age))]
    fn prune(&self, py: Python<'_>, bridge: Loop<'_>, age: f64) -> Answered {
        let age = seconds(age)?;
        self.reply(py, &bridge, |queue| async move { queue.prune(age).await }, |py, count| count.into_py_any(py))
    }

    #[pyo3(signature = (bridge, schedule, payload))]
    fn schedule(&self, py: Python<'_>, bridge: Loop<'_>, schedule: Declared, payload: &[u8]) -> Answered {
        let (schedule, payload) = (schedule.schedule()?, Raw::copy(payload));
        let work = |queue: trunkline::Queue<Raw>| async move { queue.schedule(&schedule, &payload).await };
        self.store(py, &bridge, work, |py, changed| changed.into_py_any(py))
    }

    /// Simulates the passing of time, for tests.
    #[pyo3(signature = (bridge, by))]
    fn shift(&self, py: Python<'_>, bridge: Loop<'_>, by: f64) -> Answered {
        let by = seconds(by)?;
        let work = |queue: trunkline::Queue<Raw>| async move { testing::shift(&queue, by).await };
        self.reply(py, &bridge, work, |py, count| count.into_py_any(py))
    }

    /// Creates a consumer. `wait` is "adaptive", "notify", "poll", or the seconds between polls.
    fn consumer(&self, wait: &Bound<'_, PyAny>) -> PyResult<Consumer> {
        self.owner.check()?;
        Ok(Consumer::new(self.queue.consumer(wait_of(wait)?), self.queue.clone(), self.owner))
    }
}

pub fn wait_of(wait: &Bound<'_, PyAny>) -> PyResult<Wait> {
    if let Ok(every) = wait.extract::<f64>() {
        return Ok(Wait::Poll(seconds(every)?.max(Duration::from_millis(1))));
    }
    match &*wait.extract::<String>()? {
        "adaptive" => Ok(Wait::Adaptive),
        "notify" => Ok(Wait::Notify),
        "poll" => Ok(Wait::poll()),
        other => Err(PyValueError::new_err(format!(
            "a consumer's wait is \"adaptive\", \"notify\", \"poll\", or the seconds between polls, not {other:?}"
        ))),
    }
}
