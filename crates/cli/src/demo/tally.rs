//! Counts received messages by their numbers, and records durations. Neither takes a lock per
//! message.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use hdrhistogram::Histogram;

use crate::{
    error::{Error, Result},
    print::thousands,
};

/// The numbers of the received messages, as one bit per message.
pub struct Tally {
    seen: Vec<AtomicU64>,
    messages: u64,
    distinct: AtomicU64,
    duplicated: AtomicU64,
    unknown: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    New,
    Again,
    /// No message with this number was enqueued.
    Unknown,
}

impl Tally {
    pub fn new(messages: u64) -> Self {
        let seen = (0..messages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let zero = AtomicU64::default;
        Self { seen, messages, distinct: zero(), duplicated: zero(), unknown: zero() }
    }

    fn saw(&self, number: u64) -> Seen {
        let bit = 1 << (number % 64);
        match self.seen.get((number / 64) as usize).filter(|_| number < self.messages) {
            None => Seen::Unknown,
            Some(word) if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 => Seen::New,
            Some(_) => Seen::Again,
        }
    }

    /// Counts the messages of one batch.
    pub fn count(&self, numbers: impl Iterator<Item = u64>) {
        let (mut distinct, mut duplicated, mut unknown) = (0, 0, 0);
        for number in numbers {
            match self.saw(number) {
                Seen::New => distinct += 1,
                Seen::Again => duplicated += 1,
                Seen::Unknown => unknown += 1,
            }
        }
        self.distinct.fetch_add(distinct, Ordering::Relaxed);
        self.duplicated.fetch_add(duplicated, Ordering::Relaxed);
        self.unknown.fetch_add(unknown, Ordering::Relaxed);
    }

    pub fn distinct(&self) -> u64 {
        self.distinct.load(Ordering::Relaxed)
    }

    pub fn duplicated(&self) -> u64 {
        self.duplicated.load(Ordering::Relaxed)
    }

    pub fn unknown(&self) -> u64 {
        self.unknown.load(Ordering::Relaxed)
    }

    pub fn lost(&self) -> u64 {
        self.messages - self.distinct()
    }

    pub fn is_complete(&self) -> bool {
        self.lost() == 0
    }

    /// Fails unless every message was received exactly once. A message that is still in the queue
    /// counts as an error, because it would be delivered again.
    pub fn verdict(&self, left: u64) -> Result<()> {
        let wrong: Vec<String> = [
            (self.lost(), "lost"),
            (self.duplicated(), "received again"),
            (self.unknown(), "received that were never sent"),
            (left, "left in the queue after all was acknowledged"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", thousands(count)))
        .collect();
        match wrong.as_slice() {
            [] => Ok(()),
            _ => Err(Error::new(format!("of {} messages {}", thousands(self.messages), wrong.join(", ")))),
        }
    }
}

/// The number of samples that a task collects before it takes the lock.
const GATHERED: usize = 512;

/// A histogram of durations in microseconds.
pub struct Durations(Mutex<Histogram<u64>>);

impl Durations {
    pub fn new() -> Self {
        // Keeps three significant digits, up to an hour.
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3);
        Self(Mutex::new(histogram.unwrap_or_else(|_| unreachable!("the bounds are in order"))))
    }

    pub fn recorder(&self) -> Recorder<'_> {
        Recorder { durations: self, gathered: Vec::with_capacity(GATHERED) }
    }

    /// Returns the duration that `percent` of the samples did not exceed.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).value_at_percentile(percent)
    }
}

/// A collector of one task's samples.
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
        assert_eq!((tally.lost(), tally.duplicated(), tally.unknown()), (1, 2, 1));
        tally.count([69].into_iter());
        assert!(tally.is_complete());
    }

    #[test]
    fn only_what_came_exactly_once_passes() {
        let verdict = |numbers: &[u64], left| {
            let tally = Tally::new(3);
            tally.count(numbers.iter().copied());
            tally.verdict(left).err().map(|error| error.to_string())
        };
        assert_eq!(verdict(&[2, 0, 1], 0), None);
        assert_eq!(verdict(&[0, 1], 0).as_deref(), Some("of 3 messages 1 lost"));
        assert_eq!(verdict(&[0, 1, 2, 2], 0).as_deref(), Some("of 3 messages 1 received again"));
        assert_eq!(verdict(&[0, 1, 2, 3], 0).as_deref(), Some("of 3 messages 1 received that were never sent"));
        assert_eq!(verdict(&[0, 1, 2, u64::MAX], 0).as_deref(), verdict(&[0, 1, 2, 3], 0).as_deref());
        assert_eq!(
            verdict(&[0, 1, 2], 4).as_deref(),
            Some("of 3 messages 4 left in the queue after all was acknowledged")
        );
        assert_eq!(verdict(&[0, 1, 1, 3], 0).map(|told| told.matches(", ").count()), Some(2));
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
