#![doc = include_str!("../README.md")]

mod error;
pub mod postgres;
mod queue;
mod schedule;
mod worker;
mod stripes;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;

pub use bytes::Bytes;

pub use self::{
    error::{Error, Result},
    postgres::{db::Db, in_transaction::InTransaction, json::Json},
    queue::{
        archive::Archived,
        by_id::{Found, State},
        consumer::{Consumer, Messages, Work},
        dead::DeadLetter,
        draft::{Draft, IntoDraft},
        failure::Failure,
        handle::Queue,
        limits::Limits,
        message::{Lease, Message},
        metadata::{MAX_METADATA, Metadata},
        migrate::SCHEMA_VERSION,
        observability,
        offer::Offer,
        payload::{Binary, ColumnType, MAX_PAYLOAD, Payload},
        readable::Readable,
        rights::Right,
        settings::{Changes, Description, Settings},
        stats::{Peeked, Stats},
        testing,
        trace::TraceContext,
        unique::{Enqueued, Unique},
        wait::Wait,
    },
    schedule::{Missed, Schedule, Scheduled},
    stripes::{
        choose::Spread,
        consumer::StripedConsumer,
        id::{StripeId, Striped, StripedId},
        left::Left,
        queue::StripedQueue,
        set::{StripeState, Stripes},
        stream::StripedMessages,
        verbs::StripedStats,
        worker::StripedWorker,
    },
    worker::{Summary, Worker, Workers, attempt::Attempt, retry_policy::RetryPolicy},
};
