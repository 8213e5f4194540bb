//! NATS `JetStream`.

mod acks;
mod connect;
mod sink;
mod source;

pub use self::{sink::NatsSink, source::NatsSource};
