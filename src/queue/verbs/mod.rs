//! The verbs of a queue, one file for each, with its whole exchange with the server.

mod lane_of;
pub(crate) mod dequeue;
mod wait;
mod enqueue;
mod columns;
mod enqueue_in;
mod take_in;
mod take;
mod ack;
mod ack_and_lease;
pub(crate) mod lease;
pub(crate) mod dead;
pub(crate) mod archive;
pub(crate) mod by_id;
mod change;
pub(crate) mod stats;
pub(super) mod direct;
