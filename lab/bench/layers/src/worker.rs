use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use trunkline_contender::{Contender, Failure, Ready, Settings, Tally};

use crate::{
    open::{open, wait},
    payload::{Text, all},
};

/// The time that a caller waits for its own jobs. It is shorter than the silence that the runner
/// allows a contender.
const PATIENCE: Duration = Duration::from_secs(15);

/// Sends jobs as `coalesced` sends messages. A worker runs an empty function for each job.
pub struct Worker<T: Text> {
    queue: trunkline::Queue<T>,
    told: Settings,
    /// The ids of the jobs that each caller has sent and not yet waited for.
    sent: Mutex<HashMap<usize, Vec<i64>>>,
    /// The ids of jobs whose function has run, until the caller of each job has seen its id.
    called: watch::Sender<HashSet<i64>>,
}

impl<T: Text> Worker<T> {
    fn waits(&self) -> bool {
        self.told.case.starts_with("full-cycle")
    }
}

impl<T: Text> Contender for Worker<T> {
    type Handle = i64;

    async fn install(told: &Settings) -> Result<(Self, Ready), Failure> {
        let (queue, ready) = open(told, "enqueue job by job, coalesced; a worker").await?;
        let worker = Self { queue, told: told.clone(), sent: Mutex::default(), called: watch::Sender::default() };
        if worker.waits() {
            let called = worker.called.clone();
            let working = trunkline::Worker::new(worker.queue.clone(), move |job| {
                called.send_modify(|called| {
                    called.insert(job.id);
                });
                async { Ok::<(), Infallible>(()) }
            });
            tokio::spawn(working.wait(wait(told)).run(std::future::pending()));
        }
        Ok((worker, ready))
    }

    async fn send(&self, caller: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let payloads = all::<T>(payloads)?;
        let ids = match &payloads[..] {
            [payload] => vec![self.queue.enqueue(payload).await?.id()],
            many => self.queue.enqueue_many(many).await?.iter().map(|new| new.id()).collect::<Vec<_>>(),
        };
        if self.waits() {
            self.sent.lock().unwrap_or_else(PoisonError::into_inner).entry(caller).or_default().extend(ids);
        }
        Ok(())
    }

    /// Sends jobs that no caller waits for.
    async fn seed(&self, payloads: Vec<String>) -> Result<(), Failure> {
        self.queue.enqueue_many(&all::<T>(payloads)?).await?;
        Ok(())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let counted = tally.clone();
        let worker = trunkline::Worker::new(self.queue.clone(), move |job| {
            counted.received_many([job.payload.bytes()]);
            async { Ok::<(), Infallible>(()) }
        });
        let worker = match self.told.consumers {
            0 => worker,
            consumers => worker.concurrency(consumers),
        };
        worker.wait(wait(&self.told)).run(tally.over()).await?;
        Ok(())
    }

    /// Waits until the functions of all of the caller's jobs have run, or until `PATIENCE` has
    /// passed. Returns the jobs whose functions have run.
    async fn read(&self, caller: usize, _: usize) -> Result<Vec<i64>, Failure> {
        let own = self.sent.lock().unwrap_or_else(PoisonError::into_inner).remove(&caller).unwrap_or_default();
        let mut jobs = self.called.subscribe();
        let all = jobs.wait_for(|called| own.iter().all(|id| called.contains(id)));
        // Ignores a timeout: the harness then finds too few jobs.
        let _ = tokio::time::timeout(PATIENCE, all).await;
        let mut had = own;
        self.called.send_if_modified(|called| {
            had.retain(|id| called.remove(id));
            false
        });
        Ok(had)
    }

    /// Does nothing, because the worker has already acknowledged the jobs.
    async fn delete(&self, _: usize, _: Vec<i64>) -> Result<(), Failure> {
        Ok(())
    }
}
