//! Postgres' protocol, pipelined: one connection for any number of callers.
//!
//! A *group* is the statements that one Sync ends: one implicit transaction with one reply. Callers
//! append groups to the connection's buffer. The driver writes the groups that have been added
//! while it was busy, so that callers share flushes. It reads and writes at the same time, so that
//! a full socket buffer cannot deadlock.
//!
//! The bytes of a reply go to the caller undecoded, and the caller decodes them. A caller that
//! stops waiting drops only a receiver: the driver still counts the messages.

mod stream;
mod socket;
mod login;
mod connect;
mod failure;
mod frame;
mod soil;
mod cached_statement;
mod reply_limit;
mod group;
mod row;
mod inbox;
mod answer;
mod incoming;
mod queued;
mod drive;
mod connection;
mod catalog;
mod copying;

use self::cached_statement::Descriptions;
pub use self::row::Values;
pub(crate) use self::{
    answer::Reply,
    cached_statement::{CachedStatement, Signature},
    connect::{Connected, Peer, accept, connect, reopen},
    connection::Connection,
    copying::Asides,
    failure::WireError,
    frame::{frames, frames_at},
    group::{Group, Portal, Prepared, ReplyMode},
    inbox::WaitingPlace,
    incoming::{Arrived, Incoming},
    reply_limit::{Bound, InFlight},
    row::{ColumnFacts, Columns, Row, Wrong, only},
    soil::IN_CATALOG,
    stream::Stream,
};

/// The way in which callers use a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Use {
    /// Any number of callers share the connection, so none may leave state behind.
    #[default]
    Common,
    /// One caller at a time uses the connection. It may leave a transaction open between two
    /// groups.
    Alone,
}

#[cfg(any(test, fuzzing))]
mod fuzz;
#[cfg(any(test, fuzzing))]
pub(crate) use self::fuzz::server_says;

#[cfg(test)]
mod tests;
