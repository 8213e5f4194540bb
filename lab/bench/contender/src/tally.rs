use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use hdrhistogram::Histogram;
use tokio::sync::{Notify, watch};

use crate::{
    order::Order,
    payload::{now, place, sent_at},
};

/// Counts the messages that are sent and received while the clock runs, and signals the stop.
#[derive(Debug)]
pub struct Tally {
    sent: AtomicU64,
    received: AtomicU64,
    /// The number of received messages at which `enough` is notified.
    wanted: AtomicU64,
    enough: Notify,
    /// The number of messages that were received before the clock started.
    before: AtomicU64,
    /// The times from a message's `at` to its receipt, in microseconds, if latencies are requested.
    latencies: Option<Mutex<Histogram<u64>>>,
    /// One flag per key: true if the latencies of the key's messages count. An empty list
    /// means that the latencies of all keys count.
    timed: Vec<bool>,
    /// The order of each key's messages, if messages have keys.
    order: Option<Order>,
    over: watch::Sender<bool>,
}

/// The key of all messages of a keyed backlog.
pub(crate) const BACKLOG: usize = 0;

/// Returns an empty histogram for up to 16 minutes in microseconds, with three digits.
pub(crate) fn histogram() -> Histogram<u64> {
    let mut latencies = Histogram::new_with_max(1_000_000_000, 3).expect("bounds that hdrhistogram takes");
    latencies.auto(true);
    latencies
}

impl Tally {
    pub(crate) fn new(with_latencies: bool, keys: usize, timed: Vec<bool>) -> Self {
        Self {
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            wanted: AtomicU64::new(u64::MAX),
            enough: Notify::new(),
            before: AtomicU64::new(0),
            latencies: with_latencies.then(|| Mutex::new(histogram())),
            timed,
            order: (keys > 0).then(|| Order::of(keys)),
            over: watch::Sender::new(false),
        }
    }

    /// Returns the number of messages that arrived out of the order of their keys.
    pub(crate) fn disordered(&self) -> Option<u64> {
        self.order.as_ref().map(Order::broken)
    }

    /// Counts a payload that a handler has received.
    pub fn received(&self, payload: impl AsRef<[u8]>) {
        self.received_many(std::iter::once(payload));
    }

    /// Counts payloads that a handler has received.
    pub fn received_many<P: AsRef<[u8]>>(&self, payloads: impl IntoIterator<Item = P>) {
        let mut count = 0;
        // Omits the messages of a keyed backlog from the counts; only their order is checked.
        let payloads = payloads.into_iter().filter(|payload| {
            let Some((order, (key, nr))) =
                self.order.as_ref().and_then(|order| Some((order, place(payload.as_ref())?)))
            else {
                return true;
            };
            order.saw(key, nr);
            key != BACKLOG
        });
        match &self.latencies {
            None => count += payloads.count() as u64,
            Some(latencies) => {
                let (now, mut latencies) = (now(), latencies.lock().unwrap_or_else(PoisonError::into_inner));
                for payload in payloads {
                    if self.is_timed(payload.as_ref())
                        && let Some(at) = sent_at(payload.as_ref())
                    {
                        latencies.saturating_record(now.saturating_sub(at));
                    }
                    count += 1;
                }
            }
        }
        if self.received.fetch_add(count, Ordering::Relaxed) + count >= self.wanted.load(Ordering::Relaxed) {
            self.enough.notify_waiters();
            self.enough.notify_one();
        }
    }

    fn is_timed(&self, payload: &[u8]) -> bool {
        self.timed.is_empty() || place(payload).is_some_and(|(key, _)| self.timed.get(key) == Some(&true))
    }

    pub(crate) fn did_send(&self, count: usize) {
        self.sent.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn all_received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Returns the number of messages that were received since the clock started.
    pub(crate) fn received_now(&self) -> u64 {
        self.all_received().saturating_sub(self.before.load(Ordering::Relaxed))
    }

    /// Starts the clock: resets the counts and the latencies.
    pub(crate) fn start(&self) {
        self.before.store(self.all_received(), Ordering::Relaxed);
        self.sent.store(0, Ordering::Relaxed);
        if let Some(latencies) = &self.latencies {
            latencies.lock().unwrap_or_else(PoisonError::into_inner).reset();
        }
    }

    /// Waits until a total of `wanted` messages have been received.
    pub(crate) async fn has(&self, wanted: usize) {
        self.wanted.store(wanted as u64, Ordering::Relaxed);
        while self.all_received() < wanted as u64 {
            self.enough.notified().await;
        }
    }

    pub(crate) fn take_latencies(&self) -> Option<Histogram<u64>> {
        let mut latencies = self.latencies.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(std::mem::replace(&mut latencies, histogram()))
    }

    pub(crate) fn finish(&self) {
        self.over.send_replace(true);
    }

    /// Returns true when consumers should stop.
    #[must_use]
    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits until consumers should stop.
    pub async fn over(&self) {
        // `wait_for` fails only if the sender was dropped, but the sender is part of `self`.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }
}
