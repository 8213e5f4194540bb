//! The worker's promise: it runs its function for every message, no matter what the function does
//! or what happens to the worker.

mod outcomes;
mod panics;
mod leases;
mod locked;
mod drain;
mod endings;
mod several;
mod hooks;
pub mod outage;
mod processes;
mod transaction;
mod reports;
