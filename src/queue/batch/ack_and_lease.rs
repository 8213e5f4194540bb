//! Lets calls that acknowledge and lease share transactions. Calls that arrive while a transaction
//! runs are combined in the next one.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use tokio::sync::oneshot;
use tracing::Span;

use super::{
    batcher::{Batcher, Permit, Running, Waiting},
    dequeues::{Batches, DequeueMode, WORTH_ANOTHER},
};
use crate::{
    error::{Error, Result},
    queue::message::Lease,
};

/// A call that acknowledges messages and leases others.
pub(crate) struct AckAndLease {
    /// The leases to end, sorted and distinct.
    pub done: Vec<Lease>,
    /// The number of messages to lease.
    pub n: usize,
    /// The maximum number of messages in the reply to a shared transaction.
    pub most: usize,
    pub how: DequeueMode,
    /// The span that was current at the call.
    pub caller: Span,
    /// Sends the leased messages, and the ids of the messages in `done` whose lease was lost.
    pub answer: oneshot::Sender<Result<(Batches, Vec<i64>)>>,
}

impl AckAndLease {
    fn messages(&self) -> usize {
        self.done.len() + self.n
    }
}

/// Calls of one queue that wait for a transaction.
#[derive(Default)]
pub(crate) struct AckAndLeases(VecDeque<AckAndLease>);

pub(crate) type AckAndLeaseBatcher = Arc<Batcher<AckAndLeases>>;
pub(crate) type AckAndLeasePermit = Permit<AckAndLeases>;

impl AckAndLeases {
    pub fn add(&mut self, call: AckAndLease) {
        self.0.push_back(call);
    }
}

impl Waiting for AckAndLeases {
    type Call = AckAndLease;
    type Work = Vec<AckAndLease>;
    /// Unlimited: the size of the calls decides whether another transaction starts.
    const STATEMENTS: usize = usize::MAX;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn deserve_another(&self, running: &Running) -> bool {
        running.messages >= WORTH_ANOTHER || self.0.iter().map(AckAndLease::messages).sum::<usize>() >= WORTH_ANOTHER
    }

    /// Takes the oldest call, and later calls with the same mode, up to as many messages as fit. A
    /// call that acknowledges the same lease as an earlier one waits for the next transaction,
    /// where the lease is lost. Calls whose callers have left are served too, because their
    /// messages must be acknowledged.
    fn next(&mut self, _: &Running) -> Option<(Vec<AckAndLease>, usize)> {
        let first = self.0.pop_front()?;
        let (mut asked, mut messages, mut others) = (first.n, first.messages(), VecDeque::new());
        let mut calls = vec![first];
        let mut acknowledged: Option<HashSet<Lease>> = None; // only if there is a second call
        for call in self.0.drain(..) {
            let fits = call.how == calls[0].how && asked + call.n <= calls[0].most;
            let acknowledged = acknowledged.get_or_insert_with(|| calls[0].done.iter().copied().collect());
            if !fits || call.done.iter().any(|lease| acknowledged.contains(lease)) {
                others.push_back(call);
                continue;
            }
            acknowledged.extend(&call.done);
            asked += call.n;
            messages += call.messages();
            calls.push(call);
        }
        self.0 = others;
        Some((calls, messages))
    }

    fn abandoned(&mut self) -> Vec<AckAndLease> {
        self.0.drain(..).collect()
    }

    fn fail(call: AckAndLease) {
        let _ = call.answer.send(Err(Error::ended(CALL, false))); // the caller may have stopped waiting
    }
}

/// The call's name in error messages.
pub(crate) const CALL: &str = "an acknowledgement with a lease";

#[cfg(test)]
mod tests {
    use super::*;

    type Receiver = oneshot::Receiver<Result<(Batches, Vec<i64>)>>;

    const PLAIN: DequeueMode = DequeueMode::Lease(None);
    /// The number of messages that fit.
    const MOST: usize = 100;

    fn join(
        batcher: &AckAndLeaseBatcher,
        ids: &[i64],
        n: usize,
        how: DequeueMode,
    ) -> (Option<AckAndLeasePermit>, Receiver) {
        let (answer, receiver) = oneshot::channel();
        let done = ids.iter().map(|id| Lease { id: *id, attempt: 1 }).collect();
        let call = AckAndLease { done, n, most: MOST, how, caller: Span::none(), answer };
        (batcher.join(|calls| calls.add(call)), receiver)
    }

    /// Returns the first id that each call of the next transaction acknowledges.
    fn next(permit: &mut AckAndLeasePermit) -> Vec<i64> {
        permit.next().into_iter().flatten().map(|call| call.done[0].id).collect()
    }

    #[test]
    fn calls_during_a_transaction_share_the_next() {
        let batcher = AckAndLeaseBatcher::default();
        let (permit, _first) = join(&batcher, &[1], 1, PLAIN);
        let mut permit = permit.expect("no transaction runs");
        assert_eq!(next(&mut permit), [1]);
        let others = [2, 3, 4].map(|id| join(&batcher, &[id], 1, PLAIN));
        assert!(others.iter().all(|(permit, _)| permit.is_none()));
        assert_eq!(next(&mut permit), [2, 3, 4]);
        assert!(permit.next().is_none());
        assert!(join(&batcher, &[5], 1, PLAIN).0.is_some(), "the permit is over");
    }

    #[test]
    fn leases_of_another_length_need_another_transaction() {
        let batcher = AckAndLeaseBatcher::default();
        let (permit, _first) = join(&batcher, &[1], 1, PLAIN);
        let _others = [(2, Some(5.0)), (3, None), (4, Some(5.0))]
            .map(|(id, time)| join(&batcher, &[id], 1, DequeueMode::Lease(time)));
        let mut permit = permit.expect("no transaction runs");
        assert_eq!([next(&mut permit), next(&mut permit)], [vec![1, 3], vec![2, 4]]);
    }

    #[test]
    fn lease_that_two_calls_end_is_not_ended_twice_in_a_transaction() {
        let batcher = AckAndLeaseBatcher::default();
        let (permit, _first) = join(&batcher, &[1, 2], 1, PLAIN);
        let _others = [&[2, 3][..], &[4], &[3]].map(|ids| join(&batcher, ids, 1, PLAIN));
        let mut permit = permit.expect("no transaction runs");
        assert_eq!([next(&mut permit), next(&mut permit)], [vec![1, 4, 3], vec![2]]);
    }

    #[test]
    fn a_transaction_leases_at_most_what_fits() {
        let batcher = AckAndLeaseBatcher::default();
        let (permit, _first) = join(&batcher, &[1], MOST - 1, PLAIN);
        let _others = [(2, 2), (3, 1)].map(|(id, n)| join(&batcher, &[id], n, PLAIN));
        let mut permit = permit.expect("no transaction runs");
        assert_eq!([next(&mut permit), next(&mut permit)], [vec![1, 3], vec![2]]);
    }

    #[test]
    fn messages_of_a_caller_that_left_are_acknowledged() {
        let batcher = AckAndLeaseBatcher::default();
        let (permit, _first) = join(&batcher, &[1], 1, PLAIN);
        drop(join(&batcher, &[2], 1, PLAIN));
        assert_eq!(next(&mut permit.expect("no transaction runs")), [1, 2]);
    }

    #[test]
    fn a_small_call_does_not_wait_for_a_large_one() {
        let batcher = AckAndLeaseBatcher::default();
        let (permit, _large) = join(&batcher, &[1], WORTH_ANOTHER, PLAIN);
        let mut permit = permit.expect("no transaction runs");
        permit.next();
        let (other, _small) = join(&batcher, &[2], 1, PLAIN);
        assert_eq!(next(&mut other.expect("one beside it")), [2]);
        assert!(permit.next().is_none());
        let left = batcher.state();
        assert_eq!((left.running.statements, left.running.messages), (0, 0), "what was counted is counted down");
    }

    #[test]
    fn calls_of_a_task_that_is_gone_are_answered() {
        let batcher = AckAndLeaseBatcher::default();
        let (permit, mut first) = join(&batcher, &[1], 1, PLAIN);
        let mut permit = permit.expect("no transaction runs");
        let underway = permit.next();
        let (_, mut second) = join(&batcher, &[2], 1, PLAIN);
        drop((underway, permit));
        assert!(first.try_recv().is_err(), "its transaction was under way");
        let unsent = second.try_recv().expect("answered").expect_err("not sent");
        assert!(!unsent.is_outcome_unknown(), "{unsent}");
    }
}
