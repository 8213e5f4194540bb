//! The order of keys: a limited number of messages of each key runs at the same time, and the next
//! ones wait behind them.
//!
//! What came behind a message that failed goes back to the queue. Until the server has that, and
//! whatever was leased meanwhile has come, the key is barred: messages of it that come could belong
//! behind those that went back.
//!
//! A key that has a rate has a bucket. What may not begin yet waits behind, for an eighth of a
//! lease at most; what is beyond that goes back, and the key rests.

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

/// Messages of a key that wait behind others at most.
const BEHIND: usize = 64;
/// Messages to ask for at least, however few of the last ones could be kept.
const LEAST: usize = 64;
/// A key of which enough is held rests while half of that runs, if it has no rate: for at least
/// and at most this long.
const REST: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// What became of a message that came.
pub(super) enum Arrival<T> {
    Ready(Prefetched<T>),
    /// It waits behind others of its key.
    Kept,
    /// It goes back; of this row.
    Refused(usize),
}

pub(super) struct Order<T> {
    per_key: usize,
    lease: Duration,
    /// Messages of a key that wait behind others at most.
    behind: usize,
    keys: HashMap<Arc<str>, Key<T>>,
    /// Messages that are to go back.
    back: Vec<Lease>,
    /// Leases that the server is yet to end, and their keys, which are barred until then.
    ending: HashMap<Lease, Arc<str>>,
    /// Keys of which enough came, and for how long they rest.
    full: HashMap<Arc<str>, Duration>,
    /// Keys whose bucket lets a message begin at that time.
    opening: BinaryHeap<Reverse<(Instant, Arc<str>)>>,
    /// One of them comes sooner than those before.
    is_sooner: bool,
    is_fetching: bool,
    /// Of what is being leased, messages that were kept and such that were not.
    kept: usize,
    refused: usize,
    /// Messages to ask for at most.
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
            kept: 0,
            refused: 0,
            most: usize::MAX,
            rest: REST.1,
        }
    }

    /// Messages to ask for at most: twice as many as could be kept the last time. Where few keys
    /// have long backlogs, all else would be leased to be given back at once.
    pub fn most(&self) -> usize {
        self.most
    }

    fn is_ordered(&self) -> bool {
        self.per_key == 1
    }

    /// Records how long a hand takes for a message.
    pub fn handled(&mut self, mean: Duration) {
        self.rest = mean.saturating_mul(self.behind as u32 / 2).clamp(REST.0, REST.1);
    }

    /// A message came.
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

    /// Where what waits of a key waits for its bucket, that is told when it opens.
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

    /// What may begin now because buckets have opened.
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

    /// When the next bucket opens for what waits.
    pub fn opens(&self) -> Option<Instant> {
        self.opening.peek().map(|Reverse((at, _))| *at)
    }

    /// Whether a bucket opens sooner than was known before.
    pub fn is_sooner(&mut self) -> bool {
        std::mem::take(&mut self.is_sooner)
    }

    /// A message of the key begins.
    pub fn begins(&mut self, name: &Arc<str>, now: Instant) {
        if let Some(bucket) = self.keys.get_mut(name).and_then(|key| key.bucket.as_mut()) {
            bucket.begin(now);
        }
    }

    /// One that might have begun goes back. Returns the rows of what goes back with it.
    pub fn given_up(&mut self, name: &Arc<str>, lease: Lease) -> Vec<usize> {
        if let Some(bucket) = self.keys.get_mut(name).and_then(|key| key.bucket.as_mut()) {
            bucket.take_back();
        }
        self.failed(name, Some(lease))
    }

    /// A lease goes back, and its key is barred until that is done.
    fn end(&mut self, name: &Arc<str>, lease: Lease) {
        self.back.push(lease);
        self.bar(name, lease);
    }

    fn bar(&mut self, name: &Arc<str>, lease: Lease) {
        if self.ending.insert(lease, name.clone()).is_none() {
            self.keys.entry(name.clone()).or_default().ending += 1;
        }
    }

    /// A message of the key is done: returns those that may run now.
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

    /// A message of the key comes again: what is behind it goes back. With a lease, the server is
    /// yet to end that. Returns the rows of what goes back.
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

    /// What waits behind others so long that its lease would end goes back. Returns its rows.
    pub fn late(&mut self, half: Instant) -> Vec<usize> {
        self.back_where(|key| key.behind.front().is_some_and(|first| first.until < half))
    }

    /// All that waits behind others goes back. Returns its rows.
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

    /// Goes back as well, without a word on the others of its key.
    pub fn goes_back(&mut self, lease: Lease) {
        self.back.push(lease);
    }

    pub fn again(&mut self, leases: &[Lease]) {
        self.back.extend(leases.iter().filter(|lease| self.ending.contains_key(lease)));
    }

    pub fn full(&mut self) -> Vec<(Arc<str>, Duration)> {
        self.full.drain().collect()
    }

    /// Something is about to be leased.
    pub fn fetching(&mut self) {
        self.is_fetching = true;
    }

    /// What was leased has come.
    pub fn fetched(&mut self, now: Instant) {
        self.is_fetching = false;
        let (kept, refused) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.refused));
        if refused > 0 {
            self.most = kept.saturating_mul(2).max(LEAST);
        } else if kept >= self.most / 2 {
            self.most = self.most.saturating_mul(2); // less says nothing: what is due may be a handful
        }
        self.keys.retain(|_, key| {
            key.is_stale = false;
            // What waits behind has to ask the bucket, even if it has been full for long because it
            // was not checked.
            key.bucket.take_if(|bucket| key.behind.is_empty() && bucket.is_full(now));
            !key.is_idle()
        });
    }

    /// The server has ended a lease.
    pub fn confirm(&mut self, lease: Lease) {
        let Some(name) = self.ending.remove(&lease) else { return };
        if let Some(key) = self.keys.get_mut(&name) {
            key.ending -= 1;
            // What is being leased may have been looked for before.
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
