//! A worker's identity for the lanes of a queue: a number that no other worker has.
//!
//! Where the answer to a statement that leases was lost, messages may be leased under the number of
//! which the worker does not know. What is behind them in their lanes must wait until those leases
//! are over, so the worker goes on as another, as if it had died and come again.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

pub(super) struct Holder(Mutex<Numbers>);

struct Numbers {
    current: i64,
    /// Under which lanes may be held, until then.
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

    /// Records that the messages leased under its number are unknown. Leases last for `lease`.
    pub fn lose(&self, lease: Duration) {
        let mut numbers = self.numbers();
        // A lane is held for one and a half times as long as a lease; and a statement that was on
        // its way begins somewhat later.
        let former = (std::mem::replace(&mut numbers.current, new()), Instant::now() + lease * 2);
        numbers.former.push(former);
    }

    /// The numbers that it had, under which lanes may be held.
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
    fn a_holder_that_lost_an_answer_is_another_and_knows_who_it_was() {
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
