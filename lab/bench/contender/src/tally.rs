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

/// What was sent and received, counted while the clock runs; and whether it is over.
#[derive(Debug)]
pub struct Tally {
    sent: AtomicU64,
    received: AtomicU64,
    /// How many are to be received before `enough` is told.
    wanted: AtomicU64,
    enough: Notify,
    /// Received before the clock started.
    before: AtomicU64,
    /// Times from `at` to here, in microseconds, if they are asked for.
    latencies: Option<Mutex<Histogram<u64>>>,
    /// Of each key, by its number, whether its latencies count; all do where none is named.
    timed: Vec<bool>,
    /// The order of each key, where messages have keys.
    order: Option<Order>,
    over: watch::Sender<bool>,
}

/// The key of a backlog.
pub(crate) const BACKLOG: usize = 0;

/// Up to 16 minutes, three digits.
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

    /// Messages that came out of the order of their keys.
    pub(crate) fn disordered(&self) -> Option<u64> {
        self.order.as_ref().map(Order::broken)
    }

    /// The handler has this payload in its hands.
    pub fn received(&self, payload: impl AsRef<[u8]>) {
        self.received_many(std::iter::once(payload));
    }

    /// The handler has these payloads in its hands.
    pub fn received_many<P: AsRef<[u8]>>(&self, payloads: impl IntoIterator<Item = P>) {
        let mut count = 0;
        // A backlog in a key of its own is no part of the race, but for its order.
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

    /// Received since the clock started.
    pub(crate) fn received_now(&self) -> u64 {
        self.all_received().saturating_sub(self.before.load(Ordering::Relaxed))
    }

    /// The clock starts: what was is forgotten.
    pub(crate) fn start(&self) {
        self.before.store(self.all_received(), Ordering::Relaxed);
        self.sent.store(0, Ordering::Relaxed);
        if let Some(latencies) = &self.latencies {
            latencies.lock().unwrap_or_else(PoisonError::into_inner).reset();
        }
    }

    /// Until so many messages were received in all.
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

    /// Whether consumers should stop.
    #[must_use]
    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Until consumers should stop.
    pub async fn over(&self) {
        // An error would mean that the sender, which is `self`, is gone.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }
}
