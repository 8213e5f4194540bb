//! Compares ways of driving Postgres. They take turns at the same workloads, in one process and on
//! one server.

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

/// Any error. The program prints it and exits.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
