//! RabbitMQ, over AMQP 0-9-1: to any exchange with publisher confirms, and from streams.

mod connect;
mod refusal;
mod sink;
mod source;

pub use self::{sink::RabbitmqSink, source::RabbitmqSource};
