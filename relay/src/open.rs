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

/// Schemes of their addresses.
const SCHEMES: &[&str] = &[
    #[cfg(feature = "kafka")]
    "kafka",
    #[cfg(feature = "nats")]
    "nats",
    #[cfg(feature = "nats")]
    "tls",
    #[cfg(feature = "rabbitmq")]
    "rabbitmq",
    #[cfg(feature = "rabbitmq")]
    "rabbitmqs",
    #[cfg(feature = "rabbitmq")]
    "amqp",
    #[cfg(feature = "rabbitmq")]
    "amqps",
    #[cfg(feature = "redis")]
    "redis",
    #[cfg(feature = "redis")]
    "rediss",
];

/// An address of a broker that this build knows: which one it is comes before what is wrong with the rest.
fn address(text: &str) -> Result<Address> {
    match text.split_once("://") {
        Some((scheme, _)) if !SCHEMES.contains(&scheme) => Err(unknown(scheme)),
        _ => text.parse(),
    }
}

/// The sink of an address, and the route in its path: `nats://host/orders.{metadata.tenant}`.
///
/// # Errors
/// The address or the route makes no sense, this build knows no such broker, or it cannot be reached now.
pub async fn sink(text: &str) -> Result<(Arc<dyn Sink>, Template)> {
    let address = address(text)?;
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
pub async fn source(text: &str) -> Result<Box<dyn Source>> {
    let address = address(text)?;
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
        "there is no such broker as {scheme:?} in this build, only: {known}; brokers are cargo features: nats, redis, kafka, rabbitmq"
    ))
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_unknown_broker_is_named_before_its_topic_is_missed() {
        for text in ["foo://x", "foo://me:secret@x/topic", "foo://"] {
            let error = address(text).expect_err(text);
            assert!(error.is_usage() && error.to_string().starts_with("there is no such broker as \"foo\""), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
