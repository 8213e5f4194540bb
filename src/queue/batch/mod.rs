//! Lets calls share statements: the batcher, and the kinds of calls that use it.

pub(super) mod batcher;
pub(super) mod coalesce;
pub(crate) mod dequeues;
pub(crate) mod notify;
pub(super) mod settle;
pub(super) mod ack_and_lease;
pub(crate) mod unclaimed;

/// The batchers of a queue for calls that need no configuration.
#[derive(Default)]
pub(crate) struct Batchers {
    pub settle: settle::SettleBatcher,
    pub extend: settle::SettleBatcher,
    pub dequeue: dequeues::DequeueBatcher,
    pub ack_and_lease: ack_and_lease::AckAndLeaseBatcher,
}
