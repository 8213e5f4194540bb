//! What came back, counted by number, and how long it took; nothing here is a lock that every message takes.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use hdrhistogram::Histogram;

/// A bit for every message.
pub struct Tally {
    seen: Vec<AtomicU64>,
    messages: u64,
    distinct: AtomicU64,
    duplicated: AtomicU64,
}

impl Tally {
    pub fn new(messages: u64) -> Self {
        let seen = (0..messages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { seen, messages, distinct: AtomicU64::new(0), duplicated: AtomicU64::new(0) }
    }

    /// Counts a message; a number that was never given out is none of ours, and told as a duplicate.
    fn is_new(&self, number: u64) -> bool {
        let bit = 1 << (number % 64);
        let word = self.seen.get((number / 64) as usize).filter(|_| number < self.messages);
        word.is_some_and(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }

    /// Counts what was received together.
    pub fn count(&self, numbers: impl Iterator<Item = u64>) {
        let (mut distinct, mut duplicated) = (0, 0);
        for number in numbers {
            if self.is_new(number) {
                distinct += 1;
            } else {
                duplicated += 1;
            }
        }
        self.distinct.fetch_add(distinct, Ordering::Relaxed);
        self.duplicated.fetch_add(duplicated, Ordering::Relaxed);
    }

    pub fn distinct(&self) -> u64 {
        self.distinct.load(Ordering::Relaxed)
    }

    pub fn duplicated(&self) -> u64 {
        self.duplicated.load(Ordering::Relaxed)
    }

    pub fn lost(&self) -> u64 {
        self.messages - self.distinct()
    }

    pub fn is_complete(&self) -> bool {
        self.lost() == 0
    }
}

/// Samples that a task gathers before it takes the lock.
const GATHERED: usize = 512;

/// Durations in microseconds.
pub struct Durations(Mutex<Histogram<u64>>);

impl Durations {
    pub fn new() -> Self {
        // Three digits up to an hour.
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3);
        Self(Mutex::new(histogram.unwrap_or_else(|_| unreachable!("the bounds are in order"))))
    }

    pub fn recorder(&self) -> Recorder<'_> {
        Recorder { durations: self, gathered: Vec::with_capacity(GATHERED) }
    }

    /// The duration that this share of the samples did not exceed.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).value_at_percentile(percent)
    }
}

/// One task's samples.
pub struct Recorder<'a> {
    durations: &'a Durations,
    gathered: Vec<u32>,
}

impl Recorder<'_> {
    pub fn add(&mut self, micros: u64) {
        self.gathered.push(u32::try_from(micros).unwrap_or(u32::MAX));
        if self.gathered.len() == GATHERED {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let mut histogram = self.durations.0.lock().unwrap_or_else(PoisonError::into_inner);
        for micros in self.gathered.drain(..) {
            histogram.saturating_record(u64::from(micros));
        }
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        self.hand_over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lost_and_the_doubled_are_told_apart() {
        let tally = Tally::new(70);
        tally.count((0..69).chain([3, 3, 70]));
        assert_eq!((tally.lost(), tally.duplicated()), (1, 3));
        tally.count([69].into_iter());
        assert!(tally.is_complete());
    }

    #[test]
    fn no_sample_is_left_behind() {
        let durations = Durations::new();
        let mut recorder = durations.recorder();
        (1..=1000).for_each(|micros| recorder.add(micros));
        drop(recorder);
        assert_eq!(durations.percentile(50.0), 500);
        assert_eq!(durations.percentile(99.0), 990);
    }
}
