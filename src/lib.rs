#![doc = include_str!("../README.md")]

mod server_error;
mod error;
mod payload;
mod readable;
mod metadata;
mod trace;
mod message;
mod span;
mod metric;
pub mod observability;
mod floor;
mod sql;
mod target;
mod wire;
mod statement;
mod params;
mod rows;
mod db;
mod run;
mod transaction;
mod insert;
mod generic_client;
mod in_transaction;
mod migrate;
mod coalesce;
mod settle;
mod ownerless;
mod failure;
mod hooks;
mod retry_policy;
mod queue;
mod rights;
mod dequeue;
mod enqueue;
mod exactly_once;
mod at_most_once;
mod at_least_once;
mod dead;
mod archive;
mod stats;
mod wait;
mod hand_over;
mod consumer;
mod attempt;
mod worker;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;

pub use bytes::Bytes;
pub use postgres_types::Json;

pub use self::{
    archive::Archived,
    attempt::Attempt,
    consumer::{Consumer, Work},
    db::Db,
    dead::DeadLetter,
    error::{Error, Result},
    failure::Failure,
    generic_client::{AnyRow, Column, GenericClient},
    in_transaction::InTransaction,
    insert::Insert,
    message::{Lease, Message},
    metadata::{MAX_METADATA, Metadata},
    migrate::SCHEMA_VERSION,
    params::Params,
    payload::{Binary, MAX_PAYLOAD, Payload},
    queue::{Description, Queue, Settings},
    readable::Readable,
    retry_policy::RetryPolicy,
    rights::Right,
    rows::{Answered, FromRow, Rows},
    statement::Statement,
    stats::{Peeked, Stats},
    trace::TraceContext,
    transaction::{Pending, RowStream, Transaction},
    wait::Wait,
    wire::Values,
    worker::{Summary, Worker, Workers},
};
