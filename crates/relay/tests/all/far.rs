//! The broker's end, by the broker's own client: what the relay has put there is read, and what it
//! is to fetch is written.

#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;

use futures_util::future::BoxFuture;

use crate::{
    brokers::{Broker, Kind},
    ends::Arrived,
};

/// A place that keeps messages in order, of each key at least.
pub trait Far: Send + Sync {
    /// Its address for the relay, at that port.
    fn address(&self, port: u16) -> String;

    /// All that is there, from the beginning.
    fn read(&self) -> BoxFuture<'_, Vec<Arrived>>;

    /// Whether the broker has confirmed it. Nothing is written again: where it has not, the
    /// outcome is unknown.
    fn write<'a>(&'a self, key: &'a str, bodies: Vec<String>) -> BoxFuture<'a, Vec<(String, bool)>>;

    /// Another place by its name, with nothing in it.
    fn make_anew(&self) -> BoxFuture<'_, ()>;
}

/// A place that keeps what it has confirmed, whatever becomes of the broker: a stream of RabbitMQ
/// on a single node does not.
pub async fn keeping(kind: Kind, broker: &Broker, name: &str) -> Box<dyn Far> {
    match kind {
        #[cfg(feature = "rabbitmq")]
        Kind::Rabbitmq => Box::new(rabbitmq::Quorum::make(broker, name).await),
        other => far(other, broker, name).await,
    }
}

/// Makes a place of that name.
pub async fn far(kind: Kind, broker: &Broker, name: &str) -> Box<dyn Far> {
    match kind {
        #[cfg(feature = "kafka")]
        Kind::Kafka => Box::new(kafka::Topic::make(broker, name).await),
        #[cfg(feature = "rabbitmq")]
        Kind::Rabbitmq => Box::new(rabbitmq::Stream::make(broker, name).await),
        other => panic!("{other:?} has no far end in this build: {name} at {}", broker.direct()),
    }
}
