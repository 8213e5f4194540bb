//! Gives messages back to preserve the order of keys: see `order.rs`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Held, MARGIN, order::Order};
use crate::queue::message::Lease;

impl<T> Held<T> {
    /// Removes and returns the leases to give back, in order: messages behind a failed message,
    /// messages beyond a key's limit, and messages that were too late to start. After the server
    /// has ended the leases, call [`Held::confirm`].
    pub fn give_back(&mut self) -> Vec<Lease> {
        self.order.as_mut().map_or_else(|| std::mem::take(&mut self.late), Order::give_back)
    }

    /// Removes and returns leases like [`Held::give_back`], and counts them. The caller releases
    /// them, and then passes their number to [`Held::end_giving_back`].
    pub fn begin_giving_back(&mut self) -> Vec<Lease> {
        let back = self.give_back();
        self.returning += back.len();
        back
    }

    /// Removes and returns the keys that have enough messages in this worker, each with the time
    /// for which it may rest.
    pub fn full(&mut self) -> Vec<(Arc<str>, Duration)> {
        self.order.as_mut().map(Order::full).unwrap_or_default()
    }

    /// Records that messages are about to be leased.
    pub fn fetching(&mut self, now: Instant) {
        self.asked = now;
        if let Some(order) = &mut self.order {
            order.fetching();
        }
    }

    /// Records that the server has ended these leases.
    pub fn confirm(&mut self, leases: impl IntoIterator<Item = Lease>) {
        if let Some(order) = &mut self.order {
            leases.into_iter().for_each(|lease| order.confirm(lease));
        }
    }

    /// Records that the server refuses to end this lease, which therefore expires at `until`.
    pub fn confirm_at_the_end(&mut self, lease: Lease, until: Instant) {
        if self.order.is_some() {
            self.endless.push((lease, until));
        }
    }

    /// Confirms refused leases that have expired. Returns true if there are any.
    pub(super) fn confirm_ended(&mut self, now: Instant) -> bool {
        let ended: Vec<Lease> =
            self.endless.extract_if(.., |(_, until)| *until + MARGIN < now).map(|(lease, _)| lease).collect();
        let are_some = !ended.is_empty();
        self.confirm(ended);
        are_some
    }

    /// Gives leases back that could not be released, if they bar a key. The next try includes them.
    pub fn give_back_again(&mut self, leases: &[Lease]) {
        if let Some(order) = &mut self.order {
            order.again(leases);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::{
        queue::message::{Message, metadata::Metadata},
        worker::groups::{Decision, ToSettle},
    };

    fn of_key(id: i64, attempt: i32) -> Message<()> {
        Message {
            id,
            attempt,
            enqueued_at: SystemTime::UNIX_EPOCH,
            payload: (),
            metadata: Metadata::new(),
            key: Some("a key".into()),
            rate: None,
            ran_out: false,
            released: 0,
        }
    }

    /// Later messages of the key would be leased and released in a loop.
    #[test]
    fn key_rests_while_a_release_takes_long() {
        let now = Instant::now();
        let mut held = Held::new(Duration::from_secs(30), Some(1), now);
        held.fetching(now);
        held.leased(vec![of_key(1024, 1), of_key(1025, 1)], Vec::new(), now);
        let nr = held.hand();
        held.next(nr, 1, false, now).expect("it may start");
        held.finish(nr, [Decision::Retry(Duration::ZERO, "by chance".to_owned())], now);
        assert_eq!(held.settle().len(), 1);
        held.settled(1, ToSettle::default(), now);
        held.confirm([Lease { id: 1024, attempt: 1 }]);
        let back = held.begin_giving_back();
        assert_eq!((&back[..], held.is_given_back()), (&[Lease { id: 1025, attempt: 1 }][..], false));

        let arrives = |held: &mut Held<()>, id| {
            held.fetching(now);
            held.leased(vec![of_key(id, 1)], Vec::new(), now);
            (held.give_back(), held.full().into_iter().map(|(_, rest)| rest).collect::<Vec<_>>())
        };
        let later = |id| vec![Lease { id, attempt: 1 }];
        assert_eq!(arrives(&mut held, 2048), (later(2048), vec![Duration::from_millis(50)]));
        held.end_giving_back(1);
        assert_eq!(arrives(&mut held, 3072), (later(3072), vec![]), "no release is running");
    }
}
