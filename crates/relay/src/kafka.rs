//! Kafka, and brokers that support its protocol: topics, with `acks=all` and an idempotent
//! producer, through librdkafka.

mod address;
mod heard;
mod refusal;
mod sink;
mod source;

pub use self::{sink::KafkaSink, source::KafkaSource};
