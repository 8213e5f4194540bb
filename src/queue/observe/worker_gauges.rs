//! The gauges of a worker. All workers of a handle of a queue add to the same gauges.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use metrics::Gauge;

/// The shares of one worker in the gauges of its queue. Other workers have their own.
pub(crate) struct WorkerGauges {
    prefetched: GaugeShare,
    connected: GaugeShare,
}

impl WorkerGauges {
    pub fn of(prefetched: &Arc<SharedGauge>, connected: &Arc<SharedGauge>) -> Self {
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

/// A gauge that shows the sum of several values. It is set to the sum, because not every recorder
/// can add to a gauge.
pub(crate) struct SharedGauge {
    gauge: Gauge,
    sum: Mutex<usize>,
}

impl SharedGauge {
    pub fn of(gauge: Gauge) -> Arc<Self> {
        Arc::new(Self { gauge, sum: Mutex::new(0) })
    }
}

struct GaugeShare {
    all: Arc<SharedGauge>,
    value: AtomicUsize,
}

impl GaugeShare {
    fn of(all: &Arc<SharedGauge>) -> Self {
        Self { all: all.clone(), value: AtomicUsize::new(0) }
    }

    fn set(&self, value: usize) {
        let mut sum = self.all.sum.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.value.swap(value, Ordering::Relaxed);
        *sum = *sum - before + value;
        self.all.gauge.set(*sum as f64);
    }
}
