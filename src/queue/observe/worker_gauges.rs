//! The gauges of a worker. All workers of a queue in a process add to the same gauges.

use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::Gauge;

/// The shares of one worker in the gauges of its queue. Other workers of the process have their
/// own.
pub(crate) struct WorkerGauges {
    prefetched: GaugeShare,
    connected: GaugeShare,
}

impl WorkerGauges {
    pub fn of(prefetched: &Gauge, connected: &Gauge) -> Self {
        Self { prefetched: GaugeShare::of(prefetched), connected: GaugeShare::of(connected) }
    }

    pub fn prefetched(&self, messages: usize) {
        self.prefetched.set(messages);
    }

    pub fn connected(&self, is_so: bool) {
        self.connected.set(usize::from(is_so));
    }

    /// Returns a guard that takes the shares back when it is dropped.
    pub fn until_end(&self) -> WorkerEnd<'_> {
        WorkerEnd(self)
    }
}

pub(crate) struct WorkerEnd<'a>(&'a WorkerGauges);

impl Drop for WorkerEnd<'_> {
    fn drop(&mut self) {
        self.0.prefetched(0);
        self.0.connected(false);
    }
}

struct GaugeShare {
    gauge: Gauge,
    value: AtomicUsize,
}

impl GaugeShare {
    fn of(gauge: &Gauge) -> Self {
        Self { gauge: gauge.clone(), value: AtomicUsize::new(0) }
    }

    fn set(&self, value: usize) {
        let before = self.value.swap(value, Ordering::Relaxed);
        match value.checked_sub(before) {
            Some(more) => self.gauge.increment(more as f64),
            None => self.gauge.decrement((before - value) as f64),
        }
    }
}
