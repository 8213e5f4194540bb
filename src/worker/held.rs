//! The messages that a worker holds of one queue: prefetched, running, and finished but not
//! settled. Pure: the tasks around it do what it says.

mod alone;
mod beat;
mod bucket;
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

use self::order::{Arrival, Order, Prefetched};
use crate::worker::{
    ahead::Ahead,
    groups::{Decision, Failed, Finished, Groups, ToSettle},
    renewals::Renewals,
};
use crate::{
    queue::message::{Lease, Message},
    worker::attempt::Signals,
};

/// Clocks run apart a little: this much later a lease is over by the server's clock, too.
const MARGIN: Duration = Duration::from_secs(1);

/// A message in a hand.
struct Running {
    lease: Lease,
    key: Option<Arc<str>>,
    /// Attempts of the message that were charged, this one included.
    charged: u32,
    group: usize,
    until: Instant,
    lost: bool,
}

/// A running hand: the messages it handles, and since when.
#[derive(Default)]
struct HandState {
    running: Vec<Running>,
    told: Option<Arc<Signals>>,
    since: Option<Instant>,
}

/// The next messages for a hand.
pub(super) struct Start<T> {
    pub messages: Vec<Message<T>>,
    pub told: Option<Arc<Signals>>,
    /// Whether it is time to lease now.
    pub low: bool,
}

pub(super) struct Held<T> {
    lease: Duration,
    pub ahead: Ahead,
    waiting: VecDeque<Prefetched<T>>,
    /// When no more than that wait, it is time to lease.
    pub low: usize,
    groups: Groups,
    hands: Vec<HandState>,
    free_hands: Vec<usize>,
    /// Answers that are being settled at the moment.
    underway: usize,
    renewals: Arc<Renewals>,
    /// When a hand took something last, or something came that it could take.
    started: Instant,
    /// Of those that wait.
    to_run_alone: usize,
    /// The message that runs alone, and since when: see `alone.rs`.
    alone: Option<(Lease, Instant)>,
    /// When it was looked last whether leases are there still.
    checked: Instant,
    /// When messages were asked for last.
    asked: Instant,
    /// In a queue whose messages have keys.
    order: Option<Order<T>>,
}

impl<T> Held<T> {
    /// `per_key` messages of a key run at the same time, where messages have keys.
    pub fn new(lease: Duration, per_key: Option<usize>, now: Instant) -> Self {
        Self {
            lease,
            ahead: Ahead::new(lease),
            waiting: VecDeque::new(),
            low: 0,
            groups: Groups::default(),
            hands: Vec::new(),
            free_hands: Vec::new(),
            underway: 0,
            renewals: Arc::default(),
            started: now,
            to_run_alone: 0,
            alone: None,
            checked: now,
            asked: now,
            order: per_key.map(|per_key| Order::new(per_key, lease)),
        }
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_settling(&self) -> bool {
        !self.groups.settling.is_empty()
    }

    /// Keeps leased messages; `now` is when the reply arrived. The server's leases began earlier,
    /// so they end earlier; renewals come early enough for that.
    pub fn leased(&mut self, messages: Vec<Message<T>>, now: Instant) {
        if self.waiting.is_empty() {
            self.started = now; // until now there was nothing to start
        }
        // Where keys have a rate, the lane's next worker has to know how late a message may begin.
        let (until, limited_until) = (now + self.lease, self.asked + self.lease);
        let mut last = None;
        for message in messages {
            // The ids of a row lie between multiples of 1,024.
            let row = (message.id >> 10, message.attempt);
            let group = match last {
                Some((of, group)) if of == row => group,
                _ => {
                    if let Some((_, before)) = last {
                        self.groups.close(before);
                    }
                    let group = self.groups.begin();
                    self.groups.open(group); // until all of it has come
                    group
                }
            };
            last = Some((row, group));
            self.groups.open(group);
            let until = if message.rate.is_some() { limited_until } else { until };
            let new = Prefetched { message, group, until };
            let arrival = match &mut self.order {
                Some(order) => order.arrive(new, now),
                None => Arrival::Ready(new),
            };
            match arrival {
                Arrival::Ready(new) => self.awaits_hand(new),
                Arrival::Kept => {}
                Arrival::Refused(group) => self.groups.close(group),
            }
        }
        if let Some((_, before)) = last {
            self.groups.close(before);
        }
        if let Some(order) = &mut self.order {
            order.fetched(now);
        }
    }

    /// A number for a hand that starts.
    pub fn hand(&mut self) -> usize {
        self.free_hands.pop().unwrap_or_else(|| {
            self.hands.push(HandState::default());
            self.hands.len() - 1
        })
    }

    /// A hand has ended.
    pub fn hand_ended(&mut self, nr: usize) {
        self.free_hands.push(nr);
    }

    /// Hands that run.
    pub fn hands(&self) -> usize {
        self.hands.len() - self.free_hands.len()
    }

    /// How many messages to lease now, if `free` more hands are free.
    pub fn room(&mut self, free: usize, each: usize) -> usize {
        if self.alone.is_some() || self.to_run_alone > 0 {
            return 0; // the next might be another
        }
        let hands = self.hands() + free;
        self.low = self.ahead.target(hands) / 2;
        let most = self.order.as_ref().map_or(usize::MAX, Order::most);
        self.ahead.room(hands, free, each, self.waiting.len()).min(most)
    }

    /// The next messages for a hand, at most `each`; none where none waits, or may begin.
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
                continue;
            }
            let Prefetched { message, group, until } = next;
            if let (Some(order), Some(key)) = (&mut self.order, &message.key) {
                order.begins(key, now);
            }
            self.hands[nr].running.push(Running {
                lease: message.lease(),
                key: message.key.clone(),
                charged: message.attempts(),
                group,
                until,
                lost: false,
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

    /// The leases of a hand's messages, and how many attempts of each were charged.
    pub fn leases(&self, nr: usize) -> impl Iterator<Item = (Lease, u32)> {
        self.hands[nr].running.iter().map(|running| (running.lease, running.charged))
    }

    /// A hand's answers, one for each of its messages. Returns how many of those come after their
    /// lease was lost.
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
        for (Running { lease, key, group: at, until, lost: is_lost, .. }, answer) in held.drain(..).zip(answers) {
            self.alone.take_if(|(alone, _)| *alone == lease);
            if let (Some(order), Some(key)) = (&mut self.order, key) {
                if !is_lost && matches!(answer, Decision::Done | Decision::Settled) {
                    if let Some(next) = order.done(&key, now) {
                        self.awaits_hand(next);
                    }
                } else {
                    let settles = !is_lost && answer != Decision::Released;
                    for group in order.failed(&key, settles.then_some(lease)) {
                        self.groups.close(group);
                    }
                }
            }
            let answered = self.groups.answered(at);
            match answer {
                Decision::Settled | Decision::Released => {}
                _ if is_lost => lost += 1,
                Decision::Done => answered.done.push(Finished { lease, until, answer: () }),
                answer => answered.failed.push(Finished { lease, until, answer: Failed { answer, at: now } }),
            }
            self.groups.close(at);
        }
        self.hands[nr].running = held; // for its next messages
        lost
    }

    /// The settlement that is due now. [`Held::settled`] reports its outcome.
    pub fn settle(&mut self) -> ToSettle {
        let settling = std::mem::take(&mut self.groups.settling);
        self.underway += settling.len();
        settling
    }

    /// Ends the settling of `count` answers, which began at `began`. Those that could not be
    /// settled are kept for the next time, unless their lease was over then. Returns how many are
    /// given up.
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
        message.lease()
    }

    /// Whether every message has met its end.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.underway == 0
    }
}

#[cfg(test)]
mod tests;
