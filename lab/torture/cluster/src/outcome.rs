//! A run's plan and its results.

use std::time::Duration;

use crate::{check::Verdict, fault::Fault, history::Stream};

pub struct Plan {
    pub failovers: usize,
    pub seed: u64,
    pub faults: Vec<Fault>,
    /// The options of the clients' connection strings, in addition to the hosts.
    pub options: String,
}

/// One fault and its consequences.
pub struct Failover {
    pub fault: Fault,
    pub from: String,
    pub to: String,
    /// The time from the fault until a server accepts writes. `None` if no server did so within two
    /// minutes.
    pub promoted: Option<Duration>,
    /// The time from the promotion to the first success afterwards, for each stream.
    pub went_on: Vec<Option<Duration>>,
    /// The time from the promotion until a commit is acknowledged to a plain connection that was
    /// opened immediately. No client can continue sooner.
    pub commits: Option<Duration>,
    /// The time from the promotion until a consumer is in the list of consumers that wait for a
    /// direct delivery. A consumer enters the list only if its listener works.
    pub hears: Option<Duration>,
    /// The longest time without a successful enqueue.
    pub outage: Duration,
    /// The time from the fault until all three nodes have returned to their roles.
    pub whole: Duration,
}

impl Failover {
    /// Returns the names of everything that did not continue in time.
    pub fn never(&self) -> Vec<&'static str> {
        if self.promoted.is_none() {
            return vec!["a promotion"];
        }
        let streams =
            Stream::ALL.iter().zip(&self.went_on).filter(|(_, time)| time.is_none()).map(|((_, name), _)| *name);
        streams.chain(self.hears.is_none().then_some("a listener that hears")).collect()
    }
}

pub struct Outcome {
    pub failovers: Vec<Failover>,
    pub verdict: Verdict,
    pub errors: Vec<(&'static str, bool, String, usize)>,
    pub lasted: Duration,
}
