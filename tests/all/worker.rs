//! What a worker promises: a function is run for every message, whatever it does and whatever happens to it.

mod outcomes;
mod leases;
mod endings;
mod several;
mod outage;
mod processes;
mod transaction;
