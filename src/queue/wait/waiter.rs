//! A consumer in a wait list, and the ways in which its wait can end.

use tokio::{
    sync::{oneshot, watch},
    time::{Duration, Instant},
};

use crate::{
    error::Result,
    postgres::db::{Heard, Subscription},
    queue::{
        batch::dequeues::{Batches, DequeueMode, PAGE},
        wait::hooks::Hooks,
    },
};

pub(crate) struct Wanted<'a> {
    /// The number of messages to dequeue for the consumer, and how to dequeue them. `None` if the
    /// consumer waits only until a message may be due.
    pub messages: Option<(usize, DequeueMode)>,
    pub alarm: Alarm<'a>,
    pub hooks: &'a Hooks,
}

/// The event that ends a wait, in addition to messages that the poller finds.
pub(crate) enum Alarm<'a> {
    /// The end of each interval.
    Every(Duration),
    /// A notification beyond the given number. That number was counted before the consumer's last
    /// dequeue, which left nothing due.
    Notification(&'a Subscription, u64),
}

/// The reason why a wait ended.
#[derive(Debug)]
pub(crate) enum WakeUp {
    /// Messages were dequeued. The second value is the number of notifications before that dequeue,
    /// if no other message was due.
    Messages(Batches, Option<u64>),
    /// A message may be due.
    MayBeDue,
    /// The time limit has passed.
    TimeIsUp,
}

/// A consumer in the list.
pub(crate) struct Waiter {
    pub nr: u64,
    pub messages: Option<(usize, DequeueMode)>,
    pub alarm: Armed,
    pub until: Option<Instant>,
    pub hooks: Hooks,
    /// True if the hooks have been called for this wait.
    pub is_announced: bool,
    pub answer: oneshot::Sender<Result<WakeUp>>,
}

pub(crate) enum Armed {
    At { next: Instant, every: Duration },
    Notification { heard: watch::Receiver<Heard>, before: u64 },
}

impl Waiter {
    pub fn new(wanted: Wanted<'_>, until: Option<Instant>, answer: oneshot::Sender<Result<WakeUp>>) -> Self {
        let Wanted { messages, alarm, hooks } = wanted;
        let alarm = match alarm {
            Alarm::Every(every) => Armed::At { next: Instant::now() + every, every },
            Alarm::Notification(subscription, before) => {
                Armed::Notification { heard: subscription.heard.clone(), before }
            }
        };
        let messages = messages.map(|(n, how)| (n.min(PAGE), how));
        Self { nr: 0, messages, alarm, until, hooks: hooks.clone(), is_announced: false, answer }
    }

    pub fn n(&self) -> usize {
        self.messages.map_or(0, |(n, _)| n)
    }

    pub fn answer(self, answer: Result<WakeUp>) {
        let _ = self.answer.send(answer); // if the consumer has left, dropping the answer puts its messages back
    }

    pub fn listens(&self) -> bool {
        matches!(self.alarm, Armed::Notification { .. })
    }
}
