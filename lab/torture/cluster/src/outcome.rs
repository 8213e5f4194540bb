//! A run's plan, and what came of it.

use std::time::Duration;

use crate::{check::Verdict, fault::Fault, history::Stream};

/// What is to be done.
pub struct Plan {
    pub failovers: usize,
    pub seed: u64,
    pub faults: Vec<Fault>,
    /// Beyond the hosts: what the clients' connection strings say.
    pub options: String,
}

/// One fault and what came after it.
pub struct Failover {
    pub fault: Fault,
    pub from: String,
    pub to: String,
    /// From the fault to a server that takes writes; none came in two minutes.
    pub promoted: Option<Duration>,
    /// Of each stream, from the promotion to the first success after it.
    pub went_on: Vec<Option<Duration>>,
    /// From the promotion to the first commit that a plain connection, made at once, gets
    /// acknowledged: sooner, no client can go on.
    pub commits: Option<Duration>,
    /// From the promotion to a consumer that waits for a message inside a notification, so to one
    /// that hears.
    pub hears: Option<Duration>,
    /// Of an enqueue's caller: the longest time without a success.
    pub outage: Duration,
    /// From the fault to three nodes that are what they should be.
    pub whole: Duration,
}

impl Failover {
    /// What did not go on in the time that it had.
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
