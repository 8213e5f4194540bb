//! What a worker promises: a function is run for every message, whatever it does and whatever
//! happens to it.

mod outcomes;
mod panics;
mod leases;
mod drain;
mod endings;
mod several;
mod hooks;
pub mod outage;
mod processes;
mod transaction;
mod reports;
