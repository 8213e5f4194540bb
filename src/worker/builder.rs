//! A worker: a function, run for every message of a queue.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    error::{Error, Result},
    queue::{
        handle::Queue,
        message::{Lease, Message, failure::Failure, payload::Payload},
        wait::{Wait, hooks::Hooks},
    },
    worker::{
        attempt::Attempt,
        handler::Handler,
        hands::Hands,
        retry_policy::RetryPolicy,
        station::{Options, Station},
        tally::Tally,
    },
};

/// Runs a function for every message of a queue, at least once: leases messages, starts handlers,
/// and acknowledges, retries or buries according to what they answer.
///
/// - What runs is leased for as long as it runs, by renewal. A handler whose lease is lost all the
///   same can be told ([`Worker::with_attempt`]), and its answer is discarded.
/// - It leases ahead what will start within a tenth of a second, at most some 8,000 messages, so
///   that quick handlers never wait for the database; of slow jobs it holds only those that run.
///   Create queues of slow jobs with [`Settings::max_batch`](crate::Settings::max_batch) 1.
/// - A failure is tried again by the [`RetryPolicy`], until the attempts are used up. A panic is a
///   failure with its text.
/// - Beside it the process makes the ticks of [schedules](crate::Schedule), if its role may.
/// - While the database is away, handlers go on, and their answers are settled when it is back, as
///   far as the leases last.
///
/// A handler must not block its thread for long, as with every future: renewals are made by the
/// same runtime. Use `tokio::task::spawn_blocking`, or [`Attempt::extend`].
///
/// ```no_run
/// # use trunkline::{Failure, Queue, Summary, Worker};
/// # async fn example(mails: Queue<String>, shutdown: impl Future<Output = ()>) -> trunkline::Result<()> {
/// let worker = Worker::new(mails, |mail| async move {
///     let (to, _text) = mail.payload.split_once(": ").ok_or_else(|| Failure::dead("no address"))?;
///     println!("a mail to {to}");
///     Ok::<(), Failure>(())
/// });
/// let summary = worker.run(shutdown).await?;
/// println!("{} sent, {} to be tried again", summary.done, summary.retried);
/// # Ok(())
/// # }
/// ```
pub struct Worker<T> {
    pub(super) queue: Queue<T>,
    handler: Handler<T>,
    pub(super) concurrency: usize,
    pub(super) options: Options,
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Worker")
            .field("queue", &self.queue)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

impl<T: Payload> Worker<T> {
    /// A worker whose handler gets one message a call. Its errors become [`Failure`]s.
    #[must_use]
    pub fn new<F, E>(queue: Queue<T>, handler: impl Fn(Message<T>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure> + 'static,
    {
        Self::of(queue, Handler::of_one(handler))
    }

    /// As [`Worker::new`]; the handler also gets its [`Attempt`], by which it learns that its lease
    /// is lost.
    #[must_use]
    pub fn with_attempt<F, E>(
        queue: Queue<T>,
        handler: impl Fn(Message<T>, Attempt<T>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure> + 'static,
    {
        Self::of(queue, Handler::of_attempt(handler))
    }

    /// A worker whose handler gets up to `most` messages a call, as many as are there, and answers
    /// for each, in their order. A panic, a timeout or a wrong number of answers is a failure of
    /// all of them. Runs 64 such calls at a time unless [`Worker::concurrency`] says otherwise.
    #[must_use]
    pub fn of_batches<F, E>(
        queue: Queue<T>,
        most: usize,
        handler: impl Fn(Vec<Message<T>>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<Result<(), E>>> + Send + 'static,
        E: Into<Failure> + 'static,
    {
        Self::of(queue, Handler::of_batches(most, handler))
    }

    fn of(queue: Queue<T>, handler: Handler<T>) -> Self {
        let options = Options {
            lease: None,
            timeout: None,
            retry: RetryPolicy::default(),
            shutdown_after: Duration::from_secs(30),
            wait: Wait::default(),
            hooks: Hooks::default(),
            drains: false,
            reports: false,
            isolates: true,
        };
        Self { queue, handler, concurrency: 64, options }
    }

    /// How many handlers run at the same time; 64 if not set, at least 1. In
    /// [`Workers`](crate::Workers) their number counts instead.
    #[must_use]
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency, ..self }
    }

    /// How long a handler may take for a call; without limit if not set. Then it is dropped where
    /// it waits, and its messages have failed.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// When failed messages are tried again; [`RetryPolicy::default`] if not set.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.options.retry = retry;
        self
    }

    /// A lease time instead of the queue's own; more than zero, at most 365 days. It is renewed
    /// while a handler runs, so it says how long messages stay away after a worker was killed.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }

    /// How long a shutdown waits for running handlers, 30 seconds if not set. Then they are told,
    /// dropped, and their messages given back: due again at once, and not charged.
    #[must_use]
    pub fn shutdown_after(mut self, limit: Duration) -> Self {
        self.options.shutdown_after = limit;
        self
    }

    /// How it waits for messages; [`Wait::default`] if not set.
    #[must_use]
    pub fn wait(mut self, wait: Wait) -> Self {
        self.options.wait = wait;
        self
    }

    /// Whether it tells of itself every ten seconds, in a row of the table `trunkline.worker`: what
    /// it handled and what failed meanwhile, how long its handler took, how many run, and the
    /// version of this library. [The
    /// console](https://github.com/trunkline/trunkline/blob/main/docs/console.md) and its doctor
    /// show it. Rows are removed after an hour. `false` if not set. A database that does not take
    /// it stops no work.
    #[must_use]
    pub fn reports(mut self, reports: bool) -> Self {
        self.options.reports = reports;
        self
    }

    /// Calls the function after each attempt, before the message is settled: with its lease, and
    /// with what the handler answered; a panic or a timeout is a failure. It runs in the handler's
    /// task, so it should be quick. Each further function is called too.
    ///
    /// With this and [`Worker::before_wait`] a test knows when it can go on, and need not sleep:
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tokio::sync::Notify;
    /// # use trunkline::{Failure, Queue, Worker};
    /// # async fn example(mails: Queue<String>) -> trunkline::Result<()> {
    /// let (tried, asleep) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    /// let (tries, sleeps) = (tried.clone(), asleep.clone());
    /// let worker = Worker::new(mails.clone(), |_mail| async { Err::<(), _>(Failure::retry("no")) })
    ///     .after_attempt(move |_lease, outcome| {
    ///         assert_eq!(outcome.expect_err("it fails").reason(), "no");
    ///         tries.notify_one();
    ///     })
    ///     .before_wait(move || sleeps.notify_one());
    /// tokio::spawn(worker.run(std::future::pending()));
    /// asleep.notified().await; // it listens, and has seen that nothing is due
    /// mails.enqueue("hello".to_owned()).await?;
    /// tried.notified().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn after_attempt(mut self, hook: impl Fn(Lease, Result<(), &Failure>) + Send + Sync + 'static) -> Self {
        self.options.hooks.add_after_attempt(hook);
        self
    }

    /// Calls the function whenever nothing is due and the worker is about to wait for a
    /// notification: what is enqueued from then on wakes it. Each further function is called too. A
    /// worker that polls never calls it.
    #[must_use]
    pub fn before_wait(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.options.hooks.add_before_wait(hook);
        self
    }

    /// Sets whether a message whose lease expired runs alone, because it may have crashed its
    /// worker: true if not set. Pass false if no message can crash the handler, as in a relay that
    /// reads none: then the messages of a crashed worker come as fast as all others.
    #[must_use]
    pub fn isolate_after_crash(mut self, isolate: bool) -> Self {
        self.options.isolates = isolate;
        self
    }

    pub(super) fn station(self, weight: u32, hands: Arc<Hands>, tally: Arc<Tally>) -> Result<Arc<Station<T>>> {
        let Self { queue, handler, options, .. } = self;
        let lease = options.lease.unwrap_or(queue.description().lease);
        if lease.is_zero() || lease > Duration::from_secs(365 * 86_400) {
            return Err(Error::invalid(format!(
                "a lease of {lease:?} is out of bounds: more than zero, at most 365 days"
            )));
        }
        Ok(Station::new((queue, handler, options), lease, weight, hands, tally))
    }
}
