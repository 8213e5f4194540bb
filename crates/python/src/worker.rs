//! A worker with Python handlers. Calls are collected in a list for the event loop, and answers
//! return in batches.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::{
    IntoPyObjectExt,
    exceptions::PyRuntimeError,
    prelude::*,
    types::{PyDict, PyList},
};
use tokio_util::sync::CancellationToken;
use trunkline::{RetryPolicy, Summary, Worker, Workers};

use crate::{
    beginning::CallLimits,
    bridge::Bridge,
    delivery::Delivery,
    draft::seconds,
    ending::Ended,
    inbox::{Inbox, News},
    queue::{Queue, wait_of},
    raw::Raw,
    reply::reply,
    runtime,
};

#[derive(FromPyObject)]
struct Task {
    #[pyo3(item)]
    queue: Py<Queue>,
    #[pyo3(item)]
    weight: u32,
    /// The maximum number of messages per call, if the handler takes batches.
    #[pyo3(item)]
    batch: Option<usize>,
    #[pyo3(item)]
    timeout: Option<f64>,
    #[pyo3(item)]
    lease: Option<f64>,
    /// True if a message whose lease expired runs alone.
    #[pyo3(item)]
    isolates: bool,
    #[pyo3(item)]
    shutdown_after: f64,
    /// The number of processes for handlers, if they run in processes. All such tasks share the
    /// processes.
    #[pyo3(item)]
    processes: Option<usize>,
    /// True if delays grow; the first and the maximum delay, in seconds; and the maximum number of
    /// attempts.
    #[pyo3(item)]
    retry: (bool, f64, f64, Option<u32>),
    /// True if a function in Python decides about retries, and `retry` is only the default.
    #[pyo3(item)]
    asks: bool,
}

impl Task {
    fn worker(&self, nr: usize, inbox: &Arc<Inbox>, wait: &Bound<'_, PyAny>, reports: bool) -> PyResult<Worker<Raw>> {
        let (queue, inbox) = (self.queue.get().queue.clone(), inbox.clone());
        let from = queue.clone();
        let lease = self.lease.map(seconds).transpose()?;
        let timeout = self.timeout.map(seconds).transpose()?;
        let limits = CallLimits::of(lease.unwrap_or(queue.description().lease), timeout, self.asks);
        let worker = match self.batch {
            Some(most) => Worker::of_batches(queue, most, move |messages| {
                inbox.clone().call(nr, from.clone(), messages, None, limits)
            }),
            None => Worker::with_attempt(queue, move |message, attempt| {
                let answers = inbox.clone().call(nr, from.clone(), vec![message], Some(attempt), limits);
                async move { answers.await.pop().unwrap_or(Ok(())) }
            }),
        };
        let (grows, first, most, attempts) = self.retry;
        let (first, most) = (seconds(first)?, seconds(most)?);
        let retry = if grows { RetryPolicy::exponential(first, most) } else { RetryPolicy::fixed(first) };
        let mut worker = worker
            .retry(retry.attempts(attempts.unwrap_or(u32::MAX)))
            .shutdown_after(seconds(self.shutdown_after)?)
            .wait(wait_of(wait)?)
            .isolate_after_crash(self.isolates)
            .reports(reports);
        if let Some(lease) = lease {
            worker = worker.lease(lease);
        }
        Ok(worker)
    }
}

/// A worker for several tasks, in one event loop.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Station {
    inbox: Arc<Inbox>,
    stop: CancellationToken,
    workers: Mutex<Option<Work>>,
}

/// The workers of a station: workers that share handlers, workers that share processes, and workers
/// that end once no message is due.
struct Work {
    shared: Option<Workers>,
    in_processes: Option<Workers>,
    draining: Vec<Worker<Raw>>,
}

impl Work {
    async fn run(self, stop: CancellationToken) -> trunkline::Result<Summary> {
        let Self { shared, in_processes, draining } = self;
        if draining.is_empty() {
            // If one of the workers ends with an error, the others shut down.
            let one = async |workers: Workers| {
                let ended = workers.run(stop.clone().cancelled_owned()).await;
                stop.cancel();
                ended
            };
            // If the workers of one kind are not used, that must not stop the workers of the other
            // kind.
            let of = async |workers: Option<Workers>| match workers {
                Some(workers) => one(workers).await,
                None => Ok(Summary::default()),
            };
            let (shared, in_processes) = tokio::join!(of(shared), of(in_processes));
            return Ok(sum(shared?, in_processes?));
        }
        let drained = draining.into_iter().map(|worker| worker.drain_until(stop.clone().cancelled_owned()));
        let drained = futures_util::future::join_all(drained).await;
        drained.into_iter().try_fold(Summary::default(), |all, one| Ok(sum(all, one?)))
    }
}

#[pymethods]
impl Station {
    /// Creates a worker for `tasks`. If `drains` is true, it ends once no message is due. If
    /// `reports` is true, it reports its state in the table `trunkline.worker`.
    #[new]
    fn new(
        tasks: Vec<Task>,
        concurrency: usize,
        wait: &Bound<'_, PyAny>,
        drains: bool,
        reports: bool,
    ) -> PyResult<Self> {
        let inbox = Inbox::new()?;
        let mut work = Work { shared: None, in_processes: None, draining: Vec::new() };
        for (nr, task) in tasks.iter().enumerate() {
            task.queue.get().owner.check()?;
            let worker = task.worker(nr, &inbox, wait, reports)?.concurrency(task.processes.unwrap_or(concurrency));
            match (drains, task.processes) {
                (true, _) => work.draining.push(worker),
                (false, None) => work.shared = Some(beside(work.shared, concurrency).add(worker, task.weight)),
                (false, Some(processes)) => {
                    work.in_processes = Some(beside(work.in_processes, processes).add(worker, task.weight));
                }
            }
        }
        Ok(Self { inbox, stop: CancellationToken::new(), workers: Mutex::new(Some(work)) })
    }

    /// Returns the descriptor that the loop watches.
    fn fileno(&self) -> PyResult<i32> {
        self.inbox.fileno()
    }

    /// Closes the descriptor after the run, when the loop no longer watches it.
    fn close(&self) {
        self.inbox.close();
    }

    /// Works until it is stopped, and then shuts down. Returns the counts of outcomes.
    #[pyo3(signature = (bridge))]
    fn run(&self, py: Python<'_>, bridge: Option<PyRef<'_, Bridge>>) -> PyResult<Py<PyAny>> {
        self.inbox.owner.check()?;
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = workers.ok_or_else(|| PyRuntimeError::new_err("the worker has already run"))?;
        reply(py, bridge.as_deref(), work.run(self.stop.clone()), |py, summary| {
            let dict = PyDict::new(py);
            dict.set_item("done", summary.done)?;
            dict.set_item("retried", summary.retried)?;
            dict.set_item("dead", summary.dead)?;
            dict.set_item("lost", summary.lost)?;
            dict.set_item("released", summary.released)?;
            dict.into_py_any(py)
        })
    }

    /// Starts the shutdown.
    fn stop(&self) {
        self.stop.cancel();
    }

    /// Returns new deliveries, and ("lost", "late" or "over", number) for running calls.
    fn news<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for one in self.inbox.fetch() {
            match one {
                News::Call(call) => list.append(Py::new(py, Delivery::from(call))?)?,
                News::Lost(nr) => list.append(("lost", nr))?,
                News::Late(nr) => list.append(("late", nr))?,
                News::Over(nr) => list.append(("over", nr))?,
            }
        }
        Ok(list)
    }

    /// Accepts the answers of ended calls. Each is a delivery with an outcome for its message, or
    /// with a list of outcomes for its messages. An invalid outcome counts as a failure of its
    /// message. If `ends` is true, the message of a cancelled handler is released.
    fn settle(&self, answers: &Bound<'_, PyList>, ends: bool) -> PyResult<()> {
        let mut all = Vec::with_capacity(answers.len());
        for answer in answers {
            let Ok((delivery, ending)) = answer.extract::<(PyRef<'_, Delivery>, Bound<'_, PyAny>)>() else { continue };
            all.extend(delivery.ended(&ending, ends));
        }
        if all.iter().any(Ended::gives_back) {
            self.inbox.owner.check()?;
        }
        // Runs in the runtime, where waking many tasks is cheap.
        runtime::handle()?.spawn(async move {
            let mut given_back = Vec::new();
            for ended in all {
                if ended.gives_back() {
                    given_back.push(ended.settle());
                } else {
                    ended.send();
                }
            }
            futures_util::future::join_all(given_back).await;
        });
        Ok(())
    }
}

/// Returns the workers that share handlers, so that another worker can join.
fn beside(others: Option<Workers>, handlers: usize) -> Workers {
    others.unwrap_or_else(|| Workers::new(handlers))
}

fn sum(a: Summary, b: Summary) -> Summary {
    let mut all = a;
    all.done += b.done;
    all.retried += b.retried;
    all.dead += b.dead;
    all.lost += b.lost;
    all.released += b.released;
    all
}
