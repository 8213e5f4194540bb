#![doc = include_str!("../README.md")]

mod error;
pub mod postgres;
mod queue;
mod schedule;
mod worker;
pub mod shards;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;

pub use bytes::Bytes;

pub use self::{
    error::{Error, Result},
    postgres::{db::Db, in_transaction::InTransaction, json::Json},
    queue::{
        admin::{
            description::Description,
            limits::Limits,
            migrate::SCHEMA_VERSION,
            rights::Right,
            settings::{Changes, Settings},
        },
        consumer::{Consumer, Messages, Work, offer::Offer},
        handle::Queue,
        message::{
            Lease, Message,
            dequeue::Dequeue,
            draft::{Draft, Due, IntoDraft},
            failure::Failure,
            metadata::{MAX_METADATA, Metadata},
            payload::{Binary, ColumnType, MAX_PAYLOAD, Payload},
            readable::Readable,
            trace::TraceContext,
            unique::{Enqueued, Unique},
        },
        observe::observability,
        testing,
        verbs::{
            archive::Archived,
            by_id::{Found, State},
            dead::DeadLetter,
            stats::{Peeked, Stats},
        },
        wait::Wait,
    },
    schedule::{Missed, Schedule, Scheduled},
    worker::{Summary, Worker, Workers, attempt::Attempt, retry_policy::RetryPolicy},
};
