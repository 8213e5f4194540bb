//! A request for messages.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, Result};

/// A request for at most `n` messages, with options. Every call that takes or leases messages
/// accepts a request, or simply the number `n`.
///
/// ```
/// # use std::time::Duration;
/// # use trunkline::{Dequeue, Queue, Result, Wait};
/// # async fn example(mails: Queue<String>) -> Result<()> {
/// let now = mails.lease(10).await?; // for the queue's lease time
/// let longer = mails.lease(Dequeue::up_to(10).lease_for(Duration::from_secs(600))).await?;
/// let mut consumer = mails.consumer(Wait::default());
/// let soon = consumer.lease(Dequeue::up_to(10).within(Duration::from_secs(1))).await?;
/// # let _ = (now, longer, soon);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dequeue {
    n: usize,
    lease: Option<Duration>,
    within: Option<Duration>,
}

impl Dequeue {
    /// Requests at most `n` messages. A lease lasts for the queue's lease time, and a consumer
    /// waits until at least one message is due.
    #[must_use]
    pub fn up_to(n: usize) -> Self {
        Self { n, lease: None, within: None }
    }

    /// Sets the lease time: more than zero, at most 365 days. Calls that take messages return an
    /// error, because they have no lease.
    #[must_use]
    pub fn lease_for(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Sets the maximum wait of a consumer. If nothing is due by then, the call returns no
    /// messages. Unlike a timeout around the call, this limit never loses messages that were
    /// already dequeued, because the call always waits for a running statement. If that statement
    /// loses its connection after the limit, the call returns the error instead of trying again.
    /// With a limit of zero, the call checks the queue once. Calls that do not wait return an
    /// error.
    ///
    /// [`Consumer::take_in`](crate::Consumer::take_in) and
    /// [`Consumer::take_with`](crate::Consumer::take_with) have no maximum wait: `take_in` refuses
    /// it, and `take_with` accepts only a number.
    #[must_use]
    pub fn within(self, longest: Duration) -> Self {
        Self { within: Some(longest), ..self }
    }

    pub(crate) fn n(self) -> usize {
        self.n
    }

    /// Returns the lease time in seconds, or `None` for the queue's lease time.
    pub(crate) fn lease(self) -> Option<f64> {
        self.lease.map(seconds)
    }

    /// Returns the end of the wait; `None` for a wait without a limit.
    pub(crate) fn until(self) -> Option<Instant> {
        self.within.and_then(|longest| Instant::now().checked_add(longest))
    }

    /// Checks that no maximum wait is set, for calls that do not wait.
    ///
    /// # Errors
    /// A maximum wait is set.
    pub(crate) fn without_wait(self) -> Result<Self> {
        self.refuse_wait(
            "a queue does not wait for messages, so `Dequeue::within` has no meaning here: call a consumer",
        )
    }

    /// Checks that no maximum wait is set, for the call that waits in a transaction.
    ///
    /// # Errors
    /// A maximum wait is set.
    pub(crate) fn without_limit(self) -> Result<Self> {
        self.refuse_wait(
            "`Consumer::take_in` has no maximum wait, so `Dequeue::within` has no meaning here: \
             await `Consumer::ready` with a timeout, then call `Queue::take_in`",
        )
    }

    fn refuse_wait(self, why: &str) -> Result<Self> {
        match self.within {
            None => Ok(self),
            Some(_) => Err(Error::invalid(why)),
        }
    }

    /// Checks that no lease time is set, for calls that take messages.
    ///
    /// # Errors
    /// A lease time is set.
    pub(crate) fn without_lease(self) -> Result<Self> {
        match self.lease {
            None => Ok(self),
            Some(_) => {
                Err(Error::invalid("a take has no lease, so `Dequeue::lease_for` has no meaning here: call `lease`"))
            }
        }
    }
}

impl From<usize> for Dequeue {
    fn from(n: usize) -> Self {
        Self::up_to(n)
    }
}

/// Returns a lease time as a number that Postgres can convert to an interval. The server then
/// reports lease times that are out of bounds.
pub(crate) fn seconds(lease: Duration) -> f64 {
    lease.as_secs_f64().min(1e9)
}
