//! NATS JetStream.

mod connect;
mod sink;

pub use self::{connect::connect, sink::NatsSink};
