//! The number under which a worker owns partitions of a queue. No other worker has the same number.
//!
//! If the reply to a lease statement is lost, messages may be leased under the worker's number
//! without the worker having received them. Later messages in the same partitions must wait until
//! those leases end. So the worker continues under a new number, as if it had crashed and
//! restarted.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

pub(super) struct Holder(Mutex<Numbers>);

struct Numbers {
    current: i64,
    /// Former numbers that may still own partitions, each with the time from which it owns none.
    former: Vec<(i64, Instant)>,
}

fn new() -> i64 {
    (uuid::Uuid::new_v4().as_u128() >> 65) as i64
}

impl Holder {
    pub fn new() -> Self {
        Self(Mutex::new(Numbers { current: new(), former: Vec::new() }))
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn number(&self) -> i64 {
        self.numbers().current
    }

    /// Records that unknown messages may be leased under the current number, and takes a new
    /// number.
    pub fn lose(&self, lease: Duration) {
        let mut numbers = self.numbers();
        // A partition is owned for one and a half times the lease time. A statement that is already
        // being sent may begin slightly later.
        let former = (std::mem::replace(&mut numbers.current, new()), Instant::now() + lease * 2);
        numbers.former.push(former);
    }

    /// Returns the former numbers that may still own partitions.
    pub fn former(&self) -> Vec<i64> {
        let (now, mut numbers) = (Instant::now(), self.numbers());
        numbers.former.retain(|(_, until)| *until > now);
        numbers.former.iter().map(|(number, _)| *number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holder_that_lost_an_answer_changes_and_remembers_its_number() {
        let holder = Holder::new();
        let first = holder.number();
        assert!(first >= 0 && holder.former().is_empty());
        holder.lose(Duration::from_secs(30));
        assert_ne!(holder.number(), first);
        assert_eq!(holder.former(), [first]);
        holder.lose(Duration::ZERO);
        assert_eq!(holder.former(), [first], "what the second held is over");
    }
}
