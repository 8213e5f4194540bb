//! A worker of all stripes: a line on each, which share the handlers.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::Arc,
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    error::Result,
    queue::{handle::Queue, message::payload::Payload},
    stripes::{
        id::StripeId,
        queue::{Members, StripedQueue},
        stripe::Stripe,
    },
    worker::{
        Summary, Worker,
        several::{Crew, Later},
    },
};

/// Runs a function for every message of a queue on several servers, at least once: a [`Worker`] on
/// each stripe, which share a number of handlers as those of [`Workers`](crate::Workers) do. So a
/// stripe with much work leaves every other at least one handler, a stripe that is away keeps one
/// and no more, and each message is settled where it came from.
///
/// The worker of a stripe is made by a function, with all that a [`Worker`] can be told: options,
/// hooks, the attempt with its transaction on that server. A stripe that joins later gets one when
/// it is there, and that of one that is taken out ([`Stripes::remove`](crate::Stripes::remove))
/// ends in order.
///
/// ```no_run
/// # use trunkline::{Failure, Result, StripedQueue, StripedWorker, Worker};
/// # async fn example(mails: StripedQueue<String>, shutdown: impl Future<Output = ()>) -> Result<()> {
/// let worker = StripedWorker::new(mails, |_stripe, mails| {
///     Worker::new(mails, |mail| async move {
///         println!("{}", mail.payload);
///         Ok::<(), Failure>(())
///     })
/// });
/// let summary = worker.concurrency(64).run(shutdown).await?;
/// println!("{} done", summary.done);
/// # Ok(()) }
/// ```
pub struct StripedWorker<T> {
    queue: StripedQueue<T>,
    concurrency: usize,
    make: Arc<Make<T>>,
}

type Make<T> = dyn Fn(StripeId, Queue<T>) -> Worker<T> + Send + Sync;

impl<T> fmt::Debug for StripedWorker<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, concurrency, .. } = self;
        out.debug_struct("StripedWorker")
            .field("queue", queue)
            .field("concurrency", concurrency)
            .finish_non_exhaustive()
    }
}

impl<T: Payload> StripedWorker<T> {
    /// A worker whose part on each stripe is made by this function, from the stripe's name and the
    /// part of the queue there.
    #[must_use]
    pub fn new(
        queue: StripedQueue<T>,
        worker: impl Fn(StripeId, Queue<T>) -> Worker<T> + Send + Sync + 'static,
    ) -> Self {
        Self { queue, concurrency: 64, make: Arc::new(worker) }
    }

    /// How many handlers run at the same time, for all stripes together; 64 if not set, at least
    /// one for each. What the parts say of it does not count.
    #[must_use]
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency, ..self }
    }

    /// Works until `shutdown` is ready, then ends in order (see [`Worker::shutdown_after`]) and
    /// tells what was done on all stripes.
    ///
    /// # Errors
    /// As those of [`Worker::run`], of any stripe; the others end in order then. A server that is
    /// away is waited for, and holds up no other.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Summary> {
        let Self { queue, concurrency, make } = self;
        queue.shared.tend();
        let mut crew = Crew::new(concurrency);
        let mut members = queue.shared.members.subscribe();
        let mut lines: BTreeMap<StripeId, (Arc<Stripe>, CancellationToken)> = BTreeMap::new();
        let mut begin = move |crew: &mut Crew, members: &Members<T>| {
            // Those that were taken out end, also where one of that name is there again, by another
            // connection.
            lines.retain(|_, (stripe, line)| {
                let stays = members.iter().any(|member| Arc::ptr_eq(&member.stripe, stripe));
                if !stays {
                    line.cancel();
                }
                stays
            });
            for member in members.iter() {
                let id = member.stripe.id;
                if let Entry::Vacant(place) = lines.entry(id) {
                    let line = crew.begin(make(id, member.queue.clone()), 1)?;
                    place.insert((member.stripe.clone(), line));
                }
            }
            Ok(())
        };
        {
            let now = members.borrow_and_update().clone(); // not for longer: one of them may leave
            begin(&mut crew, &now)?;
        }
        let (more, signal) = watch::channel(());
        let changes = members.clone();
        // Whatever changes from here on is a signal, until the worker ends.
        let watching = async move {
            while members.changed().await.is_ok() && more.send(()).is_ok() {}
            std::future::pending().await
        };
        let later: Later = (signal, Box::new(move |crew| begin(crew, &changes.borrow())));
        tokio::select! {
            summary = crew.run(shutdown, Some(later)) => summary,
            never = watching => never,
        }
    }
}
