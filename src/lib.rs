//! A durable message queue in PostgreSQL. A row is a batch of messages: concurrent calls share one
//! row and one commit, without a timer and without a setting.
//!
//! ```no_run
//! use trunkline::{Db, Settings, Wait};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let db = Db::connect("postgres://app@localhost/app").await?;
//! db.migrate().await?;
//! db.create_queue("mails", &Settings::of::<String>()).await?;
//! let mails = db.queue::<String>("mails").await?;
//!
//! mails.enqueue("ada@example.org".to_owned()).await?; // returns when the message is on disk
//!
//! let mut consumer = mails.consumer(Wait::Adaptive);
//! for message in consumer.lease(100).await? {
//!     println!("a mail to {}", message.payload);
//!     mails.ack([&message]).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`Db`] connects, migrates the schema, and creates and describes queues.
//! - [`Queue`] enqueues, dequeues and ends leases; [`Draft`] adds a delay, a key, a priority or
//!   metadata to a message.
//! - [`Consumer`] waits for messages, and takes them at most once, leases them at least once, or
//!   works on them exactly once in a transaction.
//! - [`Worker`] runs a handler for each message, with leases that it renews, retries and dead
//!   letters. [`Schedule`] enqueues by a cron expression.
//! - [`shards`] is a queue on several servers, [`postgres`] the driver, [`testing`] what tests of
//!   your code need, [`observability`] what metrics and traces there are.
//!
//! The [guide](https://github.com/trunkline/trunkline/blob/main/docs/README.md) explains guarantees,
//! operation and limits, and the [README](https://github.com/trunkline/trunkline) compares the
//! speed.

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

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
