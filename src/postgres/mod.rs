//! The driver: connections, statements and transactions, all of them pipelined, in the binary
//! format. It does not depend on queues.
//!
//! Statements are prepared once per connection, and concurrent callers share packets. [`Statement`]
//! is a statement with its types. [`Transaction`] is a pipeline that waits for a reply only when it
//! needs one. [`Insert`] inserts many rows with one statement.

pub(crate) mod array;
pub(crate) mod time;
pub(crate) mod json;
pub(crate) mod sql;
pub(crate) mod target;
pub(crate) mod wire;
pub(crate) mod statement;
pub(crate) mod params;
pub(crate) mod rows;
pub(crate) mod db;
pub(crate) mod hears;
pub(crate) mod run;
pub(crate) mod transaction;
pub(crate) mod transact;
pub(crate) mod insert;
pub(crate) mod generic_client;
pub(crate) mod in_transaction;
pub mod compat;

pub use self::{
    generic_client::{AnyRow, GenericClient},
    in_transaction::ForeignTransaction,
    insert::Insert,
    params::Params,
    rows::{Answered, FromRow, Rows},
    statement::Statement,
    transaction::{Pending, RowStream, Transaction},
    wire::Values,
};
