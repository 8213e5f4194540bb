//! Lets dequeues share statements. Requests that arrive while a statement runs are combined in the
//! next statement.

mod distribute;
mod batches;

use std::{collections::VecDeque, sync::Arc};

use tokio::sync::oneshot;

pub(crate) use self::batches::{Batches, DequeueMode, PutBack};
use super::batcher::{Batcher, Permit, Running, Waiting};
use crate::error::{Error, Result};

/// The maximum number of messages that one statement dequeues. Larger requests take several
/// statements.
pub(crate) const PAGE: usize = 1 << 15;

/// The number of requested messages that starts a second statement, which has its own commit. A
/// second statement also starts if the running one asks for at least this number, so that small
/// requests do not wait for large ones.
pub(super) const WORTH_ANOTHER: usize = 1024;

pub(crate) struct DequeueRequest {
    /// The number of messages that the request asks for.
    pub n: usize,
    /// The maximum number of messages in the reply to a shared statement.
    pub most: usize,
    pub how: DequeueMode,
    pub answer: oneshot::Sender<Result<Batches>>,
}

/// Requests of one queue that wait for a statement.
#[derive(Default)]
pub(crate) struct Requests(VecDeque<DequeueRequest>);

pub(crate) type DequeueBatcher = Arc<Batcher<Requests>>;
pub(crate) type DequeuePermit = Permit<Requests>;

impl Requests {
    pub fn add(&mut self, request: DequeueRequest) {
        self.0.push_back(request);
    }
}

impl Waiting for Requests {
    type Call = DequeueRequest;
    type Work = Vec<DequeueRequest>;
    const STATEMENTS: usize = 2;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn deserve_another(&self, running: &Running) -> bool {
        running.messages >= WORTH_ANOTHER || self.0.iter().map(|request| request.n).sum::<usize>() >= WORTH_ANOTHER
    }

    /// Takes the oldest request, and later requests with the same mode, up to as many messages as
    /// fit. Drops requests whose callers have left.
    fn next(&mut self, _: &Running) -> Option<(Vec<DequeueRequest>, usize)> {
        let (mut requests, mut others) = (Vec::<DequeueRequest>::new(), VecDeque::new());
        let (mut asked, mut is_full) = (0, false);
        for request in self.0.drain(..).filter(|request| !request.answer.is_closed()) {
            match requests.first() {
                Some(first) if first.how != request.how || is_full => others.push_back(request),
                Some(first) if asked + request.n > first.most => {
                    is_full = true; // small requests must not overtake this one again and again
                    others.push_back(request);
                }
                _ => {
                    asked += request.n;
                    requests.push(request);
                }
            }
        }
        self.0 = others;
        (!requests.is_empty()).then_some((requests, asked))
    }

    fn abandoned(&mut self) -> Vec<DequeueRequest> {
        self.0.drain(..).collect()
    }

    fn fail(request: DequeueRequest) {
        let _ = request.answer.send(Err(Error::ended("a dequeue", false))); // the caller may have stopped waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Receiver = oneshot::Receiver<Result<Batches>>;

    /// The number of messages that fit.
    const MOST: usize = 100;

    fn join(batcher: &DequeueBatcher, n: usize, how: DequeueMode) -> (Option<DequeuePermit>, Receiver) {
        let (answer, receiver) = oneshot::channel();
        let permit = batcher.join(|requests| requests.add(DequeueRequest { n, most: MOST, how, answer }));
        (permit, receiver)
    }

    fn asked(permit: &mut DequeuePermit) -> Vec<usize> {
        permit.next().into_iter().flatten().map(|request| request.n).collect()
    }

    #[test]
    fn calls_during_a_statement_share_the_next_in_order() {
        let batcher = DequeueBatcher::default();
        let (permit, _first) = join(&batcher, 1, DequeueMode::Take);
        let mut permit = permit.expect("none is on its way");
        assert_eq!(asked(&mut permit), [1]);
        let others = [2, 3, 4].map(|n| join(&batcher, n, DequeueMode::Take));
        assert!(others.iter().all(|(permit, _)| permit.is_none()));
        assert_eq!(asked(&mut permit), [2, 3, 4]);
        assert!(permit.next().is_none());
        assert!(join(&batcher, 5, DequeueMode::Take).0.is_some(), "the permit is over");
    }

    #[test]
    fn takes_and_leases_of_each_length_have_separate_statements() {
        let batcher = DequeueBatcher::default();
        let ways = [
            DequeueMode::Take,
            DequeueMode::Lease(None),
            DequeueMode::Take,
            DequeueMode::Lease(Some(5.0)),
            DequeueMode::Lease(None),
        ];
        let mut joined: Vec<_> = ways.iter().zip(1..).map(|(how, n)| join(&batcher, n, *how)).collect();
        let mut permit = joined[0].0.take().expect("none is on its way");
        assert_eq!([asked(&mut permit), asked(&mut permit), asked(&mut permit)], [vec![1, 3], vec![2, 5], vec![4]]);
    }

    #[test]
    fn statement_asks_for_at_most_what_fits_in_call_order() {
        let batcher = DequeueBatcher::default();
        let mut joined: Vec<_> = [MOST, 1, MOST, 1].iter().map(|n| join(&batcher, *n, DequeueMode::Take)).collect();
        let mut permit = joined[0].0.take().expect("none is on its way");
        let mut served = Vec::new();
        loop {
            let asked = asked(&mut permit);
            if asked.is_empty() {
                break;
            }
            served.push(asked);
        }
        assert_eq!(served, [vec![MOST], vec![1], vec![MOST], vec![1]]);
    }

    #[test]
    fn a_second_statement_starts_when_it_is_worth_one() {
        let batcher = DequeueBatcher::default();
        let (permit, _first) = join(&batcher, 1, DequeueMode::Take);
        let mut permit = permit.expect("none is on its way");
        permit.next();
        let (none, _second) = join(&batcher, WORTH_ANOTHER - 1, DequeueMode::Take);
        assert!(none.is_none());
        let another = join(&batcher, 1, DequeueMode::Take).0.expect("enough wait");
        assert!(join(&batcher, WORTH_ANOTHER, DequeueMode::Take).0.is_none(), "two are on their way");
        drop((permit, another));
        assert!(join(&batcher, 1, DequeueMode::Take).0.is_some(), "none is any more");
    }

    #[test]
    fn a_small_call_does_not_wait_for_a_large_one() {
        let batcher = DequeueBatcher::default();
        let (permit, _large) = join(&batcher, WORTH_ANOTHER, DequeueMode::Take);
        let mut permit = permit.expect("none is on its way");
        permit.next();
        let (other, _small) = join(&batcher, 1, DequeueMode::Take);
        assert_eq!(asked(&mut other.expect("one beside it")), [1]);
        assert!(permit.next().is_none());
        let left = batcher.state();
        assert_eq!((left.running.statements, left.running.messages), (0, 0), "what was counted is counted down");
    }

    #[test]
    fn nothing_is_dequeued_for_a_call_that_was_dropped() {
        let batcher = DequeueBatcher::default();
        let (permit, _first) = join(&batcher, 1, DequeueMode::Take);
        let mut permit = permit.expect("none is on its way");
        permit.next();
        drop(join(&batcher, 2, DequeueMode::Take));
        let (_, _third) = join(&batcher, 3, DequeueMode::Take);
        assert_eq!(asked(&mut permit), [3]);
    }

    #[test]
    fn requests_of_a_task_that_is_gone_are_answered() {
        let batcher = DequeueBatcher::default();
        let (permit, mut first) = join(&batcher, 1, DequeueMode::Take);
        let mut permit = permit.expect("none is on its way");
        let underway = permit.next();
        let (_, mut second) = join(&batcher, 2, DequeueMode::Take);
        drop((underway, permit));
        assert!(first.try_recv().is_err(), "its statement was under way");
        let unsent = second.try_recv().expect("answered").expect_err("not dequeued");
        assert!(!unsent.is_outcome_unknown(), "{unsent}");
        assert!(join(&batcher, 3, DequeueMode::Take).0.is_some());
    }
}
