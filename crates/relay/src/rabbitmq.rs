//! RabbitMQ: to any exchange with publisher confirms, from streams; over AMQP 0-9-1.

mod connect;
mod refusal;
mod sink;
mod source;

pub use self::{sink::RabbitmqSink, source::RabbitmqSource};
