//! Keeps the messages of each key in order. A limited number of messages per key runs at the same
//! time, and the key's next messages wait behind them.
//!
//! Messages behind a failed message go back to the queue. Their key is then barred until the server
//! confirms their release and the current lease statement has returned. That statement may return
//! messages of the key that belong behind the released ones. If a lease returns more of them while
//! the release is running, the key rests: another session may have locked a message for long.
//!
//! A key with a rate has a token bucket. Messages that may not start yet wait for at most an eighth
//! of the lease time. Later messages go back, and the key rests.

mod key;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use self::key::Key;
pub(super) use self::key::Prefetched;
use super::bucket::Bucket;
use crate::queue::message::Lease;

const BEHIND: usize = 64;
/// The minimum number of messages to lease at once, even if few of the last messages could be kept.
const LEAST: usize = 64;
/// The minimum and the maximum rest of a key without a rate. A key with enough messages in this
/// worker rests while half of them run.
const REST: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

pub(super) enum Arrival<T> {
    Ready(Prefetched<T>),
    /// The message waits behind other messages of its key.
    Kept,
    /// The message goes back. The number identifies its row.
    Refused(usize),
}

pub(super) struct Order<T> {
    per_key: usize,
    lease: Duration,
    /// The maximum number of messages per key that wait behind running messages of the key.
    behind: usize,
    keys: HashMap<Arc<str>, Key<T>>,
    /// The leases of messages to give back.
    back: Vec<Lease>,
    /// Leases that the server has not ended yet. Their keys are barred until the server has ended
    /// them.
    ending: HashMap<Lease, Arc<str>>,
    /// Keys that have enough messages in this worker, each with the duration of its rest.
    full: HashMap<Arc<str>, Duration>,
    /// The times at which the buckets of keys let a message start, earliest first.
    opening: BinaryHeap<Reverse<(Instant, Arc<str>)>>,
    /// True if the earliest time in `opening` has become earlier.
    is_sooner: bool,
    is_fetching: bool,
    /// True if a statement that ends leases is running while messages arrive.
    is_ending: bool,
    /// The number of messages from the current lease statement that were kept.
    kept: usize,
    /// The number of messages from the current lease statement that were not kept.
    refused: usize,
    /// The maximum number of messages to lease at once.
    most: usize,
    rest: Duration,
}

impl<T> Order<T> {
    pub fn new(per_key: usize, lease: Duration) -> Self {
        Self {
            per_key,
            behind: BEHIND,
            lease,
            keys: HashMap::new(),
            back: Vec::new(),
            ending: HashMap::new(),
            full: HashMap::new(),
            opening: BinaryHeap::new(),
            is_sooner: false,
            is_fetching: false,
            is_ending: false,
            kept: 0,
            refused: 0,
            most: usize::MAX,
            rest: REST.1,
        }
    }

    /// Returns the maximum number of messages to lease at once: twice the number that could be kept
    /// last time. If a few keys have long backlogs, a larger lease would mostly return messages
    /// that must be given back.
    pub fn most(&self) -> usize {
        self.most
    }

    fn is_ordered(&self) -> bool {
        self.per_key == 1
    }

    pub fn handled(&mut self, mean: Duration) {
        self.rest = mean.saturating_mul(self.behind as u32 / 2).clamp(REST.0, REST.1);
    }

    /// Keeps an arriving message, or refuses it.
    pub fn arrive(&mut self, new: Prefetched<T>, now: Instant) -> Arrival<T> {
        let Some(name) = new.message.key.clone() else { return Arrival::Ready(new) };
        let key = self.keys.entry(name.clone()).or_default();
        match (&mut key.bucket, &new.message.rate) {
            (Some(bucket), Some(rate)) => bucket.told(rate, now),
            (bucket, rate) => *bucket = rate.clone().map(|rate| Bucket::new(rate, now)),
        }
        if !key.is_barred() && key.behind.is_empty() && key.is_open(self.per_key, now) {
            key.activate();
            self.kept += 1;
            return Arrival::Ready(new);
        }
        let asked = new.until.checked_sub(self.lease).unwrap_or(now);
        let is_in_time = key.bucket.is_none() || key.opens(now) <= asked + self.lease / 8;
        let is_kept = !key.is_barred() && key.behind.len() < self.behind && is_in_time;
        let (lease, group) = (new.message.lease(), new.group);
        if is_kept {
            key.behind.push_back(new);
        }
        match &key.bucket {
            Some(bucket) if key.opens(now) > now + self.lease / 16 => {
                self.full.insert(name.clone(), bucket.rest(key.behind.len(), now, self.lease / 16));
            }
            None if !is_kept && key.behind.len() >= self.behind => drop(self.full.insert(name.clone(), self.rest)),
            _ if self.is_ending && key.ending > 0 => drop(self.full.insert(name.clone(), REST.1)),
            _ => {}
        }
        if is_kept {
            self.kept += 1;
            self.wait_for(&name, now);
            return Arrival::Kept;
        }
        self.refused += 1;
        self.end(&name, lease);
        Arrival::Refused(group)
    }

    /// Schedules the waiting messages of a key for the time when its bucket opens.
    fn wait_for(&mut self, name: &Arc<str>, now: Instant) {
        let Some(key) = self.keys.get_mut(name) else { return };
        let Some(bucket) = &key.bucket else { return };
        if key.is_timed || key.behind.is_empty() || key.active >= self.per_key {
            return;
        }
        let opens = bucket.opens(0, now);
        key.is_timed = true;
        self.is_sooner |= self.opening.peek().is_none_or(|Reverse((first, _))| opens < *first);
        self.opening.push(Reverse((opens, name.clone())));
    }

    /// Returns the messages that may start now because their buckets allow it.
    pub fn opened(&mut self, now: Instant) -> Vec<Prefetched<T>> {
        let mut ready = Vec::new();
        while self.opens().is_some_and(|at| at <= now)
            && let Some(Reverse((_, name))) = self.opening.pop()
        {
            let Some(key) = self.keys.get_mut(&name) else { continue };
            key.is_timed = false;
            while key.is_open(self.per_key, now)
                && let Some(next) = key.behind.pop_front()
            {
                key.activate();
                ready.push(next);
            }
            self.wait_for(&name, now);
        }
        ready
    }

    /// Returns the time at which the next bucket lets a waiting message start.
    pub fn opens(&self) -> Option<Instant> {
        self.opening.peek().map(|Reverse((at, _))| *at)
    }

    pub fn is_sooner(&mut self) -> bool {
        std::mem::take(&mut self.is_sooner)
    }

    pub fn begins(&mut self, name: &Arc<str>, now: Instant) {
        if let Some(bucket) = self.keys.get_mut(name).and_then(|key| key.bucket.as_mut()) {
            bucket.begin(now);
        }
    }

    /// Gives back a message that could have started. Returns the rows of the messages behind it,
    /// which go back too.
    pub fn given_up(&mut self, name: &Arc<str>, lease: Lease) -> Vec<usize> {
        if let Some(bucket) = self.keys.get_mut(name).and_then(|key| key.bucket.as_mut()) {
            bucket.take_back();
        }
        self.failed(name, Some(lease))
    }

    /// Gives a lease back. Bars its key until the server has ended the lease.
    fn end(&mut self, name: &Arc<str>, lease: Lease) {
        self.back.push(lease);
        self.bar(name, lease);
    }

    fn bar(&mut self, name: &Arc<str>, lease: Lease) {
        if self.ending.insert(lease, name.clone()).is_none() {
            self.keys.entry(name.clone()).or_default().ending += 1;
        }
    }

    /// Records that a message of the key is done. Returns the key's next message, if one may run.
    pub fn done(&mut self, name: &Arc<str>, now: Instant) -> Option<Prefetched<T>> {
        let key = self.keys.get_mut(name)?;
        key.active = key.active.saturating_sub(1);
        if !key.is_open(self.per_key, now) {
            self.wait_for(name, now);
            return None;
        }
        let next = key.behind.pop_front();
        if next.is_some() {
            key.activate();
        } else if key.is_idle() {
            self.keys.remove(name);
        }
        next
    }

    /// Records an arriving message of the key that is unreadable. The messages that wait are
    /// earlier ones, so they stay. Later ones are refused until the server has ended the lease.
    pub fn unreadable(&mut self, name: &Arc<str>, lease: Lease) {
        if self.is_ordered() {
            self.bar(name, lease);
        }
    }

    /// Records that a message of the key will be delivered again. The messages behind it go back,
    /// and the call returns their rows. If a lease is given, the key is barred until the server has
    /// ended it.
    pub fn failed(&mut self, name: &Arc<str>, lease: Option<Lease>) -> Vec<usize> {
        let is_ordered = self.is_ordered();
        let key = self.keys.entry(name.clone()).or_default();
        key.active = key.active.saturating_sub(1);
        key.is_stale = is_ordered && self.is_fetching;
        let behind = std::mem::take(&mut key.behind);
        if is_ordered && let Some(lease) = lease {
            self.bar(name, lease);
        }
        self.back_with(name, behind)
    }

    fn back_with(&mut self, name: &Arc<str>, behind: VecDeque<Prefetched<T>>) -> Vec<usize> {
        let groups = behind.iter().map(|behind| behind.group).collect();
        for behind in behind {
            self.end(name, behind.message.lease());
        }
        if self.keys.get(name).is_some_and(Key::is_idle) {
            self.keys.remove(name);
        }
        groups
    }

    /// Gives back all waiting messages of each key whose first waiting message has a lease that
    /// ends before `half`. Returns their rows.
    pub fn late(&mut self, half: Instant) -> Vec<usize> {
        self.back_where(|key| key.behind.front().is_some_and(|first| first.until < half))
    }

    /// Gives back all messages that wait behind others of their keys. Returns their rows.
    pub fn close(&mut self) -> Vec<usize> {
        self.back_where(|key| !key.behind.is_empty())
    }

    fn back_where(&mut self, goes: impl Fn(&Key<T>) -> bool) -> Vec<usize> {
        let names: Vec<_> = self.keys.iter().filter(|(_, key)| goes(key)).map(|(name, _)| name.clone()).collect();
        let mut groups = Vec::new();
        for name in names {
            let behind = self.keys.get_mut(&name).map(|key| std::mem::take(&mut key.behind)).unwrap_or_default();
            groups.extend(self.back_with(&name, behind));
        }
        groups
    }

    pub fn give_back(&mut self) -> Vec<Lease> {
        std::mem::take(&mut self.back)
    }

    /// Gives back one message, without an effect on other messages of its key.
    pub fn goes_back(&mut self, lease: Lease) {
        self.back.push(lease);
    }

    /// Gives leases back again whose end the server has not confirmed, because they bar their keys.
    /// Leases that bar no key end by themselves.
    pub fn again(&mut self, leases: &[Lease]) {
        self.back.extend(leases.iter().filter(|lease| self.ending.contains_key(lease)));
    }

    pub fn full(&mut self) -> Vec<(Arc<str>, Duration)> {
        self.full.drain().collect()
    }

    pub fn fetching(&mut self) {
        self.is_fetching = true;
    }

    /// Records whether a statement that ends leases is running while messages arrive.
    pub fn arriving(&mut self, is_ending: bool) {
        self.is_ending = is_ending;
    }

    /// Ends the current lease statement: adapts the number of messages to lease at once, and
    /// removes idle keys.
    pub fn fetched(&mut self, now: Instant) {
        self.is_fetching = false;
        let (kept, refused) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.refused));
        if refused > 0 {
            self.most = kept.saturating_mul(2).max(LEAST);
        } else if kept >= self.most / 2 {
            self.most = self.most.saturating_mul(2); // a smaller number may only mean that few messages were due
        }
        self.keys.retain(|_, key| {
            key.is_stale = false;
            // A bucket stays while messages wait, because it decides when they start, even if it
            // filled up long ago.
            key.bucket.take_if(|bucket| key.behind.is_empty() && bucket.is_full(now));
            !key.is_idle()
        });
    }

    /// Records that the server has ended a lease.
    pub fn confirm(&mut self, lease: Lease) {
        let Some(name) = self.ending.remove(&lease) else { return };
        if let Some(key) = self.keys.get_mut(&name) {
            key.ending -= 1;
            // The current lease statement may have read the queue before this lease ended.
            key.is_stale |= self.is_fetching;
            if key.is_idle() {
                self.keys.remove(&name);
            }
        }
    }
}

#[cfg(test)]
#[path = "../../../tests/models/order/mod.rs"]
mod model;
