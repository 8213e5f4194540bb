//! The ends of leases, gathered: calls that arrive while a statement is on its way share the next
//! one.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::{
    error::{Error, Kind, Result},
    postgres::wire::Row,
    queue::{
        message::{Lease, Ranges, Settled, reason::in_ascii},
        observe::metric::End,
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
    /// Requests, by number, and the ids whose leases an earlier one of them ends: for them the
    /// lease is lost.
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

/// The turn to settle gathered requests. However it ends, by a panic or with its runtime, no caller
/// waits for it any longer: the next caller starts another.
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

    pub fn others_wait(&self) -> bool {
        !self.settler.state().requests.is_empty()
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

    /// Whether it stores reasons that have characters beyond ASCII.
    pub fn is_beyond_ascii(&self) -> bool {
        self.errors.iter().any(|error| !error.is_ascii())
    }

    /// Puts its reasons in ASCII, which every server's encoding has.
    pub fn put_in_ascii(&mut self) {
        for error in &mut self.errors {
            *error = in_ascii(error);
        }
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

/// Which leases a statement did not settle: those that are not in the set, if there is one. Without
/// it all were settled.
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

pub(crate) fn lost_or_ok(queue: &str, ids: Vec<i64>) -> Result<()> {
    if ids.is_empty() { Ok(()) } else { Err(Error::new(Kind::LeaseLost { queue: queue.to_owned(), ids })) }
}

#[cfg(test)]
mod tests;
