//! Calls that dequeue from one queue at the same time share a statement: while one is on its way,
//! the calls that arrive gather for the next, which asks for as many messages as all of them
//! together. Pure.
//!
//! No timer and no linger: a call that finds no statement on its way begins one at once.

mod deal;
mod batches;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

pub(crate) use self::batches::{Batches, Dequeue, GiveBack};
use crate::error::{Error, Result};

/// Messages that one statement dequeues at most; larger wishes take several.
pub(crate) const PAGE: usize = 1 << 15;

/// Statements on their way at the same time.
const STATEMENTS: usize = 2;
/// The second one starts when calls for so many messages wait, because it has a commit of its own;
/// or behind one that asks for so many, because small calls should not wait for large ones.
const WORTH_ANOTHER: usize = 1024;

/// One call.
pub(crate) struct Call {
    /// Messages that it asks for.
    pub n: usize,
    pub how: Dequeue,
    pub share: oneshot::Sender<Result<Batches>>,
}

/// The calls of one queue that wait for a statement.
#[derive(Default)]
pub(crate) struct Dequeuer(Mutex<Gathered>);

#[derive(Default)]
struct Gathered {
    calls: VecDeque<Call>,
    statements: usize,
    /// Messages that the statements on their way ask for.
    asked: usize,
}

impl Dequeuer {
    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If the call needs a statement begun, returns the turn that the caller has to start.
    pub fn join(self: &Arc<Self>, call: Call) -> Option<Turn> {
        let mut gathered = self.gathered();
        gathered.calls.push_back(call);
        // Counted only while another may start: then few calls wait, however many come.
        let waiting = || gathered.calls.iter().map(|call| call.n).sum::<usize>();
        let starts = gathered.statements == 0
            || gathered.statements < STATEMENTS && (gathered.asked >= WORTH_ANOTHER || waiting() >= WORTH_ANOTHER);
        starts.then(|| {
            gathered.statements += 1;
            Turn { dequeuer: self.clone(), asked: 0, is_done: false }
        })
    }
}

/// The turn to dequeue for the calls that gather. However it ends, by a panic or with its runtime,
/// no call waits for it any longer: the next one starts another.
pub(crate) struct Turn {
    dequeuer: Arc<Dequeuer>,
    /// Messages that its statement asks for.
    asked: usize,
    is_done: bool,
}

impl Turn {
    /// The calls that the next statement is for: the oldest, with those behind it that dequeue in
    /// the same way, for a page of messages at most. Those that were dropped meanwhile are left
    /// out. None ends the turn.
    pub fn next(&mut self) -> Vec<Call> {
        let mut gathered = self.dequeuer.gathered();
        let (mut calls, mut others) = (Vec::<Call>::new(), VecDeque::new());
        let (mut asked, mut is_full) = (0, false);
        for call in gathered.calls.drain(..).filter(|call| !call.share.is_closed()) {
            match calls.first() {
                Some(first) if first.how != call.how || is_full => others.push_back(call),
                Some(_) if asked + call.n > PAGE => {
                    is_full = true; // a small one behind it must not overtake it without end
                    others.push_back(call);
                }
                _ => {
                    asked += call.n;
                    calls.push(call);
                }
            }
        }
        gathered.calls = others;
        gathered.asked = gathered.asked - self.asked + asked;
        self.asked = asked;
        if calls.is_empty() && !std::mem::replace(&mut self.is_done, true) {
            gathered.statements -= 1;
        }
        calls
    }

    /// Whether any wait for the next statement.
    pub fn others_wait(&self) -> bool {
        !self.dequeuer.gathered().calls.is_empty()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut gathered = self.dequeuer.gathered();
        gathered.statements -= 1;
        gathered.asked -= self.asked;
        // The other turn, if there is one, takes them over.
        let unsent = if gathered.statements == 0 { std::mem::take(&mut gathered.calls) } else { VecDeque::new() };
        drop(gathered);
        for call in unsent {
            let _ = call.share.send(Err(Error::ended("a dequeue", false))); // the caller went away
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Receiver = oneshot::Receiver<Result<Batches>>;

    fn join(dequeuer: &Arc<Dequeuer>, n: usize, how: Dequeue) -> (Option<Turn>, Receiver) {
        let (share, answer) = oneshot::channel();
        (dequeuer.join(Call { n, how, share }), answer)
    }

    fn asked(calls: &[Call]) -> Vec<usize> {
        calls.iter().map(|call| call.n).collect()
    }

    #[test]
    fn calls_that_come_while_a_statement_is_on_its_way_share_the_next_in_their_order() {
        let dequeuer = Arc::default();
        let (turn, _first) = join(&dequeuer, 1, Dequeue::Take);
        let mut turn = turn.expect("none is on its way");
        assert_eq!(asked(&turn.next()), [1]);
        let others = [2, 3, 4].map(|n| join(&dequeuer, n, Dequeue::Take));
        assert!(others.iter().all(|(turn, _)| turn.is_none()));
        assert_eq!(asked(&turn.next()), [2, 3, 4]);
        assert!(turn.next().is_empty());
        assert!(join(&dequeuer, 5, Dequeue::Take).0.is_some(), "the turn is over");
    }

    #[test]
    fn takes_leases_and_leases_of_other_lengths_have_statements_of_their_own() {
        let dequeuer = Arc::default();
        let ways =
            [Dequeue::Take, Dequeue::Lease(None), Dequeue::Take, Dequeue::Lease(Some(5.0)), Dequeue::Lease(None)];
        let mut joined: Vec<_> = ways.iter().zip(1..).map(|(how, n)| join(&dequeuer, n, *how)).collect();
        let mut turn = joined[0].0.take().expect("none is on its way");
        assert_eq!([asked(&turn.next()), asked(&turn.next()), asked(&turn.next())], [vec![1, 3], vec![2, 5], vec![4]]);
    }

    #[test]
    fn a_statement_asks_for_a_page_at_most_and_small_calls_do_not_overtake_a_large_one() {
        let dequeuer = Arc::default();
        let mut joined: Vec<_> = [PAGE, 1, PAGE, 1].iter().map(|n| join(&dequeuer, *n, Dequeue::Take)).collect();
        let mut turn = joined[0].0.take().expect("none is on its way");
        let mut served = Vec::new();
        loop {
            let calls = turn.next();
            if calls.is_empty() {
                break;
            }
            served.push(asked(&calls));
        }
        assert_eq!(served, [vec![PAGE], vec![1], vec![PAGE], vec![1]]);
    }

    #[test]
    fn a_second_statement_starts_when_it_is_worth_one() {
        let dequeuer = Arc::default();
        let (turn, _first) = join(&dequeuer, 1, Dequeue::Take);
        let mut turn = turn.expect("none is on its way");
        turn.next();
        let (none, _second) = join(&dequeuer, WORTH_ANOTHER - 1, Dequeue::Take);
        assert!(none.is_none());
        let another = join(&dequeuer, 1, Dequeue::Take).0.expect("enough wait");
        assert!(join(&dequeuer, WORTH_ANOTHER, Dequeue::Take).0.is_none(), "two are on their way");
        drop((turn, another));
        assert!(join(&dequeuer, 1, Dequeue::Take).0.is_some(), "none is any more");
    }

    #[test]
    fn a_small_call_does_not_wait_for_a_large_one() {
        let dequeuer = Arc::default();
        let (turn, _large) = join(&dequeuer, WORTH_ANOTHER, Dequeue::Take);
        let mut turn = turn.expect("none is on its way");
        turn.next();
        let (other, _small) = join(&dequeuer, 1, Dequeue::Take);
        assert_eq!(asked(&other.expect("one beside it").next()), [1]);
        assert!(turn.next().is_empty());
        let left = dequeuer.gathered();
        assert_eq!((left.statements, left.asked), (0, 0), "what was counted is counted down");
    }

    #[test]
    fn nothing_is_dequeued_for_a_call_that_was_dropped() {
        let dequeuer = Arc::default();
        let (turn, _first) = join(&dequeuer, 1, Dequeue::Take);
        let mut turn = turn.expect("none is on its way");
        turn.next();
        drop(join(&dequeuer, 2, Dequeue::Take));
        let (_, _third) = join(&dequeuer, 3, Dequeue::Take);
        assert_eq!(asked(&turn.next()), [3]);
    }

    #[test]
    fn whoever_waits_for_a_turn_that_is_gone_is_answered_and_the_next_starts_another() {
        let dequeuer = Arc::default();
        let (turn, mut first) = join(&dequeuer, 1, Dequeue::Take);
        let mut turn = turn.expect("none is on its way");
        let underway = turn.next();
        let (_, mut second) = join(&dequeuer, 2, Dequeue::Take);
        drop((underway, turn));
        assert!(first.try_recv().is_err(), "its statement was under way");
        let unsent = second.try_recv().expect("answered").expect_err("not dequeued");
        assert!(!unsent.is_outcome_unknown(), "{unsent}");
        assert!(join(&dequeuer, 3, Dequeue::Take).0.is_some());
    }
}
