//! Lets calls that end leases share statements. Calls that arrive while a statement runs are
//! combined in the next statement.

use std::{collections::HashSet, sync::Arc};

use tokio::sync::oneshot;

use super::batcher::{Batcher, Permit, Running, Waiting};
use crate::{
    error::{Error, Kind, Result},
    postgres::wire::Row,
    queue::{
        message::{Lease, Ranges, Settled, reason::in_ascii},
        observe::metric::End,
    },
};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ending {
    Ack,
    Archive,
    /// Undoes the lease, without counting the attempt.
    Release,
    /// Retries after this number of seconds, with this error.
    Retry(f64, String),
    /// Makes the message a dead letter for this reason.
    Bury(String),
    /// Extends the lease to this number of seconds from now.
    Extend(f64),
    /// Counts an attempt of a message whose lease was undone by a rollback, and retries it after
    /// the delay. Without a delay, the message becomes a dead letter.
    Charge(Option<f64>, String),
}

impl Ending {
    /// Returns the name for metrics and spans, or `None` if no lease ends.
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

    /// Returns true if one statement can perform both endings.
    fn shares_statement(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Extend(one), Self::Extend(two)) => one.to_bits() == two.to_bits(),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// The leases of a call. All of them end in the same way.
pub(crate) struct SettleRequest {
    pub ending: Ending,
    pub leases: Vec<Lease>,
    /// Sends the caller the number of messages that became dead letters because their attempts were
    /// exhausted.
    pub done: oneshot::Sender<Result<usize>>,
}

/// Requests that one statement answers.
pub(crate) struct Settlement {
    pub ending: Ending,
    requests: Vec<SettleRequest>,
    pub ranges: Ranges,
    pub delays: Vec<Option<f64>>,
    pub errors: Vec<String>,
    /// Pairs of a request's number and a message's id. An earlier request ends the lease of that
    /// message, so this request has lost it.
    ended_before: Vec<(usize, i64)>,
}

impl Settled {
    /// Reads a row of a statement that ends leases. Statements that can make messages dead letters
    /// return one more column.
    pub fn of(row: &Row) -> Result<Self> {
        let settled = Self::checked(row.read(0)?, row.read(1)?, row.read(2)?)?;
        let dead = row.columns().len() > 3 && row.read(3)?;
        Ok(Self { dead, ..settled })
    }

    /// Returns the messages that became dead letters.
    pub fn dead(all: &[Self]) -> impl Iterator<Item = Self> {
        all.iter().copied().filter(|settled| settled.dead)
    }
}

/// The requests of one queue that wait for a statement.
#[derive(Default)]
pub(crate) struct Unsettled(Vec<SettleRequest>);

pub(crate) type SettleBatcher = Arc<Batcher<Unsettled>>;
pub(crate) type SettlePermit = Permit<Unsettled>;

impl Unsettled {
    pub fn add(&mut self, request: SettleRequest) {
        self.0.push(request);
    }
}

impl Waiting for Unsettled {
    type Call = SettleRequest;
    /// The settlements to run, one statement each.
    type Work = Vec<Settlement>;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all waiting requests.
    fn next(&mut self, _: &Running) -> Option<(Vec<Settlement>, usize)> {
        let mut groups: Vec<Vec<SettleRequest>> = Vec::new();
        for request in self.0.drain(..) {
            match groups.iter_mut().find(|group| group[0].ending.shares_statement(&request.ending)) {
                Some(group) => group.push(request),
                None => groups.push(vec![request]),
            }
        }
        let calls = groups.iter().map(Vec::len).sum();
        (calls > 0).then(|| (groups.into_iter().map(Settlement::of).collect(), calls))
    }

    fn abandoned(&mut self) -> Vec<SettleRequest> {
        std::mem::take(&mut self.0)
    }

    fn fail(request: SettleRequest) {
        let _ = request.done.send(Err(Error::ended(ENDING, false))); // the caller may have stopped waiting
    }
}

/// The call's name in error messages.
pub(crate) const ENDING: &str = "the end of a lease";

impl Settlement {
    /// Combines the requests, at least one, into one statement.
    fn of(requests: Vec<SettleRequest>) -> Self {
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
            // Refuses later requests that end the same lease. They may extend it again.
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
                Ending::Retry(delay, error) => {
                    settlement.delays.push(Some(*delay));
                    settlement.errors.push(error.clone());
                }
                Ending::Charge(delay, error) => {
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

    /// Splits a refused settlement into one settlement per call.
    pub fn apart(self) -> Vec<Self> {
        self.requests.into_iter().map(|request| Self::of(vec![request])).collect()
    }

    pub fn is_beyond_ascii(&self) -> bool {
        self.errors.iter().any(|error| !error.is_ascii())
    }

    /// Rewrites the reasons in ASCII, which every server encoding contains.
    pub fn put_in_ascii(&mut self) {
        for error in &mut self.errors {
            *error = in_ascii(error);
        }
    }

    pub fn calls(&self) -> usize {
        self.requests.len()
    }

    /// Answers every caller. A caller's leases are either among the settled ranges or lost.
    pub fn answer(self, queue: &str, outcome: Result<Vec<Settled>>) {
        match outcome {
            Err(error) => {
                for request in self.requests {
                    let _ = request.done.send(Err(error.clone())); // the caller may have stopped waiting
                }
            }
            Ok(settled) => {
                let dead: HashSet<Lease> = Settled::dead(&settled).flat_map(Settled::leases).collect();
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
                    let died = || request.leases.iter().filter(|lease| dead.contains(lease)).count();
                    let answer = lost_or_ok(queue, ids).map(|()| if dead.is_empty() { 0 } else { died() });
                    let _ = request.done.send(answer); // the caller may have stopped waiting
                }
            }
        }
    }
}

/// The leases that a statement did not settle: all leases outside the set. `None` if it settled
/// every lease.
pub(crate) struct Lost(Option<HashSet<Lease>>);

impl Lost {
    /// Compares the settled leases with the number of leases in the statement.
    pub fn of(asked: usize, settled: Vec<Settled>) -> Self {
        // nearly always true, so the leases are rarely collected
        let complete = Settled::messages(settled.iter().copied()) == asked;
        Self((!complete).then(|| settled.into_iter().flat_map(Settled::leases).collect()))
    }

    /// Returns the ids of the lost leases.
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
