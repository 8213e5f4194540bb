//! Postgres's protocol, pipelined: any number of callers share one connection.
//!
//! A *group* consists of the statements that one Sync ends. It is one implicit transaction with one
//! reply. Callers append groups to the connection's buffer. The driver writes all groups that were
//! added while it was busy, so callers share flushes. It reads and writes at the same time, so that
//! a full socket buffer cannot cause a deadlock.
//!
//! The caller decodes the bytes of a reply, which it receives undecoded. A caller that stops
//! waiting drops only a receiver: the driver still counts the messages.

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
    /// Any number of callers share the connection, so no caller may leave state behind.
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
