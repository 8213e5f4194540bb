//! The destinations of messages, which the broker's own client creates.

use std::net::SocketAddr;

use lapin::types::{AMQPValue, FieldTable};

use crate::{Outcome, brokers::Kind, results::said};

pub struct Place {
    pub kind: Kind,
    pub addr: SocketAddr,
}

impl Place {
    pub fn new(kind: Kind, addr: SocketAddr) -> Self {
        Self { kind, addr }
    }

    /// Creates a topic, stream or queue and returns its address.
    pub async fn make(&self, name: &str) -> Outcome<String> {
        let addr = self.addr;
        Ok(match self.kind {
            Kind::Kafka => {
                use rdkafka::{
                    ClientConfig,
                    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
                    client::DefaultClientContext,
                };
                let admin: AdminClient<DefaultClientContext> =
                    ClientConfig::new().set("bootstrap.servers", addr.to_string()).create()?;
                let topic = NewTopic::new(name, 3, TopicReplication::Fixed(1));
                admin.create_topics(&[topic], &AdminOptions::new()).await?;
                format!("kafka://{addr}/{name}")
            }
            Kind::Rabbitmq => {
                let connection =
                    lapin::Connection::connect(&format!("amqp://{addr}"), lapin::ConnectionProperties::default())
                        .await?;
                let mut arguments = FieldTable::default();
                arguments.insert("x-queue-type".into(), AMQPValue::LongString("stream".into()));
                let durable = lapin::options::QueueDeclareOptions { durable: true, ..Default::default() };
                connection.create_channel().await?.queue_declare(name.into(), durable, arguments).await?;
                format!("rabbitmq://{addr}/{name}")
            }
            Kind::Nats => {
                let client = async_nats::connect(addr.to_string()).await?;
                let config = async_nats::jetstream::stream::Config {
                    name: name.into(),
                    subjects: vec![name.into()],
                    ..Default::default()
                };
                async_nats::jetstream::new(client).create_stream(config).await?;
                format!("nats://{addr}/{name}")
            }
            Kind::Redis => format!("redis://{addr}/{name}"),
        })
    }
}

/// Returns the broker's name and version for a table.
pub fn version(kind: Kind) -> String {
    let number = |text: String| {
        let is_digit =
            |part: &&str| part.trim_start_matches(['v', '=']).starts_with(|first: char| first.is_ascii_digit());
        text.split([' ', '=']).find(is_digit).unwrap_or("of an unknown version").trim_start_matches('v').to_owned()
    };
    match kind {
        Kind::Kafka => format!("Kafka {}", number(said("kafka-run-class.sh", &["kafka.Kafka", "--version"]))),
        Kind::Rabbitmq => format!("RabbitMQ {}, a stream", number(said("rabbitmqctl", &["version"]))),
        Kind::Nats => format!("NATS {}, JetStream", number(said("nats-server", &["--version"]))),
        Kind::Redis => format!("Redis {}", number(said("redis-server", &["--version"]))),
    }
}
