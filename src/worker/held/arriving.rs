//! Receives leased messages. The attempt of an unreadable message fails at once, and the later
//! messages of its key go back: see `order.rs`.

use std::time::Instant;

use super::{
    Held,
    bytes::ByteLimit,
    order::{Arrival, Prefetched},
};
use crate::{
    queue::{batch::unclaimed::Unreadable, message::Message, verbs::lease::UNREADABLE_AGAIN},
    worker::groups::{Decision, Failed, Finished},
};

impl<T> Held<T> {
    /// Adds leased messages; `now` is the time when the reply arrived. The leases began after
    /// [`Held::fetching`], so they end no earlier than the lease time after it, however late the
    /// reply arrives.
    pub fn leased(&mut self, messages: Vec<Message<T>>, unreadable: Vec<Unreadable>, now: Instant) {
        if self.waiting.is_empty() {
            self.started = now; // without a waiting message, no message could start earlier
        }
        if !messages.is_empty() || !unreadable.is_empty() {
            self.misses = 0;
        }
        let is_ending = !self.is_given_back();
        if let Some(order) = &mut self.order {
            order.arriving(is_ending);
        }
        let until = self.asked + self.lease;
        let mut unreadable = unreadable.into_iter().peekable();
        for (before, message) in messages.into_iter().enumerate() {
            while let Some(next) = unreadable.next_if(|next| next.readable_before <= before) {
                self.fail(&next, now);
            }
            let group = self.groups.arrive(message.lease());
            let bytes = self.limit.as_mut().map(|limit| limit.hold(&message));
            let new = Prefetched { message, group, until, bytes };
            let arrival = match &mut self.order {
                Some(order) => order.arrive(new, now),
                None => Arrival::Ready(new),
            };
            match arrival {
                Arrival::Ready(new) => self.awaits_hand(new),
                Arrival::Kept => {}
                Arrival::Refused(group) => self.groups.close(group),
            }
        }
        for next in unreadable {
            self.fail(&next, now);
        }
        self.groups.arrived();
        self.limit.iter_mut().for_each(ByteLimit::leased);
        if let Some(order) = &mut self.order {
            order.fetched(now);
        }
    }

    /// Fails the attempt of an unreadable message, or of each message in an unreadable row.
    fn fail(&mut self, unreadable: &Unreadable, now: Instant) {
        let (until, row) = (self.asked + self.lease, (unreadable.count() > 1).then_some(unreadable.id));
        for (lease, key) in unreadable.leases_and_keys() {
            let group = self.groups.arrive(lease);
            if let (Some(order), Some(key)) = (&mut self.order, key) {
                order.unreadable(&key, lease);
            }
            let answer = Decision::Retry(UNREADABLE_AGAIN, unreadable.reason.clone());
            let answer = Failed { answer, at: now, row };
            self.groups.answered(group).failed.push(Finished { lease, until, answer });
            self.groups.close(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::{
        postgres::time::Time,
        queue::message::{Lease, metadata::Metadata},
        worker::groups::ToSettle,
    };

    const LEASE: Duration = Duration::from_secs(30);

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

    fn unreadable(id: i64, readable_before: usize) -> Unreadable {
        let mut one = Unreadable::of_message((id, (1, 0), Time::EARLIEST), (0, None), None, "it is null".to_owned());
        (one.keys, one.readable_before) = (vec!["a key".into()], readable_before);
        one
    }

    fn leases(settling: &ToSettle) -> (Vec<i64>, Vec<i64>) {
        let done = settling.done.iter().map(|done| done.lease.id).collect();
        (done, settling.failed.iter().map(|failed| failed.lease.id).collect())
    }

    #[test]
    fn messages_behind_an_unreadable_one_wait_until_it_is_settled() {
        let now = Instant::now();
        let mut held = Held::new(LEASE, Some(1), now);
        held.fetching(now);
        held.leased(vec![of_key(1024, 1), of_key(1026, 1)], vec![unreadable(1025, 1)], now);
        let (nr, behind) = (held.hand(), Lease { id: 1026, attempt: 1 });
        let start = held.next(nr, 1, false, now).expect("the message before it may start");
        assert_eq!((start.messages[0].id, held.give_back()), (1024, vec![behind]));
        assert!(!held.is_settling(), "a row is settled as a whole");
        held.finish(nr, [Decision::Done], now);
        let settling = held.settle();
        assert_eq!(leases(&settling), (vec![1024], vec![1025]));
        let answer = Decision::Retry(UNREADABLE_AGAIN, "it is null".to_owned());
        assert_eq!(settling.failed[0].answer, Failed { answer, at: now, row: None });

        // The message behind it is released, and leased again, before the retry is confirmed.
        held.confirm([behind]);
        held.fetching(now);
        held.leased(vec![of_key(1026, 2)], Vec::new(), now);
        assert!(held.next(nr, 1, false, now).is_none(), "its key is barred");
        let again = held.give_back();
        assert_eq!(again, [Lease { id: 1026, attempt: 2 }]);
        held.confirm(again);
        held.confirm([Lease { id: 1025, attempt: 1 }]);
        held.settled(2, ToSettle::default(), now);
        held.fetching(now);
        held.leased(vec![of_key(1026, 3)], Vec::new(), now);
        assert!(held.next(nr, 1, false, now).is_some());
    }

    #[test]
    fn unreadable_messages_need_neither_order_nor_readable_ones() {
        let now = Instant::now();
        let mut held = Held::<()>::new(LEASE, None, now);
        assert_eq!(held.asked_in_vain(true), 1);
        held.leased(Vec::new(), vec![unreadable(1024, 0), unreadable(1025, 0)], now);
        assert_eq!(held.asked_in_vain(true), 1, "the lease found messages");
        assert_eq!(leases(&held.settle()), (vec![], vec![1024, 1025]));
        held.settled(2, ToSettle::default(), now);
        assert!(held.is_empty());
    }

    #[test]
    fn fresh_message_has_not_waited_while_the_buffer_was_empty() {
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(60));
        let mut held = Held::new(LEASE, None, now);
        held.fetching(later);
        held.leased(vec![of_key(1024, 1)], Vec::new(), later);
        let beat = held.beat(later, true, true);
        assert!(beat.release.is_empty() && beat.renew.is_empty() && beat.renewal.is_none() && !beat.changed);
    }

    /// The lease begins before the reply arrives, and a proxy or a paused process may delay it.
    #[test]
    fn late_reply_gives_no_fresh_lease() {
        let now = Instant::now();
        let (mut held, second) = (Held::new(LEASE, None, now), Duration::from_secs(1));
        let (nr, late) = (held.hand(), now + LEASE + second);
        held.fetching(now);
        held.leased(vec![of_key(1024, 1)], Vec::new(), late);
        assert!(held.next(nr, 1, true, late).is_none(), "the lease of the message may have ended");
        assert!(!held.is_given_back());
        assert_eq!(held.beat(late, true, false).release, [], "other releases are running");
        let release = held.beat(late, true, true).release;
        assert_eq!(release, [Lease { id: 1024, attempt: 1 }], "or may not have");
        held.end_giving_back(release.len());
        assert!(held.is_empty());

        held.fetching(late);
        held.leased(vec![of_key(1024, 2)], Vec::new(), late + second);
        let told = held.next(nr, 1, true, late + second).and_then(|start| start.told).expect("it is told");
        held.renewed(&[Lease { id: 1024, attempt: 2 }], &[], late);
        held.beat(late + LEASE + second * 2, true, true);
        assert!(told.is_lost(), "the renewal was requested when the lease began");
    }
}
