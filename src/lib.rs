#![doc = include_str!("../README.md")]

mod server_error;
mod error;
mod message;
mod payload;
mod sql;
mod target;
mod wire;
mod db;
mod migrate;
mod floor;
mod coalesce;
mod settle;
mod failure;
mod retry_policy;
mod queue;
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
    message::{Lease, Message},
    migrate::SCHEMA_VERSION,
    payload::{Binary, MAX_PAYLOAD, Payload},
    queue::{Description, Queue, Settings},
    retry_policy::RetryPolicy,
    stats::{Peeked, Stats},
    wait::Wait,
    worker::{Summary, Worker, Workers},
};
