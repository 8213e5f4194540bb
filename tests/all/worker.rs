//! The worker's promise: its function runs for every message, whatever the function does, and
//! whatever happens to the worker.

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
