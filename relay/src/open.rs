//! The broker that an address names.

use std::sync::Arc;

use crate::{
    address::Address,
    error::{Error, Result},
    sink::Sink,
    source::Source,
    template::Template,
};

/// Brokers that this build knows.
pub const BROKERS: &[&str] = &[
    #[cfg(feature = "kafka")]
    "kafka",
    #[cfg(feature = "nats")]
    "nats",
    #[cfg(feature = "rabbitmq")]
    "rabbitmq",
    #[cfg(feature = "redis")]
    "redis",
];

/// The sink of an address, and the route in its path: `nats://host/orders.{metadata.tenant}`.
///
/// # Errors
/// The address or the route makes no sense, this build knows no such broker, or it cannot be reached now.
pub async fn sink(address: &str) -> Result<(Arc<dyn Sink>, Template)> {
    let address: Address = address.parse()?;
    let route: Template = address.path.parse()?;
    let sink: Arc<dyn Sink> = match &*address.scheme {
        #[cfg(feature = "kafka")]
        "kafka" => Arc::new(crate::kafka::KafkaSink::open(&address).await?),
        #[cfg(feature = "rabbitmq")]
        "rabbitmq" | "rabbitmqs" | "amqp" | "amqps" => Arc::new(crate::rabbitmq::RabbitmqSink::open(&address).await?),
        #[cfg(feature = "nats")]
        "nats" | "tls" => Arc::new(crate::nats::NatsSink::open(&address).await?),
        #[cfg(feature = "redis")]
        "redis" | "rediss" => Arc::new(crate::redis::RedisSink::open(&address).await?),
        other => return Err(unknown(other)),
    };
    Ok((sink, route))
}

/// The source of an address: `nats://host/STREAM`.
///
/// # Errors
/// As [`sink`].
pub async fn source(address: &str) -> Result<Box<dyn Source>> {
    let address: Address = address.parse()?;
    let source: Box<dyn Source> = match &*address.scheme {
        #[cfg(feature = "kafka")]
        "kafka" => Box::new(crate::kafka::KafkaSource::open(&address).await?),
        #[cfg(feature = "rabbitmq")]
        "rabbitmq" | "rabbitmqs" | "amqp" | "amqps" => Box::new(crate::rabbitmq::RabbitmqSource::open(&address).await?),
        #[cfg(feature = "nats")]
        "nats" | "tls" => Box::new(crate::nats::NatsSource::open(&address).await?),
        #[cfg(feature = "redis")]
        "redis" | "rediss" => Box::new(crate::redis::RedisSource::open(&address).await?),
        other => return Err(unknown(other)),
    };
    Ok(source)
}

fn unknown(scheme: &str) -> Error {
    let known = if BROKERS.is_empty() { "none".to_owned() } else { BROKERS.join(", ") };
    Error::usage(format!(
        "this build knows no broker {scheme:?}, only: {known}; brokers are cargo features: nats, redis, kafka, rabbitmq"
    ))
}
