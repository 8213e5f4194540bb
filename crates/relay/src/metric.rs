//! The relay's counters, in the `metrics` facade.

use std::time::Instant;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

/// The metrics of a relay, for one queue, one broker and one direction.
pub(crate) struct Metrics {
    pub confirmed: Counter,
    pub refused: Counter,
    pub again: Counter,
    pub received: Counter,
    pub held: Gauge,
    batch: Histogram,
    seconds: Histogram,
}

impl Metrics {
    pub fn of(queue: &str, broker: &str) -> Self {
        let labels = [("queue", queue.to_owned()), ("broker", broker.to_owned())];
        Self {
            confirmed: counter!("trunkline_relay_confirmed_total", &labels),
            refused: counter!("trunkline_relay_refused_total", &labels),
            again: counter!("trunkline_relay_again_total", &labels),
            received: counter!("trunkline_relay_received_total", &labels),
            held: gauge!("trunkline_relay_held", &labels),
            batch: histogram!("trunkline_relay_batch_messages", &labels),
            seconds: histogram!("trunkline_relay_produce_seconds", &labels),
        }
    }

    pub fn produced(&self, messages: usize, began: Instant) {
        self.batch.record(messages as f64);
        self.seconds.record(began.elapsed().as_secs_f64());
    }
}
