//! Lets a consumer wait, step by step, until a dequeue finds something.

use tokio::time::Instant;
use tracing::warn;

use super::{
    Consumer,
    hearing::{from_others, heard, hears, sleep},
    offer::Offer,
};
use crate::{
    error::{Error, Result},
    queue::{
        batch::dequeues::DequeueMode,
        handle::Queue,
        message::{dequeue::Dequeue, payload::Payload},
        verbs::lease::Delivered,
        wait::{
            Step,
            linger::{Linger, Rings},
            waiter::{Alarm, WakeUp, Wanted},
        },
    },
};

impl<T: Payload> Consumer<T> {
    pub(super) async fn until_some(&mut self, request: Dequeue, how: DequeueMode) -> Result<Delivered<T>> {
        let (n, until) = (request.n(), request.until());
        loop {
            let rings = self.heard();
            // After a dequeue that left nothing due, no other dequeue is needed until a message is
            // announced or becomes due. A call with a time limit dequeues anyway, because it may
            // not get another chance.
            let drained = self.drained.take();
            let known = until.is_none() && rings.is_some() && drained == rings && hears(self.subscription.as_ref());
            let outcome = match known {
                true => Ok(Delivered::nothing()),
                false => self.queue.dequeue(n, how, until).await,
            };
            let found = match outcome {
                Ok(found) if found.messages.is_empty() && n > 0 => {
                    if until.is_some_and(|until| Instant::now() >= until) {
                        return Ok(found);
                    }
                    self.wait(Some((n, how)), rings, until).await.and_then(|wake_up| self.met(wake_up))
                }
                Ok(found) => {
                    self.dequeued(rings, None, found.is_short);
                    Ok(Some(found))
                }
                Err(error) => Err(error),
            };
            match found {
                Ok(Some(found)) => {
                    if !found.messages.is_empty() || n == 0 {
                        self.found();
                    }
                    return Ok(found);
                }
                Ok(None) => {}
                // No time is left to try again, so the caller receives the error.
                Err(error) if until.is_some_and(|until| Instant::now() >= until) => return Err(error),
                Err(error) => self.try_again(error)?,
            }
        }
    }

    /// Dequeues messages that are due now, without waiting. Returns `None`, and sends no statement,
    /// if the last dequeue left nothing and no notification has arrived since.
    pub(crate) async fn due_now(&mut self, n: usize, how: DequeueMode) -> Result<Option<Offer<T>>> {
        let rings = self.heard();
        let drained = self.drained.take();
        if rings.is_some() && drained == rings && hears(self.subscription.as_ref()) {
            return Ok(None);
        }
        let found = self.queue.offer(n, how).await?;
        self.dequeued(rings, None, found.is_short_of(n));
        if !found.is_empty() {
            self.found();
        }
        Ok(Some(found))
    }

    /// Waits until a probe of the queue finds a due message.
    pub(crate) async fn until_due(&mut self) -> Result<()> {
        loop {
            let rings = self.heard();
            let due_in = match self.is_in_crowd {
                true => self.queue.shared.look_together().await,
                false => self.queue.shared.look().await,
            };
            match due_in {
                Ok(Some(due_in)) if due_in <= 0.0 => {
                    self.found();
                    return Ok(());
                }
                Ok(_) => {
                    self.is_in_crowd = true;
                    self.idle(rings).await?;
                }
                Err(error) => self.try_again(error)?,
            }
        }
    }

    /// Returns `Ok` for errors after which a consumer dequeues again: a lost connection, which each
    /// guarantee allows for, and the end of another runtime that ran the shared statement. Returns
    /// all other errors.
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

    /// Returns the messages that ended a wait, or no messages if the time was up. Returns `None` if
    /// the consumer must dequeue again.
    fn met(&mut self, wake_up: WakeUp) -> Result<Option<Delivered<T>>> {
        match wake_up {
            WakeUp::Messages(batches, drained) => {
                self.drained = drained;
                let found = self.queue.open(batches)?;
                Ok((!found.messages.is_empty()).then_some(found)) // dequeues again if all messages were unreadable
            }
            WakeUp::MayBeDue => Ok(None),
            WakeUp::TimeIsUp => Ok(Some(Delivered::nothing())),
        }
    }

    /// Returns the number of notifications so far. Call it before a dequeue, and pass it to
    /// [`Consumer::idle`].
    pub(crate) fn heard(&mut self) -> Option<u64> {
        heard(&mut self.subscription)
    }

    /// Records a dequeue, which may have come after a pause. `is_short` is true if it left no due
    /// message. Returns the number of notifications before the dequeue.
    pub(crate) fn dequeued(&mut self, rings: Option<u64>, paused: Option<&Rings>, is_short: bool) -> Option<u64> {
        if paused.is_some() {
            self.pace.lingered();
        }
        let rings = paused.map(Rings::get).or(rings);
        self.drained = rings.filter(|_| is_short);
        rings
    }

    /// Returns a pause for work that can wait until the next message. There is a pause only if no
    /// message is due and a notification will announce the next message.
    pub(crate) fn linger(&self, rings: Option<u64>) -> Option<Linger> {
        let subscription = self.subscription.as_ref().filter(|subscription| hears(Some(subscription)))?;
        (rings.is_some() && self.drained == rings).then(|| Linger::new(subscription))
    }

    /// Records that a dequeue found something.
    pub(crate) fn found(&mut self) {
        let from_others = from_others(self.subscription.as_ref());
        if self.pace.found(Instant::now().into_std(), from_others) {
            self.subscription = None;
        }
    }

    /// Waits one step after an empty dequeue that began after `rings` notifications. Takes no
    /// messages, so the call may be dropped at any time.
    pub(crate) async fn idle(&mut self, rings: Option<u64>) -> Result<()> {
        self.wait(None, rings, None).await.map(drop)
    }

    /// Waits one step after a dequeue that left nothing due and began after `rings` notifications.
    /// The queue's poller dequeues `messages` for the consumer.
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
                sleep(subscription, pause.min(left), rings).await; // a notification also ends the pause
                return Ok(WakeUp::MayBeDue);
            }
            Step::Listen => {
                *subscription = Some(shared.db.subscribe(&shared.channel));
                return Ok(WakeUp::MayBeDue);
            }
            Step::Look => match (subscription, rings) {
                (Some(subscription), Some(rings)) => Alarm::Notification(subscription, rings),
                _ => return Ok(WakeUp::MayBeDue), // the consumer began to listen after its last dequeue
            },
        };
        shared.wait(Wanted { messages, alarm, hooks }, until).await
    }
}
