//! The worker, which runs a function for every message of a queue.

pub(crate) mod retry_policy;
mod renewal_barrier;
pub(crate) mod attempt;
mod tally;
mod outage;
mod ahead;
mod hands;
mod handler;
mod groups;
mod held;
mod holder;
mod calls;
mod report;
mod station;
mod lanes;
mod hand;
mod apart;
mod settle;
mod release;
mod exchange;
mod heartbeat;
mod close;
mod tell;
mod life;
mod builder;
pub(crate) mod several;

pub use self::{builder::Worker, several::Workers, tally::Summary};
