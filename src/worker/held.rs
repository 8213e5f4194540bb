//! The messages of one queue that a worker holds: prefetched, running, and finished but not yet
//! settled. Does no I/O: other tasks carry out its decisions.

mod alone;
mod arriving;
mod beat;
mod bucket;
mod bytes;
mod closing;
mod going_back;
mod opening;
mod order;
mod watch;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

pub(super) use self::{bytes::ByteLimit, closing::GivenUp};
use self::{
    bytes::HeldBytes,
    order::{Order, Prefetched},
};
use crate::worker::{
    ahead::Ahead,
    groups::{Decision, Failed, Finished, Groups, ToSettle},
    renewal_barrier::Renewals,
};
use crate::{
    error::caught,
    queue::message::{Lease, Message},
    worker::attempt::Signals,
};

/// The allowed difference between the clocks of worker and server. A lease that ended this long ago
/// by the worker's clock has also ended by the server's clock.
const MARGIN: Duration = Duration::from_secs(1);

struct RunningMessage {
    lease: Lease,
    key: Option<Arc<str>>,
    /// The number of counted attempts of the message, including this one.
    charged: u32,
    group: usize,
    until: Instant,
    lost: bool,
    _bytes: Option<HeldBytes>,
}

/// The messages that one task handles, and the time when they started.
#[derive(Default)]
struct HandState {
    running: Vec<RunningMessage>,
    told: Option<Arc<Signals>>,
    since: Option<Instant>,
}

pub(super) struct Start<T> {
    pub messages: Vec<Message<T>>,
    pub told: Option<Arc<Signals>>,
    /// True if another lease is due.
    pub low: bool,
}

pub(super) struct Held<T> {
    lease: Duration,
    pub ahead: Ahead,
    /// The limit of bytes, if the worker has one.
    pub limit: Option<ByteLimit<T>>,
    waiting: VecDeque<Prefetched<T>>,
    /// Another lease is due when at most this number of messages is waiting.
    pub low: usize,
    groups: Groups,
    hands: Vec<HandState>,
    free_hands: Vec<usize>,
    /// The number of results that are being settled.
    underway: usize,
    /// The number of leases that are being given back.
    returning: usize,
    renewals: Arc<Renewals>,
    /// The last time when a task took a message, or when a message arrived while none was waiting.
    started: Instant,
    /// The number of waiting messages that must run alone.
    to_run_alone: usize,
    /// The message that runs alone, and the time when it started: see `alone.rs`.
    alone: Option<(Lease, Instant)>,
    /// The time of the last check for leases that no longer exist.
    checked: Instant,
    /// The time of the last lease request.
    asked: Instant,
    /// The leases, in a queue without keys, of messages that were too late to start, until the next
    /// heartbeat releases them.
    late: Vec<Lease>,
    /// The number of consecutive lease statements that missed a message: see
    /// [`Held::asked_in_vain`].
    misses: u32,
    /// The order of keys, in a queue whose messages have keys.
    order: Option<Order<T>>,
    /// The leases, in a queue with keys, that the server refuses to end, each with the time when it
    /// expires.
    endless: Vec<(Lease, Instant)>,
}

impl<T> Held<T> {
    /// Creates an empty set. If messages have keys, at most `per_key` messages of a key run at the
    /// same time.
    pub fn new(lease: Duration, per_key: Option<usize>, now: Instant) -> Self {
        Self {
            lease,
            ahead: Ahead::new(lease),
            limit: None,
            waiting: VecDeque::new(),
            low: 0,
            groups: Groups::default(),
            hands: Vec::new(),
            free_hands: Vec::new(),
            underway: 0,
            returning: 0,
            renewals: Arc::default(),
            started: now,
            to_run_alone: 0,
            alone: None,
            checked: now,
            asked: now,
            late: Vec::new(),
            misses: 0,
            order: per_key.map(|per_key| Order::new(per_key, lease)),
            endless: Vec::new(),
        }
    }

    /// Sets how many messages of a key may run at the same time, before any message has arrived.
    pub fn set_per_key(&mut self, per_key: usize) {
        self.order = Some(Order::new(per_key, self.lease));
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_settling(&self) -> bool {
        !self.groups.settling.is_empty()
    }

    /// Records a lease statement that returned no message. Counts the statement if it `missed` a
    /// message: the message is due, and the worker knows no reason that holds it back. Returns the
    /// number of consecutive statements of this kind.
    pub fn asked_in_vain(&mut self, missed: bool) -> u32 {
        self.misses = if missed { self.misses + 1 } else { 0 };
        self.misses
    }

    /// Returns the number of a new task.
    pub fn hand(&mut self) -> usize {
        self.free_hands.pop().unwrap_or_else(|| {
            self.hands.push(HandState::default());
            self.hands.len() - 1
        })
    }

    pub fn hand_ended(&mut self, nr: usize) {
        self.free_hands.push(nr);
    }

    pub fn hands(&self) -> usize {
        self.hands.len() - self.free_hands.len()
    }

    /// Returns the number of messages to lease now if `free` more tasks are free.
    pub fn room(&mut self, free: usize, each: usize) -> usize {
        if self.alone.is_some() || self.to_run_alone > 0 {
            return 0; // the next message may also have to run alone
        }
        let hands = self.hands() + free;
        self.low = self.ahead.target(hands) / 2;
        let most = self.order.as_ref().map_or(usize::MAX, Order::most);
        let fit = self.limit.as_ref().map_or(usize::MAX, ByteLimit::room);
        self.ahead.room(hands, free, each, self.waiting.len()).min(most).min(fit)
    }

    /// Returns a task's next messages, at most `each`. Returns `None` if no message is waiting or
    /// none may start.
    pub fn next(&mut self, nr: usize, each: usize, tell: bool, now: Instant) -> Option<Start<T>> {
        let before = self.waiting.len();
        if !self.may_begin(now) {
            return None;
        }
        let mut messages = Vec::with_capacity(each.min(before));
        while messages.len() < each
            && (messages.is_empty() || !self.alone_is_next())
            && let Some(next) = self.waiting.pop_front()
        {
            if self.is_late(&next, now) {
                self.send_back(next);
                if messages.is_empty() && !self.may_begin(now) {
                    return None; // the next message must run alone
                }
                continue;
            }
            let Prefetched { message, group, until, bytes } = next;
            if let (Some(order), Some(key)) = (&mut self.order, &message.key) {
                order.begins(key, now);
            }
            self.hands[nr].running.push(RunningMessage {
                lease: message.lease(),
                key: message.key.clone(),
                charged: message.attempts(),
                group,
                until,
                lost: false,
                _bytes: bytes,
            });
            let is_alone = message.ran_out;
            messages.push(message);
            if is_alone {
                self.to_run_alone -= 1;
                self.alone = messages.last().map(|alone| (alone.lease(), now));
                break;
            }
        }
        if messages.is_empty() {
            return None;
        }
        let hand = &mut self.hands[nr];
        hand.told = tell.then(|| Signals::new(self.renewals.clone()));
        hand.since = Some(now);
        self.started = now;
        let low = before > self.low && self.waiting.len() <= self.low;
        Some(Start { messages, told: hand.told.clone(), low })
    }

    /// Returns the leases of a task's messages, each with its number of counted attempts.
    pub fn leases(&self, nr: usize) -> impl Iterator<Item = (Lease, u32)> {
        self.hands[nr].running.iter().map(|running| (running.lease, running.charged))
    }

    /// Records a task's results, one for each message. Returns the number of results that arrived
    /// after their lease was lost.
    pub fn finish(&mut self, nr: usize, answers: impl IntoIterator<Item = Decision>, now: Instant) -> usize {
        let hand = &mut self.hands[nr];
        hand.told = None;
        if let Some(since) = hand.since.take() {
            self.ahead.handled(now.duration_since(since), hand.running.len());
            if let (Some(order), Some(mean)) = (&mut self.order, self.ahead.mean()) {
                order.handled(mean);
            }
        }
        let mut held = std::mem::take(&mut hand.running);
        let mut lost = 0;
        for (RunningMessage { lease, key, group: at, until, lost: is_lost, .. }, answer) in held.drain(..).zip(answers)
        {
            self.alone.take_if(|(alone, _)| *alone == lease);
            if let (Some(order), Some(key)) = (&mut self.order, key) {
                if !is_lost && matches!(answer, Decision::Done | Decision::Settled) {
                    if let Some(next) = order.done(&key, now) {
                        self.awaits_hand(next);
                    }
                } else {
                    let settles = !is_lost && !matches!(answer, Decision::Released | Decision::Lost);
                    for group in order.failed(&key, settles.then_some(lease)) {
                        self.groups.close(group);
                    }
                }
            }
            let answered = self.groups.answered(at);
            match answer {
                Decision::Settled | Decision::Released => {}
                Decision::Lost => lost += 1,
                _ if is_lost => lost += 1,
                Decision::Done => answered.done.push(Finished { lease, until, answer: () }),
                answer => {
                    let answer = Failed { answer, at: now, row: None };
                    answered.failed.push(Finished { lease, until, answer });
                }
            }
            self.groups.close(at);
        }
        self.hands[nr].running = held; // keeps the allocated memory
        lost
    }

    /// Takes the results that are ready to be settled. Pass the outcome to [`Held::settled`].
    pub fn settle(&mut self) -> ToSettle {
        let settling = std::mem::take(&mut self.groups.settling);
        self.underway += settling.len();
        settling
    }

    /// Ends the settlement of `count` results that began at `began`. Keeps results that were not
    /// settled for the next settlement, unless their lease had ended at `began`. Returns the number
    /// of results that are given up.
    pub fn settled(&mut self, count: usize, mut again: ToSettle, began: Instant) -> usize {
        self.underway -= count;
        let before = again.len();
        let over: Vec<Lease> =
            again.failed.iter().filter(|failed| failed.until + MARGIN <= began).map(|failed| failed.lease).collect();
        self.confirm(over);
        again.done.retain(|done| done.until + MARGIN > began);
        again.failed.retain(|failed| failed.until + MARGIN > began);
        let given_up = before - again.len();
        again.append(&mut self.groups.settling);
        self.groups.settling = again;
        given_up
    }

    fn give_up(&mut self, Prefetched { message, group, .. }: Prefetched<T>) -> Lease {
        self.groups.close(group);
        self.to_run_alone -= usize::from(message.ran_out);
        if let (Some(order), Some(key)) = (&mut self.order, &message.key) {
            for group in order.given_up(key, message.lease()) {
                self.groups.close(group);
            }
        }
        let lease = message.lease();
        let _ = caught(|| drop(message)); // a payload whose destructor panics
        lease
    }

    /// Returns true if no statement that ends leases is running, or is about to.
    pub fn is_given_back(&self) -> bool {
        self.underway == 0 && self.returning == 0 && self.late.is_empty()
    }

    /// Returns true if every message is settled or given up.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.is_given_back()
    }
}

#[cfg(test)]
mod tests;
