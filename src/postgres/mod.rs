//! The PostgreSQL driver: connections, statements and transactions. The driver pipelines
//! statements, uses the binary format, and does not depend on queues.
//!
//! Each connection prepares a statement once, and concurrent callers share packets. [`Statement`]
//! is a statement with the types of its parameters and its result. [`Transaction`] sends statements
//! without waiting for their replies. [`Insert`] inserts many rows with one statement.

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
