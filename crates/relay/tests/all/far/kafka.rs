use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    message::Headers,
    producer::{FutureProducer, FutureRecord},
};

use super::Far;
use crate::{brokers::Broker, ends::Arrived};

const PATIENCE: Duration = Duration::from_secs(30);

/// A topic with three partitions.
pub struct Topic {
    name: String,
    config: ClientConfig,
    producer: FutureProducer,
}

impl Topic {
    pub async fn make(broker: &Broker, name: &str) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", broker.direct().to_string());
        config.set("reconnect.backoff.ms", "50").set("reconnect.backoff.max.ms", "500");
        let mut produces = config.clone();
        produces.set("enable.idempotence", "true").set("message.timeout.ms", "20000").set("linger.ms", "0");
        let topic = Self { name: name.to_owned(), config, producer: produces.create().expect("a client") };
        topic.create().await;
        topic
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config.create().expect("a client")
    }

    async fn create(&self) {
        let topic = NewTopic::new(&self.name, 3, TopicReplication::Fixed(1)).set("max.message.bytes", "200000");
        let made = self.admin().create_topics(&[topic], &AdminOptions::new().operation_timeout(Some(PATIENCE))).await;
        made.expect("asked").pop().expect("an answer").expect("a topic");
    }

    fn all(&self) -> Vec<Arrived> {
        let mut config = self.config.clone();
        config.set("group.id", "far").set("enable.auto.commit", "false").set("auto.offset.reset", "error");
        let consumer: BaseConsumer = config.create().expect("a client");
        let (mut list, mut left) = (TopicPartitionList::new(), 0);
        for partition in 0..3 {
            let (first, behind) = consumer.fetch_watermarks(&self.name, partition, PATIENCE).expect("its ends");
            list.add_partition_offset(&self.name, partition, Offset::Offset(first)).expect("an offset");
            left += behind - first;
        }
        consumer.assign(&list).expect("assigned");
        let mut read = Vec::new();
        while read.len() < left as usize {
            let message = consumer.poll(PATIENCE).expect("in time").expect("a message");
            let of = |name: &str| {
                let mut headers = message.headers().into_iter().flat_map(Headers::iter);
                headers.find(|header| header.key == name).and_then(|header| header.value)
            };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let body = text(message.payload().unwrap_or_default());
            assert_eq!(
                message.key().map(text).as_deref(),
                body.rsplit_once(' ').map(|(key, _)| key),
                "the key went along"
            );
            read.push(Arrived { body, id: of("trunkline-id").map(text) });
        }
        read
    }
}

impl Far for Topic {
    fn address(&self, port: u16) -> String {
        format!("kafka://127.0.0.1:{port}/{}", self.name)
    }

    fn read(&self) -> BoxFuture<'_, Vec<Arrived>> {
        Box::pin(async { tokio::task::block_in_place(|| self.all()) })
    }

    fn write<'a>(&'a self, key: &'a str, bodies: Vec<String>) -> BoxFuture<'a, Vec<(String, bool)>> {
        Box::pin(async move {
            let send = async |body: String| {
                let record = FutureRecord::to(&self.name).key(key).payload(&body);
                let sent = self.producer.send(record, PATIENCE).await;
                (body, sent.is_ok())
            };
            join_all(bodies.into_iter().map(send)).await
        })
    }

    fn make_anew(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let gone =
                self.admin().delete_topics(&[&self.name], &AdminOptions::new().operation_timeout(Some(PATIENCE))).await;
            gone.expect("asked").pop().expect("an answer").expect("a topic");
            self.create().await;
        })
    }
}
