//! The worker of a queue with keys. It leases messages from its partitions, keeps their order when
//! some go back, and returns the partitions when it ends.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::{join_all, try_join_all};
use tokio::time::{timeout, timeout_at};
use tracing::debug;

use crate::{
    error::Result,
    postgres::{db::Subscription, wire::only},
    queue::{batch::notify::may_have_committed, consumer::hearing, message::payload::Payload, wait::Wait},
    worker::{holder::Holder, station::Station},
};

/// The maximum time between two lease requests, because other workers may be waiting for one of
/// this worker's partitions.
const LONGEST: Duration = Duration::from_secs(1);
/// The minimum wait for messages that are held back, or are being moved to the backlog of their
/// key.
const LEAST: Duration = Duration::from_millis(5);
/// The number of consecutive lease statements that may miss a due message. After that, a draining
/// worker no longer waits for the message.
const MISSES: u32 = 3;
/// The time for which the runner waits for a release. Another session may have locked a message.
const PATIENCE: Duration = Duration::from_millis(500);
/// The timeout for returning the partitions.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The notifications for a worker that leases from partitions.
pub(super) struct Ear {
    subscription: Option<Subscription>,
}

impl Ear {
    /// Returns the number of notifications so far.
    pub fn heard(&mut self) -> Option<u64> {
        hearing::heard(&mut self.subscription)
    }
}

impl<T: Payload> Station<T> {
    /// Subscribes to the queue's channel, if the queue has keys.
    pub fn ear(&self) -> Option<Ear> {
        let shared = &self.queue.shared;
        self.holder.as_ref().map(|_| Ear { subscription: Some(shared.db.subscribe(&shared.channel)) })
    }

    /// Waits until a message may be due, or until a notification arrives that the count `rings`
    /// does not include. A queue without keys has no subscription (`ear`): then it never returns.
    pub async fn hear(&self, ear: &mut Option<Ear>, rings: Option<u64>) -> Result<()> {
        let (Some(Ear { subscription }), Some(holder)) = (ear, &self.holder) else {
            return std::future::pending().await;
        };
        let shared = &self.queue.shared;
        // Frees the partitions of former numbers that have no leases, so that this worker can also
        // lease them. The statements are sent together, but each is its own transaction: one for
        // all numbers could deadlock with an extension of leases, which locks partitions in order.
        let former = holder.former().into_iter();
        let leave = |number: i64| async move { shared.query_again(&shared.sql.leave, &[&number]).await };
        try_join_all(former.map(leave)).await?;
        let (due_in, is_due) = self.lanes_in(holder).await?;
        if !is_due && !matches!(self.options.wait, Wait::Poll(_)) && hearing::hears(subscription.as_ref()) {
            self.options.hooks.before_wait();
        }
        hearing::sleep(subscription, due_in, rings).await;
        Ok(())
    }

    /// Returns the time until a message of the partitions will be due, or until the limits allow
    /// one. Also returns whether a message is due but not available yet.
    async fn lanes_in(&self, holder: &Holder) -> Result<(Duration, bool)> {
        let shared = &self.queue.shared;
        let due_in: Option<f64> =
            only(&shared.query_again(&shared.sql.lanes_in, &[&holder.number()]).await?)?.read(0)?;
        let is_due = due_in.is_some_and(|seconds| seconds <= 0.0);
        let wait = due_in.and_then(|seconds| Duration::try_from_secs_f64(seconds.abs()).ok()).unwrap_or(LONGEST);
        let least = if is_due { LEAST } else { Duration::ZERO };
        Ok((wait.clamp(least, LONGEST), is_due))
    }

    /// Returns how long a due message will stay unavailable, because a pause or a limit holds it
    /// back, its key rests, or it is being moved to the backlog of its key. Returns `None` if no
    /// message is due.
    pub async fn rests(&self) -> Result<Option<Duration>> {
        if let Some(holder) = &self.holder
            && let (wait, true) = self.lanes_in(holder).await?
        {
            return Ok(Some(wait));
        }
        let held = self.queue.shared.held_back().await?;
        // Counts the statements that missed a due message for an unknown reason. Another session
        // may have locked the message, or the limits, during the statement.
        let misses = self.held().asked_in_vain(held == Some(Duration::ZERO));
        Ok(held.filter(|_| misses < MISSES).map(|held| held.clamp(LEAST, LONGEST)))
    }

    /// Gives back messages that wait behind failed ones. Also lets keys that have enough messages
    /// in this worker rest. Waits for the release, because until then the next lease may return
    /// messages that must go back, too. After a while, the release continues in its own task.
    pub async fn give_back(self: &Arc<Self>) {
        let full = self.held().full();
        if !full.is_empty() {
            let (keys, rests): (Vec<&str>, Vec<f64>) =
                full.iter().map(|(key, rest)| (&**key, rest.as_secs_f64())).unzip();
            let shared = &self.queue.shared;
            if let Err(error) = shared.query(&shared.sql.line, &[&keys, &rests]).await {
                debug!(queue = self.name(), %error, "keys not moved to backlogs of their own");
            }
        }
        let back = self.held().begin_giving_back();
        if !back.is_empty() {
            let released = tokio::spawn(self.clone().release_counted(back));
            let _ = timeout(PATIENCE, released).await;
        }
    }

    /// Starts waiting messages when the buckets of their keys allow it.
    pub async fn open(self: Arc<Self>) {
        loop {
            let (has_some, next) = self.held().open(Instant::now());
            if has_some {
                self.changed.notify_one();
            }
            let sooner = self.sooner.notified();
            if let Some(next) = next {
                let _ = timeout_at(next.into(), sooner).await;
            } else {
                sooner.await;
            }
        }
    }

    /// Gives the partitions back. If that fails, they become free when their leases end.
    pub async fn leave(&self) {
        let Some(holder) = &self.holder else { return };
        let shared = &self.queue.shared;
        let numbers = [holder.number()].into_iter().chain(holder.former());
        let leave = |number: i64| async move {
            let left = shared.query(&shared.sql.leave, &[&number]).await;
            if may_have_committed(&left) {
                shared.db.wake(&shared.channel);
            }
            if let Err(error) = left {
                debug!(queue = self.name(), %error, "partitions not released");
            }
        };
        if timeout(LAST_WORDS, join_all(numbers.map(leave))).await.is_err() {
            debug!(queue = self.name(), "partitions not released in time");
        }
    }
}
