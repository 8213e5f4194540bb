//! Opens the broker that an address names.

use std::sync::Arc;

use crate::{
    address::Address,
    error::{Error, Result},
    header::Broker,
    sink::Sink,
    source::Source,
    template::Template,
};

/// Brokers that this build supports.
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

/// The schemes of the addresses, for each broker.
const SCHEMES: [(&str, &[&str]); 4] = [
    ("kafka", &["kafka"]),
    ("nats", &["nats", "tls"]),
    ("rabbitmq", &["rabbitmq", "rabbitmqs", "amqp", "amqps"]),
    ("redis", &["redis", "rediss"]),
];

/// Opens the sink of an address, and parses the route in its path:
/// `nats://host/orders.{metadata.tenant}`.
///
/// # Errors
/// If the address or the route is invalid, no message can be sent to a route without fields, this
/// build does not support the broker, or the broker cannot be reached now.
pub async fn sink(address: &str) -> Result<(Arc<dyn Sink>, Template)> {
    let address = parsed(address)?;
    let route = routed(&address)?;
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

/// Parses the route. If all messages have the same destination, also checks the destination:
/// otherwise every message would become a dead letter.
fn routed(address: &Address) -> Result<Template> {
    let route: Template = address.path.parse()?;
    let broker = match &*address.scheme {
        "kafka" => Broker::KAFKA,
        "rabbitmq" | "rabbitmqs" | "amqp" | "amqps" => Broker::RABBITMQ,
        "nats" | "tls" => Broker::NATS,
        _ => Broker::REDIS,
    };
    if let Some(to) = route.fixed() {
        (broker.destination)(to).map_err(Error::usage)?;
    }
    Ok(route)
}

/// Opens the source of an address: `nats://host/STREAM`.
///
/// # Errors
/// The same as for [`sink`].
pub async fn source(address: &str) -> Result<Box<dyn Source>> {
    let address = parsed(address)?;
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

/// Parses the address if this build supports its broker. Addresses of other brokers may have
/// another form.
fn parsed(address: &str) -> Result<Address> {
    let scheme = address.split_once("://").map_or("", |(scheme, _)| scheme);
    let known = SCHEMES.iter().find(|(_, schemes)| schemes.contains(&scheme));
    match known {
        Some((broker, _)) if !BROKERS.contains(broker) => Err(unknown(scheme)),
        None if address.contains("://") => Err(unknown(scheme)),
        _ => address.parse(),
    }
}

fn unknown(scheme: &str) -> Error {
    let known = if BROKERS.is_empty() { "none".to_owned() } else { BROKERS.join(", ") };
    Error::usage(format!(
        "this build knows no broker {scheme:?}, only: {known}; brokers are cargo features: nats, redis, kafka, rabbitmq"
    ))
}

#[cfg(test)]
mod tests {
    use super::{parsed, routed};

    #[test]
    fn unknown_broker_is_said_before_anything_else() {
        for address in ["foo://x", "foo://x/y", "http://u:secret@x", "://x", "NATS://x"] {
            let error = parsed(address).expect_err(address).to_string();
            assert!(error.contains("knows no broker") && !error.contains("secret"), "{error}");
        }
        let error = parsed("x/y").expect_err("no scheme").to_string();
        assert!(error.contains("no scheme"), "{error}");
    }
    #[test]
    fn route_that_no_message_can_take_is_refused_at_the_start() {
        for (address, why) in [
            ("nats://host/orders..new", "an empty token"),
            ("nats://host/orders.>", "wildcards"),
            ("kafka://host/orders/new", "the topic"),
            ("rabbitmq://host/{long}", "255 bytes"),
        ] {
            let address = address.replace("{long}", &"x".repeat(256)).parse().expect("an address");
            let error = routed(&address).expect_err(why);
            assert!(error.is_usage() && error.to_string().contains(why), "{error}");
        }
        for address in ["nats://host/orders.new", "nats://host/orders.{+metadata.to}", "redis://host/a:b"] {
            routed(&address.parse().expect("an address")).expect(address);
        }
    }
}
