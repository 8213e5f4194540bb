//! PostgreSQL's protocol, with pipelining, so that many callers can share one connection.
//!
//! A *group* is a series of statements that ends with one Sync. It is one implicit transaction and
//! has one reply. Callers append groups to the buffer of the connection. The driver writes all
//! groups that arrived while it was busy, so callers share writes. It reads and writes at the same
//! time, so that a full socket buffer cannot cause a deadlock.
//!
//! The driver passes replies to callers as bytes, and each caller decodes its own reply. If a
//! caller stops waiting, the driver still receives its reply.

#[cfg(unix)]
mod local;
mod stream;
mod socket;
mod login;
mod connect;
mod cancel;
mod failure;
mod frame;
mod soil;
mod bind;
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
mod asides;

use self::cached_statement::Descriptions;
pub use self::row::Values;
pub(crate) use self::{
    answer::Reply,
    asides::{Asides, notification},
    cached_statement::{CachedStatement, Signature},
    cancel::CancelKey,
    connect::{Connected, accept, connect},
    connection::Connection,
    failure::WireError,
    frame::{frames, frames_at, texts},
    group::{Group, Portal, Prepared, ReplyMode},
    inbox::WaitingPlace,
    incoming::{Arrived, Incoming, RowMessages},
    reply_limit::{Bound, InFlight, Load},
    row::{ColumnFacts, Columns, Row, Wrong, only},
    soil::{IN_CATALOG, returns_to_savepoint},
    stream::Stream,
};

/// The way in which callers use a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Use {
    /// Several callers share the connection, so no caller may leave session state behind.
    #[default]
    Common,
    /// One caller at a time uses the connection, and may leave a transaction open between groups.
    Alone,
}

#[cfg(any(test, fuzzing))]
mod fuzz;
#[cfg(any(test, fuzzing))]
pub(crate) use self::fuzz::server_says;

#[cfg(test)]
pub(crate) use self::connect::tests::{proxy, server};

#[cfg(test)]
mod tests;
