//! Configures a worker, which runs a function for every message of a queue.

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
        held::ByteLimit,
        retry_policy::RetryPolicy,
        station::{Options, Station},
        tally::Tally,
    },
};

/// A worker that runs a function for every message of a queue, at least once. It leases messages,
/// starts handlers, and acknowledges, retries or buries each message according to the handler's
/// result.
///
/// - The worker renews the lease of a message while its handler runs. If the lease is lost
///   nevertheless, the result is discarded, and the handler can be notified
///   ([`Worker::with_attempt`]).
/// - The worker prefetches messages that will start within a tenth of a second, at most about
///   8,000, so quick handlers rarely wait for the database. If jobs are slow, the worker leases
///   only messages that can start at once. Create queues of slow jobs with
///   [`Settings::max_batch`](crate::Settings::max_batch) 1.
/// - The [`RetryPolicy`] decides when a failed message is tried again, until its attempts are
///   exhausted. A panic is a failure whose reason is the panic message.
/// - While the worker runs, its process also enqueues the messages of [schedules](crate::Schedule),
///   if its role has the right.
/// - While the database is unreachable, handlers keep running. The worker settles their results
///   after it has reconnected, unless the leases have ended.
///
/// Like any future, a handler must not block its thread for long, because the same runtime renews
/// the leases. Use `tokio::task::spawn_blocking`, or [`Attempt::extend`].
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
    limit: Option<ByteLimit<T>>,
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
    /// Creates a worker whose handler receives one message per call. Errors become [`Failure`]s.
    #[must_use]
    pub fn new<F, E>(queue: Queue<T>, handler: impl Fn(Message<T>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Failure> + 'static,
    {
        Self::of(queue, Handler::of_one(handler))
    }

    /// Creates a worker like [`Worker::new`]. Its handler also receives the [`Attempt`], which
    /// reports a lost lease.
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

    /// Creates a worker whose handler receives up to `most` available messages per call. The
    /// handler returns a result for each message, in the same order. A panic, a timeout or a wrong
    /// number of results fails all messages of the call. At most 64 calls run at the same time,
    /// unless [`Worker::concurrency`] sets another number.
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
        Self { queue, handler, concurrency: 64, options, limit: None }
    }

    /// Sets the number of handlers that run at the same time: 64 by default, at least 1. In
    /// [`Workers`](crate::Workers), the number of the group applies instead.
    #[must_use]
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency, ..self }
    }

    /// Sets the timeout of each handler call; unlimited by default. After the timeout, the
    /// handler is dropped at its current await point, and its messages fail.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets the retry policy for failed messages, [`RetryPolicy::default`] by default.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.options.retry = retry;
        self
    }

    /// Sets a lease time to use instead of the queue's: more than zero, at most 365 days. The
    /// worker renews leases while a handler runs. After a crash of the worker, its messages
    /// therefore stay hidden for at most this time.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }

    /// Sets how long a shutdown waits for running handlers, 30 seconds by default. After that, the
    /// worker notifies the handlers and then drops them. It gives their messages back: they are due
    /// again at once, and the attempt is not counted.
    #[must_use]
    pub fn shutdown_after(mut self, limit: Duration) -> Self {
        self.options.shutdown_after = limit;
        self
    }

    /// Sets how the worker waits for messages, [`Wait::default`] by default. The worker of a queue
    /// with keys always listens, and also asks once a second.
    #[must_use]
    pub fn wait(mut self, wait: Wait) -> Self {
        self.options.wait = wait;
        self
    }

    /// Sets whether the worker reports every ten seconds, in a row of the table `trunkline.worker`;
    /// `false` by default. A row contains the numbers of messages handled and failed since the last
    /// report, the handlers' durations, the number of running handlers, and this library's version.
    /// [The console](https://github.com/trunkline/trunkline/blob/main/docs/console.md) and its
    /// doctor show the rows, which are removed after an hour. A failed report does not stop the
    /// worker.
    #[must_use]
    pub fn reports(mut self, reports: bool) -> Self {
        self.options.reports = reports;
        self
    }

    /// Calls `hook` after each attempt, before the message is settled, with the lease and the
    /// handler's result. A panic or a timeout is a failure. The hook runs in the handler's task, so
    /// it should return quickly. If several hooks are set, all of them are called.
    ///
    /// With this method and [`Worker::before_wait`], a test can wait for an event instead of
    /// sleeping:
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

    /// Calls `hook` whenever nothing is due and the worker is about to wait for a notification.
    /// Messages enqueued after that call wake the worker. If several hooks are set, all of them are
    /// called. A worker that polls never calls this hook.
    #[must_use]
    pub fn before_wait(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.options.hooks.add_before_wait(hook);
        self
    }

    /// Sets whether a message whose lease expired runs alone, because it may have crashed its
    /// worker; `true` by default. Pass `false` if no message can crash the handler, as in a relay
    /// that does not read the payloads. Messages of a crashed worker are then delivered as fast as
    /// all others.
    #[must_use]
    pub fn isolate_after_crash(mut self, isolate: bool) -> Self {
        self.options.isolates = isolate;
        self
    }

    /// Limits the bytes of the messages that the worker holds, including prefetched messages, to
    /// about `most`. `size` returns the bytes of a message. The sizes of earlier messages determine
    /// how many messages the worker leases, so one lease may exceed the limit.
    #[doc(hidden)]
    #[must_use]
    pub fn bytes_in_hand(mut self, most: usize, size: fn(&Message<T>) -> usize) -> Self {
        self.limit = Some(ByteLimit::new(most, size));
        self
    }

    pub(super) fn station(self, weight: u32, hands: Arc<Hands>, tally: Arc<Tally>) -> Result<Arc<Station<T>>> {
        let Self { queue, handler, options, limit, .. } = self;
        let lease = options.lease.unwrap_or(queue.description().lease);
        if lease.is_zero() || lease > Duration::from_secs(365 * 86_400) {
            return Err(Error::invalid(format!(
                "a lease of {lease:?} is out of bounds: more than zero, at most 365 days"
            )));
        }
        Ok(Station::new((queue, handler, options, limit), lease, weight, hands, tally))
    }
}
