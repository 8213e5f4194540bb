//! The ends of leases, gathered: calls that arrive while a statement is on its way share the next one.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::{
    error::{Error, Kind, Result},
    postgres::wire::Row,
    queue::{
        message::{Lease, Ranges, Settled},
        metric::End,
    },
};

/// How a lease ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ending {
    Ack,
    Archive,
    /// As if it had never been leased.
    Release,
    /// Seconds until it is due again, and the error.
    Retry(f64, String),
    /// Dead at once, and why.
    Bury(String),
    /// Seconds from now.
    Extend(f64),
    /// As `Retry`, where a rollback left the message without a lease.
    Charge(f64, String),
}

impl Ending {
    /// As metrics and spans have it; `None` where no lease ends.
    pub fn end(&self) -> Option<End> {
        match self {
            Self::Ack => Some(End::Done),
            Self::Archive => Some(End::Archived),
            Self::Release => Some(End::Released),
            Self::Retry(..) | Self::Charge(..) => Some(End::Retried),
            Self::Bury(_) => Some(End::Dead),
            Self::Extend(_) => None,
        }
    }

    /// Whether both can be said by one statement.
    fn shares_statement(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Extend(one), Self::Extend(two)) => one.to_bits() == two.to_bits(),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// One call: some leases, ended alike.
pub(crate) struct Request {
    pub ending: Ending,
    pub leases: Vec<Lease>,
    pub done: oneshot::Sender<Result<()>>,
}

/// Requests that one statement answers.
pub(crate) struct Settlement {
    pub ending: Ending,
    requests: Vec<Request>,
    pub ranges: Ranges,
    pub delays: Vec<f64>,
    pub errors: Vec<String>,
    /// Requests, by number, and the ids whose leases an earlier one of them ends: for them the lease is lost.
    ended_before: Vec<(usize, i64)>,
}

impl Settled {
    /// From the row of a statement that ends leases.
    pub fn of(row: &Row) -> Result<Self> {
        Self::checked(row.read(0)?, row.read(1)?, row.read(2)?)
    }
}

/// The calls of one queue that wait for a statement.
#[derive(Default)]
pub(crate) struct Settler(Mutex<Requests>);

#[derive(Default)]
struct Requests {
    requests: Vec<Request>,
    is_settling: bool,
}

impl Settler {
    fn state(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If no settlement is on its way, returns the turn that the caller has to start.
    pub fn join(self: &Arc<Self>, request: Request) -> Option<Settling> {
        let mut state = self.state();
        state.requests.push(request);
        let starts = !std::mem::replace(&mut state.is_settling, true);
        starts.then(|| Settling { settler: self.clone(), is_done: false })
    }
}

/// The turn to settle gathered requests. However it ends, by a panic or with its runtime, no caller waits for it any longer: the next
/// caller starts another.
pub(crate) struct Settling {
    settler: Arc<Settler>,
    is_done: bool,
}

impl Settling {
    /// All that has gathered, a settlement a statement; nothing ends the turn.
    pub fn next(&mut self) -> Vec<Settlement> {
        let requests = {
            let mut state = self.settler.state();
            if state.requests.is_empty() && !std::mem::replace(&mut self.is_done, true) {
                state.is_settling = false;
            }
            std::mem::take(&mut state.requests)
        };
        let mut groups: Vec<Vec<Request>> = Vec::new();
        for request in requests {
            match groups.iter_mut().find(|group| group[0].ending.shares_statement(&request.ending)) {
                Some(group) => group.push(request),
                None => groups.push(vec![request]),
            }
        }
        groups.into_iter().map(Settlement::of).collect()
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let unsent = {
            let mut state = self.settler.state();
            state.is_settling = false;
            std::mem::take(&mut state.requests)
        };
        for request in unsent {
            let _ = request.done.send(Err(Error::ended(ENDING, false))); // the caller went away
        }
    }
}

/// The name of a call that ends leases, for its error.
pub(crate) const ENDING: &str = "the end of a lease";

impl Settlement {
    /// The requests share a statement, and there is at least one.
    fn of(requests: Vec<Request>) -> Self {
        let ending = requests[0].ending.clone();
        let mut leases: Vec<(Lease, usize)> = requests
            .iter()
            .enumerate()
            .flat_map(|(nr, request)| request.leases.iter().map(move |lease| (*lease, nr)))
            .collect();
        leases.sort_unstable();
        let mut ended_before = Vec::new();
        leases.dedup_by(|(again, nr), (lease, first)| {
            let is_again = again == lease;
            // A lease may be extended twice. It ends once, by the call that came first.
            if is_again && nr != first && !matches!(ending, Ending::Extend(_)) {
                ended_before.push((*nr, again.id));
            }
            is_again
        });
        ended_before.sort_unstable();
        let (leases, askers): (Vec<Lease>, Vec<usize>) = leases.into_iter().unzip();
        let ranges = Ranges::of(&leases, |one, two| {
            askers[one] == askers[two] || requests[askers[one]].ending == requests[askers[two]].ending
        });
        let mut settlement =
            Self { ending, requests: Vec::new(), ranges, delays: Vec::new(), errors: Vec::new(), ended_before };
        let mut at = 0;
        for size in &settlement.ranges.sizes {
            match &requests[askers[at]].ending {
                Ending::Retry(delay, error) | Ending::Charge(delay, error) => {
                    settlement.delays.push(*delay);
                    settlement.errors.push(error.clone());
                }
                Ending::Bury(error) => settlement.errors.push(error.clone()),
                Ending::Ack | Ending::Archive | Ending::Release | Ending::Extend(_) => break,
            }
            at += *size as usize;
        }
        settlement.requests = requests;
        settlement
    }

    /// One settlement for each call, where a statement for all of them was refused.
    pub fn apart(self) -> Vec<Self> {
        self.requests.into_iter().map(|request| Self::of(vec![request])).collect()
    }

    /// Calls that know nothing of each other share it.
    pub fn calls(&self) -> usize {
        self.requests.len()
    }

    /// Tells every caller: its leases are among the settled ranges, or lost.
    pub fn answer(self, queue: &str, outcome: Result<Vec<Settled>>) {
        match outcome {
            Err(error) => {
                for request in self.requests {
                    let _ = request.done.send(Err(error.clone())); // the caller went away
                }
            }
            Ok(settled) => {
                let lost = Lost::of(self.ranges.messages(), settled);
                let mut ended_before = self.ended_before.into_iter().peekable();
                for (nr, request) in self.requests.into_iter().enumerate() {
                    let mut ids = lost.among(&request.leases);
                    let unsettled = ids.len();
                    while let Some((_, id)) = ended_before.next_if(|(by, _)| *by == nr) {
                        ids.push(id);
                    }
                    if ids.len() > unsettled {
                        ids.sort_unstable();
                        ids.dedup();
                    }
                    let _ = request.done.send(lost_or_ok(queue, ids)); // the caller went away
                }
            }
        }
    }
}

/// Which leases a statement did not settle: those that are not in the set, if there is one. Without it all were settled.
pub(crate) struct Lost(Option<HashSet<Lease>>);

impl Lost {
    /// A statement was asked for so many, and settled these.
    pub fn of(asked: usize, settled: Vec<Settled>) -> Self {
        let complete = Settled::messages(settled.iter().copied()) == asked; // what nearly always is so
        Self((!complete).then(|| settled.into_iter().flat_map(Settled::leases).collect()))
    }

    /// The ids of the lost ones.
    pub fn among(&self, leases: &[Lease]) -> Vec<i64> {
        let Some(settled) = &self.0 else { return Vec::new() };
        leases.iter().filter(|lease| !settled.contains(lease)).map(|lease| lease.id).collect()
    }
}

/// A reason as Postgres can store it: it has no NUL in text.
pub(crate) fn as_text(reason: impl Into<String>) -> String {
    reason.into().replace('\0', "\u{fffd}")
}

pub(crate) fn lost_or_ok(queue: &str, ids: Vec<i64>) -> Result<()> {
    if ids.is_empty() { Ok(()) } else { Err(Error::new(Kind::LeaseLost { queue: queue.to_owned(), ids })) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(ending: Ending, ids: &[i64]) -> (Request, oneshot::Receiver<Result<()>>) {
        let (done, answer) = oneshot::channel();
        (Request { ending, leases: ids.iter().map(|id| Lease { id: *id, attempt: 1 }).collect(), done }, answer)
    }

    #[test]
    fn calls_share_a_statement_and_each_gets_its_own_answer() {
        let settler = Arc::new(Settler::default());
        let (one, mut first) = request(Ending::Ack, &[1, 2, 3]);
        let (two, mut second) = request(Ending::Ack, &[4, 9]);
        let mut settling = settler.join(one).expect("nobody settles yet");
        assert!(settler.join(two).is_none());
        let mut settlements = settling.next();
        assert_eq!(settlements.len(), 1);
        let settlement = settlements.remove(0);
        assert_eq!((&*settlement.ranges.ids, &*settlement.ranges.sizes), (&[1, 9][..], &[4, 1][..]));
        settlement.answer("q", Ok(vec![Settled { id: 1, size: 4, attempt: 1 }]));
        assert!(first.try_recv().expect("answered").is_ok());
        assert_eq!(second.try_recv().expect("answered").expect_err("9 is lost").lost_ids(), [9]);
        assert!(settling.next().is_empty());
        drop(settling);
        assert!(settler.join(request(Ending::Ack, &[7]).0).is_some(), "the turn is over");
    }

    #[test]
    fn a_lease_that_two_calls_end_is_ended_by_the_first_and_lost_to_the_other() {
        let settler = Arc::new(Settler::default());
        let (one, mut first) = request(Ending::Ack, &[1, 2, 2]);
        let (two, mut second) = request(Ending::Ack, &[3, 2]);
        let mut settling = settler.join(one).expect("nobody settles yet");
        settler.join(two);
        let settlement = settling.next().remove(0);
        settlement.answer("q", Ok(vec![Settled { id: 1, size: 3, attempt: 1 }]));
        assert!(first.try_recv().expect("answered").is_ok());
        assert_eq!(second.try_recv().expect("answered").expect_err("2 was ended").lost_ids(), [2]);
    }

    #[test]
    fn a_lease_may_be_extended_by_two_calls() {
        let settler = Arc::new(Settler::default());
        let (one, mut first) = request(Ending::Extend(9.0), &[1]);
        let (two, mut second) = request(Ending::Extend(9.0), &[1]);
        let mut settling = settler.join(one).expect("nobody settles yet");
        settler.join(two);
        settling.next().remove(0).answer("q", Ok(vec![Settled { id: 1, size: 1, attempt: 1 }]));
        assert!(first.try_recv().expect("answered").is_ok() && second.try_recv().expect("answered").is_ok());
    }

    #[test]
    fn whoever_waits_for_a_settler_that_is_gone_is_answered_and_the_next_starts_another() {
        let settler = Arc::new(Settler::default());
        let (one, mut first) = request(Ending::Ack, &[1]);
        let (two, mut second) = request(Ending::Ack, &[2]);
        let mut settling = settler.join(one).expect("nobody settles yet");
        let underway = settling.next();
        assert!(settler.join(two).is_none());
        drop((underway, settling));
        assert!(first.try_recv().is_err(), "nobody will answer it, which its caller is told");
        let unsent = second.try_recv().expect("answered").expect_err("not settled");
        assert!(!unsent.is_outcome_unknown(), "{unsent}");
        assert!(settler.join(request(Ending::Ack, &[3]).0).is_some());
    }

    #[test]
    fn of_a_shared_statement_each_call_can_be_settled_alone() {
        let settler = Arc::new(Settler::default());
        let mut settling = settler.join(request(Ending::Bury("a".into()), &[1, 2]).0).expect("nobody settles yet");
        settler.join(request(Ending::Bury("b".into()), &[3]).0);
        let shared = settling.next().remove(0);
        assert_eq!(shared.calls(), 2);
        let apart: Vec<_> = shared.apart().into_iter().map(|alone| (alone.ranges.ids, alone.errors)).collect();
        assert_eq!(apart, [(vec![1], vec!["a".to_owned()]), (vec![3], vec!["b".to_owned()])]);
    }

    #[test]
    fn neighbours_with_other_errors_stay_apart() {
        let settler = Arc::new(Settler::default());
        let mut settling =
            settler.join(request(Ending::Retry(1.0, "a".into()), &[1, 2]).0).expect("nobody settles yet");
        settler.join(request(Ending::Retry(2.0, "b".into()), &[3]).0);
        let settlement = settling.next().remove(0);
        assert_eq!(settlement.ranges.ids, [1, 3]);
        assert_eq!(settlement.delays, [1.0, 2.0]);
        assert_eq!(settlement.errors, ["a", "b"]);
    }
}
