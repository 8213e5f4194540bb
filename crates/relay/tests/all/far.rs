//! The broker's side of a test, through the broker's own client. It reads messages that the relay
//! wrote, and writes messages that the relay reads.

#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;

use futures_util::future::BoxFuture;

use crate::{
    brokers::{Broker, Kind},
    ends::Arrived,
};

/// A destination that keeps messages in order, at least for each key.
pub trait Far: Send + Sync {
    /// Returns the relay's address for a port of the broker.
    fn address(&self, port: u16) -> String;

    /// Returns all messages, from the beginning.
    fn read(&self) -> BoxFuture<'_, Vec<Arrived>>;

    /// Writes bodies once. Returns for each body whether the broker confirmed it. Without a
    /// confirmation, the outcome is unknown.
    fn write<'a>(&'a self, key: &'a str, bodies: Vec<String>) -> BoxFuture<'a, Vec<(String, bool)>>;

    /// Deletes the destination and creates an empty one with the same name.
    fn make_anew(&self) -> BoxFuture<'_, ()>;
}

/// Creates a destination that keeps confirmed messages if the broker is killed. A stream on a
/// single RabbitMQ node does not.
pub async fn keeping(kind: Kind, broker: &Broker, name: &str) -> Box<dyn Far> {
    match kind {
        #[cfg(feature = "rabbitmq")]
        Kind::Rabbitmq => Box::new(rabbitmq::Quorum::make(broker, name).await),
        other => far(other, broker, name).await,
    }
}

/// Creates a destination.
pub async fn far(kind: Kind, broker: &Broker, name: &str) -> Box<dyn Far> {
    match kind {
        #[cfg(feature = "kafka")]
        Kind::Kafka => Box::new(kafka::Topic::make(broker, name).await),
        #[cfg(feature = "rabbitmq")]
        Kind::Rabbitmq => Box::new(rabbitmq::Stream::make(broker, name).await),
        other => panic!("{other:?} has no far end in this build: {name} at {}", broker.direct()),
    }
}
