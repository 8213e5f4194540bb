//! Carries messages from Trunkline's queues to brokers, at least once, and from brokers into
//! queues, effectively once.
//!
//! Each broker is a cargo feature: `kafka`, `nats`, `rabbitmq`, `redis`. Without any feature, the
//! crate contains the relay itself, and the traits [`Sink`] and [`Source`] for other brokers.

mod address;
mod error;
mod sql;
mod payload;
mod progress;
mod metric;
mod template;
mod outgoing;
mod header;
mod envelope;
mod sink;
mod source;
mod gather;
mod report;
mod out;
mod inward;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg_attr(
    not(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis")),
    allow(
        unreachable_code,
        unused_variables,
        unused_imports,
        clippy::unused_async,
        reason = "there is nothing to open"
    )
)]
mod open;

pub use self::{
    address::Address,
    envelope::Envelope,
    error::{Error, Result},
    inward::{Inward, relay_from},
    open::{BROKERS, sink, source},
    out::{Relay, relay},
    outgoing::{ATTEMPT, ID, KEY, Outgoing},
    payload::Raw,
    progress::Progress,
    sink::{Outcome, Sink},
    source::{Incoming, Source},
    template::Template,
};

/// Returns a random number for names and for jitter, not for secrets.
fn chance() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// Returns a random number from 0 to less than 1, for jitter, so that relays that fail together do
/// not retry together.
fn spread() -> f64 {
    (chance() >> 11) as f64 / (1_u64 << 53) as f64
}
