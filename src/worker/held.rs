//! The messages that a worker holds of one queue: prefetched, running, and finished but not settled.
//! Pure: the tasks around it do what it says.

mod watch;

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::worker::{
    ahead::Ahead,
    groups::{Decision, Failed, Finished, Groups, ToSettle},
};
use crate::{
    queue::message::{Lease, Message},
    worker::attempt::Signals,
};

/// A message that may have killed its worker runs without others of its kind for so long; after that they are company.
const ALONE: Duration = Duration::from_secs(1);
/// Clocks run apart a little; so much later a lease is over by the server's, too.
const MARGIN: Duration = Duration::from_secs(1);

struct Prefetched<T> {
    message: Message<T>,
    group: usize,
    until: Instant,
}

/// A message in a hand.
struct Running {
    lease: Lease,
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
    /// Answers that somebody is settling at the moment.
    underway: usize,
    /// When a hand took something last, or something came that it could take.
    started: Instant,
    /// A message that may have killed its worker, and when it began to run: nothing is leased beside it for a while, because
    /// that might be another.
    alone: Option<(Lease, Option<Instant>)>,
    /// When it was looked last whether leases are there still.
    checked: Instant,
}

/// The duties of a beat.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Beat {
    /// Give back: it would not start soon.
    pub release: Vec<Lease>,
    /// Renew: it runs.
    pub renew: Vec<Lease>,
    /// Whether there is something new to settle, or room.
    pub changed: bool,
}

impl<T> Held<T> {
    pub fn new(lease: Duration, now: Instant) -> Self {
        Self {
            lease,
            ahead: Ahead::new(lease),
            waiting: VecDeque::new(),
            low: 0,
            groups: Groups::default(),
            hands: Vec::new(),
            free_hands: Vec::new(),
            underway: 0,
            started: now,
            alone: None,
            checked: now,
        }
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_settling(&self) -> bool {
        !self.groups.settling.is_empty()
    }

    /// Keeps leased messages; `now` is when the reply arrived. The server's leases began earlier, so they end earlier; renewals
    /// come early enough for that.
    pub fn leased(&mut self, messages: Vec<Message<T>>, now: Instant) {
        if self.waiting.is_empty() {
            self.started = now; // until now there was nothing to start
        }
        let until = now + self.lease;
        let mut last = None;
        for message in messages {
            // The ids of a row lie between multiples of 1,024.
            let row = (message.id >> 10, message.attempt);
            let group = match last {
                Some((of, group)) if of == row => group,
                _ => self.groups.begin(),
            };
            last = Some((row, group));
            self.groups.open(group);
            if message.ran_out {
                self.alone = Some((message.lease(), None));
                self.waiting.push_front(Prefetched { message, group, until });
            } else {
                self.waiting.push_back(Prefetched { message, group, until });
            }
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
    fn hands(&self) -> usize {
        self.hands.len() - self.free_hands.len()
    }

    /// How many messages to lease now, if so many more hands are free.
    pub fn room(&mut self, free: usize, each: usize) -> usize {
        if self.alone.is_some() {
            return 0;
        }
        let hands = self.hands() + free;
        self.low = self.ahead.target(hands) / 2;
        self.ahead.room(hands, free, each, self.waiting.len())
    }

    /// The next messages for a hand, at most `each`; none where none waits.
    pub fn next(&mut self, nr: usize, each: usize, tell: bool, now: Instant) -> Option<Start<T>> {
        let before = self.waiting.len();
        let count = each.min(before);
        if count == 0 {
            return None;
        }
        let mut messages = Vec::with_capacity(count);
        let hand = &mut self.hands[nr];
        for Prefetched { message, group, until } in self.waiting.drain(..count) {
            hand.running.push(Running {
                lease: message.lease(),
                charged: message.charged(),
                group,
                until,
                lost: false,
            });
            if let Some((alone, since)) = &mut self.alone
                && *alone == message.lease()
            {
                *since = Some(now);
            }
            messages.push(message);
        }
        hand.told = tell.then(Signals::new);
        hand.since = Some(now);
        self.started = now;
        let low = before > self.low && self.waiting.len() <= self.low;
        Some(Start { messages, told: hand.told.clone(), low })
    }

    /// The leases of a hand's messages, and how many attempts of each were charged.
    pub fn leases(&self, nr: usize) -> impl Iterator<Item = (Lease, u32)> {
        self.hands[nr].running.iter().map(|running| (running.lease, running.charged))
    }

    /// A hand's answers, one for each of its messages. Returns how many of those come after their lease was lost.
    pub fn finish(&mut self, nr: usize, answers: impl IntoIterator<Item = Decision>, now: Instant) -> usize {
        let hand = &mut self.hands[nr];
        hand.told = None;
        if let Some(since) = hand.since.take() {
            self.ahead.handled(now.duration_since(since), hand.running.len());
        }
        let mut held = std::mem::take(&mut hand.running);
        let mut lost = 0;
        for (Running { lease, group: at, until, lost: is_lost, .. }, answer) in held.drain(..).zip(answers) {
            self.alone.take_if(|(alone, _)| *alone == lease);
            let answered = self.groups.answered(at);
            match answer {
                Decision::Settled => {}
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

    /// So many were being settled, from that time on; of these some could not be, and are kept for the next time, unless
    /// their lease was over already then. Returns how many are given up.
    pub fn settled(&mut self, count: usize, mut again: ToSettle, began: Instant) -> usize {
        self.underway -= count;
        let before = again.len();
        again.done.retain(|done| done.until + MARGIN > began);
        again.failed.retain(|failed| failed.until + MARGIN > began);
        let given_up = before - again.len();
        again.append(&mut self.groups.settling);
        self.groups.settling = again;
        given_up
    }

    /// What has to be done now and then: parts of rows that have waited for the rest are settled; and, while nothing else
    /// is being sent, what waits too long is given back, what runs is renewed, and handlers whose lease is over are told.
    pub fn beat(&mut self, now: Instant, may_send: bool) -> Beat {
        self.groups.beat();
        let lonely =
            self.alone.take_if(|(_, since)| since.is_some_and(|since| now.duration_since(since) > ALONE)).is_some();
        let beat = if may_send { self.due(now) } else { Beat::default() };
        Beat { changed: lonely || self.is_settling(), ..beat }
    }

    fn due(&mut self, now: Instant) -> Beat {
        let hands = self.hands();
        let stalled = now.duration_since(self.started);
        if !self.waiting.is_empty() && stalled > 2 * self.ahead.horizon() {
            self.ahead.stalled(hands, stalled);
        }
        let (target, half) = (self.ahead.target(hands), now + self.lease / 2);
        // One that is to run alone stays: given back, it would be one of many.
        let least = target.max(usize::from(matches!(self.alone, Some((_, None)))));
        let mut given_up = Vec::new();
        while stalled > 2 * self.ahead.horizon() && self.waiting.len() > least {
            given_up.extend(self.waiting.pop_back());
        }
        while self.waiting.front().is_some_and(|waiting| waiting.until < half) {
            given_up.extend(self.waiting.pop_front());
        }
        let release = given_up.into_iter().map(|waiting| self.give_up(waiting)).collect();
        let mut renew = Vec::new();
        for hand in &mut self.hands {
            let (settled, extended) =
                hand.told.as_ref().map_or((false, None), |told| (told.is_settled(), told.extended()));
            for running in hand.running.iter_mut().filter(|running| !running.lost && !settled) {
                running.until = extended.map_or(running.until, |extended| extended.max(running.until));
                if running.until + MARGIN < now {
                    running.lost = true;
                    hand.told.iter().for_each(|told| told.lose());
                } else if running.until < now + self.lease * 2 / 3 {
                    renew.push(running.lease);
                }
            }
        }
        Beat { release, renew, changed: false }
    }

    /// Leases were renewed, except for the lost ones, whose handlers are told; `now` is when the reply arrived.
    pub fn renewed(&mut self, leases: &[Lease], lost: &[i64], now: Instant) {
        let (leases, lost): (HashSet<&Lease>, HashSet<&i64>) = (leases.iter().collect(), lost.iter().collect());
        for hand in &mut self.hands {
            for running in hand.running.iter_mut().filter(|running| leases.contains(&running.lease)) {
                if lost.contains(&running.lease.id) {
                    running.lost = true;
                    hand.told.iter().for_each(|told| told.lose());
                } else {
                    running.until = running.until.max(now + self.lease);
                }
            }
        }
    }

    /// All that waits, to be given back.
    pub fn give_up_waiting(&mut self) -> Vec<Lease> {
        std::mem::take(&mut self.waiting).into_iter().map(|waiting| self.give_up(waiting)).collect()
    }

    fn give_up(&mut self, Prefetched { message, group, .. }: Prefetched<T>) -> Lease {
        self.groups.close(group);
        self.alone.take_if(|(alone, _)| *alone == message.lease());
        message.lease()
    }

    /// Tells every handler that the worker gives up on it. Returns whether one listens.
    pub fn tell_all(&mut self) -> bool {
        self.hands.iter().filter_map(|hand| hand.told.as_ref()).map(|told| told.lose()).count() > 0
    }

    /// The leases of running messages that are not lost, to be released after their handlers were dropped.
    pub fn give_up_running(&mut self) -> Vec<Lease> {
        let mut given_up = Vec::new();
        for nr in 0..self.hands.len() {
            let settled = self.hands[nr].told.as_ref().is_some_and(|told| told.is_settled());
            for running in std::mem::take(&mut self.hands[nr].running) {
                if !running.lost && !settled {
                    given_up.push(running.lease);
                }
                self.groups.close(running.group);
            }
        }
        given_up
    }

    /// Whether every message has met its end.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.underway == 0
    }
}

#[cfg(test)]
mod tests;
