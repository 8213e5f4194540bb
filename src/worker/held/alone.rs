//! A message whose lease ran out may have killed its worker, and would again. So it runs alone: it begins when nothing else runs, and nothing begins
//! beside it. Nobody waits for longer than a second, neither that message for the others nor they for it: what has lived for so long is company.

use std::time::{Duration, Instant};

use super::{Held, order::Prefetched};

/// What has run for so long has not killed its worker at once.
const ALONE: Duration = Duration::from_secs(1);

impl<T> Held<T> {
    /// Lets a message wait for a hand: before the others, where it is to run alone.
    pub(super) fn awaits_hand(&mut self, new: Prefetched<T>) {
        if new.message.ran_out {
            let before = self.waiting.iter().take_while(|waiting| waiting.message.ran_out).count();
            self.waiting.insert(before, new);
        } else {
            self.waiting.push_back(new);
        }
    }

    /// Whether the next that begins is to run alone.
    pub(super) fn alone_is_next(&self) -> bool {
        self.waiting.front().is_some_and(|first| first.message.ran_out)
    }

    /// Whether one runs alone.
    pub fn runs_alone(&self) -> bool {
        self.alone.is_some()
    }

    /// The one that ran alone has lived for long enough. Returns whether there was one.
    pub(super) fn has_company(&mut self, now: Instant) -> bool {
        self.alone.take_if(|(_, since)| now.duration_since(*since) > ALONE).is_some()
    }

    /// Whether the first that waits may begin.
    pub(super) fn may_begin(&self, now: Instant) -> bool {
        let lives = |since: Instant| now.duration_since(since) > ALONE;
        self.alone.is_none_or(|(_, since)| lives(since))
            && (!self.alone_is_next() || self.hands.iter().filter_map(|hand| hand.since).all(lives))
    }

    /// How many of those that wait may begin now.
    pub fn ready(&self, now: Instant) -> usize {
        match self.may_begin(now) {
            false => 0,
            true if self.alone_is_next() => 1,
            true => self.waiting.len(),
        }
    }
}
