//! A request for messages, as a draft is a request to enqueue one.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, Result};

/// A request for at most `n` messages, with options. Every call that takes or leases messages
/// accepts one, or just `n`.
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
    /// At most `n` messages. A lease lasts for the queue's lease time, and a consumer waits until
    /// at least one message is due.
    #[must_use]
    pub fn up_to(n: usize) -> Self {
        Self { n, lease: None, within: None }
    }

    /// The lease time: more than zero, at most 365 days. An error for a take, which has no lease.
    #[must_use]
    pub fn lease_for(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// The longest wait of a consumer. If nothing is due by then, the call returns no message.
    /// Unlike a timeout around the call, it never dequeues messages that its caller does not
    /// receive: only the wait ends, and the call waits for a running statement. An error for a
    /// call that does not wait.
    #[must_use]
    pub fn within(self, longest: Duration) -> Self {
        Self { within: Some(longest), ..self }
    }

    pub(crate) fn n(self) -> usize {
        self.n
    }

    /// The lease time in seconds, as the statements take it; `None` for the queue's.
    pub(crate) fn lease(self) -> Option<f64> {
        self.lease.map(seconds)
    }

    /// The end of the wait; `None` for a wait without an end.
    pub(crate) fn until(self) -> Option<Instant> {
        self.within.and_then(|longest| Instant::now().checked_add(longest))
    }

    /// # Errors
    /// A longest wait is set: this call does not wait.
    pub(crate) fn without_wait(self) -> Result<Self> {
        match self.within {
            None => Ok(self),
            Some(_) => Err(Error::invalid(
                "a queue does not wait for messages, so `Dequeue::within` has no meaning here: call a consumer",
            )),
        }
    }

    /// # Errors
    /// A lease time is set: this call takes.
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

/// Returns a lease time as a number that Postgres can make an interval of, so that the server
/// reports one that is out of bounds.
pub(crate) fn seconds(lease: Duration) -> f64 {
    lease.as_secs_f64().min(1e9)
}
