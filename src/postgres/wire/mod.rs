//! One connection, any number of callers: Postgres' protocol, pipelined.
//!
//! A *group* is the statements that one Sync ends: one implicit transaction, one reply. Callers put
//! groups into the connection's buffer; the driver writes whatever has gathered while it was busy,
//! so flushes are shared by themselves, and reads and writes at the same time, so that a full
//! socket buffer cannot deadlock. The bytes of an answer go to the caller as they came, and the
//! caller decodes them. A caller that leaves only drops a receiver: the driver still counts the
//! messages.

mod stream;
mod socket;
mod login;
mod connect;
mod failure;
mod frame;
mod soil;
mod cached_statement;
mod bound;
mod group;
mod row;
mod inbox;
mod answer;
mod incoming;
mod queued;
mod drive;
mod connection;
mod catalog;

use self::cached_statement::{CachedStatement, Descriptions};
pub use self::row::Values;
pub(crate) use self::{
    answer::Reply,
    bound::{Bound, InFlight},
    connection::Connection,
    failure::WireError,
    group::{Group, Portal, Prepared},
    inbox::WaitingPlace,
    incoming::Incoming,
    row::{Columns, Row, Wrong, only},
    soil::IN_CATALOG,
};

/// Who sends on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Use {
    /// Any number of callers: what one leaves behind would be another's.
    #[default]
    Common,
    /// One at a time, who may leave a transaction open between two groups.
    Alone,
}

#[cfg(any(test, fuzzing))]
mod fuzz;
#[cfg(any(test, fuzzing))]
pub(crate) use self::fuzz::server_says;

#[cfg(test)]
mod tests;
