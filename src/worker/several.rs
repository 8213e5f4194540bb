//! Runs workers of several queues together.

use std::{fmt, panic::resume_unwind, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use crate::{
    error::Result,
    queue::message::payload::Payload,
    worker::{
        builder::Worker,
        hands::Hands,
        tally::{Summary, Tally},
    },
};

/// Workers of several queues, with any payload types, that share a number of handlers by weight.
///
/// Each queue has one handler to itself. All other handlers, as they become free, go by weight to
/// the queues that have work. The share of an empty queue goes to the other queues. A running
/// handler is never interrupted.
///
/// ```no_run
/// # use trunkline::{Failure, Queue, Worker, Workers};
/// # async fn example(mails: Queue<String>, bills: Queue<i64>) -> trunkline::Result<()> {
/// let mails = Worker::new(mails, |_mail| async { Ok::<(), Failure>(()) });
/// let bills = Worker::new(bills, |_bill| async { Ok::<(), Failure>(()) });
/// // Three bills for each mail.
/// Workers::new(64).add(mails, 1).add(bills, 3).run(std::future::pending()).await?;
/// # Ok(())
/// # }
/// ```
pub struct Workers {
    concurrency: usize,
    stations: Vec<Begin>,
}

/// A function that starts a worker once all workers of the group are known.
type Begin = Box<dyn FnOnce(&mut Crew) -> Result<()> + Send>;

impl fmt::Debug for Workers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { concurrency, stations } = self;
        out.debug_struct("Workers").field("concurrency", concurrency).field("queues", &stations.len()).finish()
    }
}

impl Workers {
    /// Creates an empty group. All its queues together run up to `concurrency` handlers at the same
    /// time; each queue has at least one.
    #[must_use]
    pub fn new(concurrency: usize) -> Self {
        Self { concurrency, stations: Vec::new() }
    }

    /// Adds a worker with a weight of at least 1.
    #[must_use]
    pub fn add<T: Payload>(mut self, worker: Worker<T>, weight: u32) -> Self {
        self.stations.push(Box::new(move |crew| crew.begin(worker, weight).map(drop)));
        self
    }

    /// Runs all workers, as [`Worker::run`] does. If one worker ends with an error, all others are
    /// shut down gracefully.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Summary> {
        let mut crew = Crew::new(self.concurrency);
        self.stations.into_iter().try_for_each(|begin| begin(&mut crew))?;
        crew.run(shutdown, None).await
    }
}

pub(crate) struct Crew {
    hands: Arc<Hands>,
    tally: Arc<Tally>,
    stop: CancellationToken,
    begun: Vec<BoxFuture<'static, Result<QueueEnd>>>,
    /// The tasks that run the schedules of the workers' databases.
    ticking: JoinSet<()>,
}

#[derive(Debug, PartialEq, Eq)]
enum QueueEnd {
    /// The runner ended because all runners were stopped.
    WithAll,
    /// The runner was stopped alone, by its own token.
    Alone,
}

/// A function that adds workers later, and the signal on which it is called.
pub(crate) type Later = (watch::Receiver<()>, Box<dyn FnMut(&mut Crew) -> Result<()> + Send>);

impl Crew {
    pub fn new(concurrency: usize) -> Self {
        let (hands, tally) = (Arc::new(Hands::new(concurrency)), Arc::<Tally>::default());
        Self { hands, tally, stop: CancellationToken::new(), begun: Vec::new(), ticking: JoinSet::new() }
    }

    /// Adds a worker. The returned token shuts down only this worker, gracefully.
    pub fn begin<T: Payload>(&mut self, worker: Worker<T>, weight: u32) -> Result<CancellationToken> {
        let ticking = (!worker.options.drains).then(|| worker.queue.db().clone());
        let station = worker.station(weight, self.hands.clone(), self.tally.clone())?;
        let ticking = ticking.map(|db| self.ticking.spawn(db.tick_beside_work()));
        let (all, stop, hands, nr) = (self.stop.clone(), self.stop.child_token(), self.hands.clone(), station.nr);
        let alone = stop.clone();
        self.begun.push(Box::pin(async move {
            station.live(alone.clone()).await?;
            if all.is_cancelled() || !alone.is_cancelled() {
                return Ok(QueueEnd::WithAll);
            }
            hands.leave(nr);
            ticking.iter().for_each(AbortHandle::abort);
            Ok(QueueEnd::Alone)
        }));
        Ok(stop)
    }

    /// Runs until the shutdown, or until a queue's runner ends with an error. Then waits until all
    /// runners have ended.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>, mut later: Option<Later>) -> Result<Summary> {
        let mut stations: JoinSet<Result<QueueEnd>> = self.begun.drain(..).collect();
        let mut shutdown = std::pin::pin!(shutdown);
        let mut outcome = Ok(());
        loop {
            let more = async {
                let changed = match &mut later {
                    Some((signal, _)) => signal.changed().await.is_ok(),
                    None => false,
                };
                if !changed {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = &mut shutdown, if !self.stop.is_cancelled() => self.stop.cancel(),
                () = more, if !self.stop.is_cancelled() => {
                    if let Some((_, begin)) = &mut later {
                        outcome = begin(&mut self);
                    }
                    if outcome.is_err() {
                        self.stop.cancel();
                    }
                    self.begun.drain(..).for_each(|station| drop(stations.spawn(station)));
                }
                ended = stations.join_next() => match ended {
                    None => return outcome.map(|()| self.tally.summary()),
                    Some(Ok(Ok(QueueEnd::Alone))) => {}
                    Some(ended) => {
                        outcome = outcome.and(ended.unwrap_or_else(died).map(drop));
                        self.stop.cancel();
                    }
                },
            }
        }
    }
}

impl<T: Payload> Worker<T> {
    /// Works until `shutdown` completes. Then shuts down gracefully (see
    /// [`Worker::shutdown_after`]) and returns a summary.
    ///
    /// If the call is dropped, handlers are dropped at their current await point. Their messages,
    /// and those whose results were not settled yet, are delivered again when the leases end.
    /// Messages that no handler has started are released, and no attempt is counted.
    ///
    /// # Errors
    /// Permanent errors: the queue was dropped ([`Error::is_no_queue`](crate::Error::is_no_queue)),
    /// the database refuses the login, the lease time is out of bounds, or the role lacks a right
    /// for the worker's first statement. Before it returns, the worker waits for running handlers,
    /// as during a shutdown. While the database is unreachable, the worker waits instead of
    /// failing.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Summary> {
        Workers::new(self.concurrency).add(self, 1).run(shutdown).await
    }

    /// Works until nothing is due and no handler runs, then returns a summary. Use this method in
    /// tests, and in programs that start from time to time. It also handles messages that handlers
    /// enqueue, and failed messages that are due again before the end. It waits for due messages
    /// that a pause or a limit holds back, but not for messages that are due later or that other
    /// workers have leased.
    ///
    /// ```no_run
    /// # use trunkline::{Failure, Queue, Worker};
    /// # async fn example(mails: Queue<String>) -> trunkline::Result<()> {
    /// mails.enqueue("ada@example.org: hello".to_owned()).await?;
    /// let summary = Worker::new(mails, |_mail| async { Ok::<(), Failure>(()) }).drain().await?;
    /// assert_eq!(summary.done, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Worker::run`].
    pub async fn drain(self) -> Result<Summary> {
        self.drain_until(std::future::pending()).await
    }

    /// Works like [`drain`](Self::drain), but shuts down gracefully as soon as `shutdown`
    /// completes, like [`run`](Self::run).
    ///
    /// # Errors
    /// The errors of [`Worker::run`].
    pub async fn drain_until(mut self, shutdown: impl Future<Output = ()>) -> Result<Summary> {
        self.options.drains = true;
        self.run(shutdown).await
    }
}

/// Resumes the panic of a runner's task. Runners are never aborted, so only a panic ends a task
/// early.
fn died(error: JoinError) -> Result<QueueEnd> {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Ok(QueueEnd::WithAll),
    }
}
