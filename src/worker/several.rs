//! Several queues in one worker.

use std::{fmt, panic::resume_unwind, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    error::Result,
    queue::payload::Payload,
    worker::{
        builder::Worker,
        hands::Hands,
        tally::{Summary, Tally},
    },
};

/// Workers of several queues, of any payload types, that share a number of handlers by weight.
///
/// Each queue has one handler to itself. The others go, as they become free, by weight to the queues that have work: a
/// queue that is empty leaves its part to them. A running handler is never interrupted for that.
///
/// ```no_run
/// # use trunkline::{Failure, Queue, Worker, Workers};
/// # async fn example(mails: Queue<String>, bills: Queue<i64>) -> trunkline::Result<()> {
/// let mails = Worker::new(mails, |_mail| async { Ok::<(), Failure>(()) });
/// let bills = Worker::new(bills, |_bill| async { Ok::<(), Failure>(()) });
/// Workers::new(64).add(mails, 1).add(bills, 3).run(std::future::pending()).await?; // three bills for a mail
/// # Ok(())
/// # }
/// ```
pub struct Workers {
    concurrency: usize,
    lines: Vec<Begin>,
}

/// Makes a worker's future, once everybody who shares with it is known.
type Begin =
    Box<dyn FnOnce(Arc<Hands>, Arc<Tally>, CancellationToken) -> Result<BoxFuture<'static, Result<()>>> + Send>;

impl fmt::Debug for Workers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { concurrency, lines } = self;
        out.debug_struct("Workers").field("concurrency", concurrency).field("queues", &lines.len()).finish()
    }
}

impl Workers {
    /// So many handlers at a time, for all queues together; at least one for each.
    #[must_use]
    pub fn new(concurrency: usize) -> Self {
        Self { concurrency, lines: Vec::new() }
    }

    /// Adds a worker with a weight of at least 1.
    #[must_use]
    pub fn add<T: Payload>(mut self, worker: Worker<T>, weight: u32) -> Self {
        self.lines.push(Box::new(move |hands, tally, stop| {
            let line = worker.line(weight, hands, tally)?;
            Ok(Box::pin(line.live(stop)))
        }));
        self
    }

    /// As [`Worker::run`], for all of them; the first that ends with an error ends the others in order.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Summary> {
        let (hands, tally) = (Arc::new(Hands::new(self.concurrency)), Arc::<Tally>::default());
        let stop = CancellationToken::new();
        let begun: Result<Vec<_>> =
            self.lines.into_iter().map(|begin| begin(hands.clone(), tally.clone(), stop.clone())).collect();
        let mut lines: JoinSet<Result<()>> = begun?.into_iter().collect();
        let mut shutdown = std::pin::pin!(shutdown);
        let mut outcome = Ok(());
        loop {
            tokio::select! {
                () = &mut shutdown, if !stop.is_cancelled() => stop.cancel(),
                ended = lines.join_next() => match ended {
                    None => return outcome.map(|()| tally.summary()),
                    Some(ended) => {
                        outcome = outcome.and(ended.unwrap_or_else(died));
                        stop.cancel();
                    }
                },
            }
        }
    }
}

impl<T: Payload> Worker<T> {
    /// Works until `shutdown` is ready, then ends in order (see [`Worker::shutdown_after`]) and tells what it did.
    ///
    /// If the call is dropped, handlers are dropped where they wait, and their messages come back when the leases end.
    ///
    /// # Errors
    /// What does not pass: the queue was dropped ([`Error::is_no_queue`](crate::Error::is_no_queue)), the database refuses the login, the lease
    /// time is out of bounds. The running handlers were awaited then, as at a shutdown. A database that is away is waited
    /// for.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Summary> {
        Workers::new(self.concurrency).add(self, 1).run(shutdown).await
    }

    /// Works until nothing is due and no handler runs, then tells what it did: for tests, and for programs that are started every so
    /// often. What handlers enqueue meanwhile is worked on, and so is a failed message that is due again by then. It waits for nothing
    /// that is due later, nor for messages that others have leased.
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
    /// As [`Worker::run`].
    pub async fn drain(mut self) -> Result<Summary> {
        self.options.drains = true;
        self.run(std::future::pending()).await
    }
}

/// A line ended by a panic of our own; nobody aborts it.
fn died(error: JoinError) -> Result<()> {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Ok(()),
    }
}
