//! RabbitMQ, over AMQP 0-9-1. The relay publishes to any exchange, with publisher confirms, and
//! reads from streams.

mod confirms;
mod connect;
mod delivered;
mod refusal;
mod search;
mod sink;
mod source;

pub use self::{sink::RabbitmqSink, source::RabbitmqSource};
