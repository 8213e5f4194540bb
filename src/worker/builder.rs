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

/// Runs a function for every message of a queue, at least once. It leases messages, starts
/// handlers, and acknowledges, retries or buries messages according to the handlers' answers.
///
/// - The lease of a running message is renewed for as long as its handler runs. If the lease is
///   lost all the same, the answer is discarded, and the handler can be notified
///   ([`Worker::with_attempt`]).
/// - It prefetches messages that will start within a tenth of a second, at most about 8,000. So
///   quick handlers never wait for the database. Of slow jobs it holds only the running ones.
///   Create queues of slow jobs with [`Settings::max_batch`](crate::Settings::max_batch) 1.
/// - The [`RetryPolicy`] decides when a failed message is tried again, until its attempts are used
///   up. A panic is a failure with the panic's text.
/// - While it runs, the process makes the ticks of [schedules](crate::Schedule), if its role may.
/// - While the database is away, handlers keep running. Their answers are settled when it is back,
///   if the leases have not ended by then.
///
/// As with every future, a handler must not block its thread for long: the same runtime makes the
/// renewals. Use `tokio::task::spawn_blocking`, or [`Attempt::extend`].
///
/// ```no_run
/// # use trunkline::{Failure, Queue, Summary, Worker};
/// # async fn example(
/// #     mails: Queue<String>,
/// #     shutdown: impl Future<Output = ()>,
/// # ) -> trunkline::Result<()> {
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
    /// Creates a worker whose handler gets one message per call. Errors become [`Failure`]s.
    #[must_use]
    pub fn new<F, E>(queue: Queue<T>, handler: impl Fn(Message<T>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure> + 'static,
    {
        Self::of(queue, Handler::of_one(handler))
    }

    /// Creates a worker whose handler also gets its [`Attempt`], which reports a lost lease.
    /// Otherwise as [`Worker::new`].
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

    /// Creates a worker whose handler gets up to `most` available messages per call, and answers
    /// for each in the same order. A panic, a timeout or a wrong number of answers fails all of
    /// them. At most 64 calls run at the same time, unless [`Worker::concurrency`] sets another
    /// number.
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

    /// Sets how many handlers run at the same time: 64 by default, at least 1. In
    /// [`Workers`](crate::Workers) the number of the group applies instead.
    #[must_use]
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency, ..self }
    }

    /// Sets how long a handler may take for a call; unlimited by default. After that the handler is
    /// dropped at the point where it waits, and its messages have failed.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets the retry policy for failed messages; [`RetryPolicy::default`] by default.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.options.retry = retry;
        self
    }

    /// Sets a lease time instead of the queue's own: more than zero, at most 365 days. Leases are
    /// renewed while a handler runs, so this is how long messages stay hidden after a worker was
    /// killed.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }

    /// Sets how long a shutdown waits for running handlers; 30 seconds by default. After that,
    /// handlers are notified and then dropped. Their messages are given back: due again at once,
    /// and the attempt is not counted.
    #[must_use]
    pub fn shutdown_after(mut self, limit: Duration) -> Self {
        self.options.shutdown_after = limit;
        self
    }

    /// Sets how the worker waits for messages; [`Wait::default`] by default.
    #[must_use]
    pub fn wait(mut self, wait: Wait) -> Self {
        self.options.wait = wait;
        self
    }

    /// Sets whether the worker reports every ten seconds, in a row of the table `trunkline.worker`;
    /// `false` by default. A row holds how many messages were handled and failed since the last
    /// report. It also holds how long the handler took, how many handlers run, and this library's
    /// version. [The console](https://github.com/trunkline/trunkline/blob/main/docs/console.md) and
    /// its doctor show the rows, which are removed after an hour. A failed report does not stop the
    /// work.
    #[must_use]
    pub fn reports(mut self, reports: bool) -> Self {
        self.options.reports = reports;
        self
    }

    /// Calls the function after each attempt, before the message is settled, with its lease and the
    /// handler's answer; a panic or a timeout is a failure. The function runs in the handler's
    /// task, so it should be quick. If this method is called again, both functions are called.
    ///
    /// With this and [`Worker::before_wait`] a test can wait for an event instead of sleeping:
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tokio::sync::Notify;
    /// # use trunkline::{Failure, Queue, Worker};
    /// # async fn example(mails: Queue<String>) -> trunkline::Result<()> {
    /// let (tried, asleep) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    /// let (tries, sleeps) = (tried.clone(), asleep.clone());
    /// let worker =
    ///     Worker::new(mails.clone(), |_mail| async { Err::<(), _>(Failure::retry("no")) })
    ///     .after_attempt(move |_lease, outcome| {
    ///         assert_eq!(outcome.expect_err("it fails").reason(), "no");
    ///         tries.notify_one();
    ///     })
    ///     .before_wait(move || sleeps.notify_one());
    /// tokio::spawn(worker.run(std::future::pending()));
    /// asleep.notified().await; // the worker listens, and has found nothing due
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
    /// notification: later messages wake it. If this method is called again, both functions are
    /// called. A worker that polls never calls them.
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
