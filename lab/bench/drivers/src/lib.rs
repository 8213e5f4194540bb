//! Compares ways of driving Postgres: they run the same workloads, in one process, on one server,
//! in turns.

mod person;
mod work;
mod workloads;
pub mod texts;
mod driver;
mod place;
mod proxy;
mod ours;
mod theirs;
mod ways;
mod measured;
mod cpu;
mod server;
mod turns;
mod queue;
mod report;
mod program;

#[cfg(test)]
mod tests;

pub use self::{
    driver::{Doing, Driver, Opening, Way},
    person::Person,
    place::Place,
    program::main,
    ways::ways,
    work::{Done, Kind, Work},
};

/// Any error. It is printed, and it ends the run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
