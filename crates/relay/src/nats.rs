//! NATS `JetStream`.

mod acks;
mod connect;
mod sink;
mod stored;
mod source;

pub use self::{sink::NatsSink, source::NatsSource};
