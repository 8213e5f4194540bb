//! Carries messages from Trunkline's queues to brokers, at least once, and from brokers into queues, effectively once.
//!
//! Each broker is a cargo feature: `nats`, `redis`. Without any the crate has the relay itself, and the traits [`Sink`] and [`Source`] for brokers of your own.

mod address;
mod error;
mod payload;
mod progress;
mod metric;
mod template;
mod outgoing;
mod envelope;
mod sink;
mod source;
mod gather;
mod out;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;

pub use self::{
    envelope::Envelope,
    error::{Error, Result},
    out::{Relay, relay},
    outgoing::{ATTEMPT, ID, KEY, Outgoing},
    payload::Raw,
    progress::Progress,
    sink::{Outcome, Sink},
    source::{Incoming, Source},
    template::Template,
};
