//! How a consumer waits, step after step, until a dequeue finds something.

use tokio::time::Instant;
use tracing::warn;

use super::{
    Consumer,
    hearing::{heard, hears, sleep},
};
use crate::{
    error::{Error, Result},
    queue::{
        batch::dequeues::DequeueMode,
        handle::Queue,
        message::{Message, dequeue::Dequeue, payload::Payload},
        wait::{
            Step,
            linger::{Linger, Rings},
            waiter::{Alarm, WakeUp, Wanted},
        },
    },
};

impl<T: Payload> Consumer<T> {
    pub(super) async fn until_some(&mut self, request: Dequeue, how: DequeueMode) -> Result<Vec<Message<T>>> {
        let (n, until) = (request.n(), request.until());
        loop {
            let rings = self.heard();
            // What comes after a dequeue that left nothing is announced, or due later. With a limit
            // to the wait there may be no later.
            let drained = self.drained.take();
            let known = until.is_none() && rings.is_some() && drained == rings && hears(self.subscription.as_ref());
            let outcome = match known {
                true => Ok(Vec::new()),
                false => self.queue.dequeue(n, how).await,
            };
            let found = match outcome {
                Ok(found) if found.is_empty() && n > 0 => {
                    if until.is_some_and(|until| Instant::now() >= until) {
                        return Ok(found);
                    }
                    self.wait(Some((n, how)), rings, until).await.and_then(|wake_up| self.met(wake_up))
                }
                Ok(found) => {
                    self.dequeued(rings, None, found.len() < n);
                    Ok(Some(found))
                }
                Err(error) => Err(error),
            };
            match found {
                Ok(Some(found)) => {
                    if !found.is_empty() || n == 0 {
                        self.found();
                    }
                    return Ok(found);
                }
                Ok(None) => {}
                Err(error) => self.try_again(error)?,
            }
        }
    }

    /// Dequeues what is due now, and does not wait. No statement where the last one left nothing
    /// and nothing was announced since.
    pub(crate) async fn due_now(&mut self, n: usize, how: DequeueMode) -> Result<Vec<Message<T>>> {
        let rings = self.heard();
        let drained = self.drained.take();
        if rings.is_some() && drained == rings && hears(self.subscription.as_ref()) {
            return Ok(Vec::new());
        }
        let found = self.queue.dequeue(n, how).await?;
        self.dequeued(rings, None, found.len() < n);
        if !found.is_empty() {
            self.found();
        }
        Ok(found)
    }

    /// Waits until a look finds something due.
    pub(super) async fn until_due(&mut self) -> Result<()> {
        loop {
            let rings = self.heard();
            match self.queue.shared.look().await {
                Ok(Some(due_in)) if due_in <= 0.0 => {
                    self.found();
                    return Ok(());
                }
                Ok(_) => self.idle(rings).await?,
                Err(error) => self.try_again(error)?,
            }
        }
    }

    /// Leasing, taking or looking again is within the contract where the connection was lost; the
    /// door waits for the database. Nor is it the caller's business that another runtime ended,
    /// before or after the statement that was shared with it was sent. What else went wrong is.
    pub(crate) fn try_again(&self, error: Error) -> Result<()> {
        let is_lost = error.is_outcome_unknown() && error.is_closed();
        if !is_lost && !error.is_ended() {
            return Err(error);
        }
        if error.is_outcome_unknown() {
            warn!(queue = self.queue.shared.name(), %error, "no answer to a dequeue; retrying");
        }
        Ok(())
    }

    /// The messages that ended a wait; none at all when its time was up.
    fn met(&mut self, wake_up: WakeUp) -> Result<Option<Vec<Message<T>>>> {
        match wake_up {
            WakeUp::Messages(batches, drained) => {
                self.drained = drained;
                let found = self.queue.open(batches)?;
                Ok((!found.is_empty()).then_some(found)) // of those that cannot be read there is nothing to return
            }
            WakeUp::MayBeDue => Ok(None),
            WakeUp::TimeIsUp => Ok(Some(Vec::new())),
        }
    }

    /// Notifications heard so far. Ask before a dequeue, for [`Consumer::idle`] after it.
    pub(crate) fn heard(&mut self) -> Option<u64> {
        heard(&mut self.subscription)
    }

    /// After a dequeue, perhaps behind a pause: if it came back short, it left nothing due. Returns
    /// the notifications that had been heard before it.
    pub(crate) fn dequeued(&mut self, rings: Option<u64>, paused: Option<&Rings>, is_short: bool) -> Option<u64> {
        if paused.is_some() {
            self.pace.lingered();
        }
        let rings = paused.map(Rings::get).or(rings);
        self.drained = rings.filter(|_| is_short);
        rings
    }

    /// A pause for what can wait until the next message, where none is due and the next one is
    /// announced.
    pub(crate) fn linger(&self, rings: Option<u64>) -> Option<Linger> {
        let subscription = self.subscription.as_ref().filter(|subscription| hears(Some(subscription)))?;
        (rings.is_some() && self.drained == rings).then(|| Linger::new(subscription))
    }

    /// A dequeue found something.
    pub(crate) fn found(&mut self) {
        if self.pace.found(Instant::now().into_std()) {
            self.subscription = None;
        }
    }

    /// One step of waiting after an empty dequeue that began when `rings` had been heard. Takes
    /// nothing, so it may be dropped at any time.
    pub(crate) async fn idle(&mut self, rings: Option<u64>) -> Result<()> {
        self.wait(None, rings, None).await.map(drop)
    }

    /// One step of waiting, after a dequeue that left nothing due and began when `rings` had been
    /// heard. `messages` is what the poller dequeues for it.
    async fn wait(
        &mut self,
        messages: Option<(usize, DequeueMode)>,
        rings: Option<u64>,
        until: Option<Instant>,
    ) -> Result<WakeUp> {
        let Self { queue: Queue { shared, .. }, pace, subscription, hooks, .. } = self;
        let alarm = match pace.nothing(Instant::now().into_std(), subscription.is_some()) {
            Step::Poll(every) => Alarm::Every(every),
            Step::Pause(pause) => {
                let left = until.map_or(pause, |until| until.saturating_duration_since(Instant::now()));
                sleep(subscription, pause.min(left), rings).await; // a listening consumer is woken from the pause, too
                return Ok(WakeUp::MayBeDue);
            }
            Step::Listen => {
                *subscription = Some(shared.db.subscribe(&shared.channel));
                return Ok(WakeUp::MayBeDue);
            }
            Step::Look => match (subscription, rings) {
                (Some(subscription), Some(rings)) => Alarm::Notification(subscription, rings),
                _ => return Ok(WakeUp::MayBeDue), // it listens since that dequeue
            },
        };
        shared.wait(Wanted { messages, alarm, hooks }, until).await
    }
}
