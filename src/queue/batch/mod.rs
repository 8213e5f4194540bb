//! Calls that share statements: one batcher, and the four kinds of calls that wait in it.

pub(super) mod batcher;
pub(super) mod coalesce;
pub(crate) mod dequeues;
mod notify;
pub(super) mod settle;
pub(super) mod unclaimed;
