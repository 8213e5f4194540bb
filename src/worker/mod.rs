//! The worker: a function, run for every message of a queue.

pub(crate) mod retry_policy;
pub(crate) mod attempt;
mod tally;
mod outage;
mod ahead;
mod hands;
mod handler;
mod groups;
mod held;
mod line;
mod hand;
mod settle;
mod keep;
mod close;
mod life;
mod builder;
mod several;

pub use self::{builder::Worker, several::Workers, tally::Summary};
