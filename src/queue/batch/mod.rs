//! Lets calls share statements: the batcher, and the kinds of calls that use it.

pub(super) mod batcher;
pub(super) mod coalesce;
pub(crate) mod dequeues;
mod notify;
pub(super) mod settle;
pub(super) mod unclaimed;
