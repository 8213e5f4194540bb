use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, future::BoxFuture};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties,
    message::Delivery,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicPublishOptions, BasicQosOptions,
        ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
    },
    types::{AMQPValue, FieldTable},
};
use tokio::{sync::Mutex, time::timeout};

use super::Far;
use crate::{brokers::Broker, ends::Arrived};

pub struct Stream {
    name: String,
    address: String,
    kind: &'static str,
}

impl Stream {
    pub async fn make(broker: &Broker, name: &str) -> Self {
        Self::of(broker, name, "stream").await
    }

    async fn of(broker: &Broker, name: &str, kind: &'static str) -> Self {
        let stream = Self { name: name.to_owned(), address: format!("amqp://{}", broker.direct()), kind };
        stream.declare().await;
        stream
    }

    async fn declare(&self) {
        let (channel, _connection) = self.channel().await.expect("a channel");
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString(self.kind.into()));
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare((&*self.name).into(), durable, arguments).await.expect("a stream");
    }

    async fn channel(&self) -> lapin::Result<(Channel, Connection)> {
        let connection = Connection::connect(&self.address, ConnectionProperties::default()).await?;
        Ok((connection.create_channel().await?, connection))
    }

    async fn confirmed(&self, key: &str, bodies: &[String]) -> lapin::Result<Vec<bool>> {
        let (channel, _connection) = self.channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let mut headers = FieldTable::default();
        headers.insert("trunkline-key".into(), AMQPValue::LongString(key.into()));
        let properties = BasicProperties::default().with_headers(headers);
        let mut sent = Vec::new();
        for body in bodies {
            let options = BasicPublishOptions::default();
            sent.push(
                channel
                    .basic_publish("".into(), (&*self.name).into(), options, body.as_bytes(), properties.clone())
                    .await?,
            );
        }
        let mut confirmed = Vec::new();
        for sent in sent {
            confirmed.push(matches!(sent.await, Ok(Confirmation::Ack(None))));
        }
        Ok(confirmed)
    }
}

impl Far for Stream {
    fn address(&self, port: u16) -> String {
        format!("rabbitmq://127.0.0.1:{port}/{}", self.name)
    }

    fn read(&self) -> BoxFuture<'_, Vec<Arrived>> {
        Box::pin(async {
            let (channel, _connection) = self.channel().await.expect("a channel");
            channel.basic_qos(1000, BasicQosOptions::default()).await.expect("asked");
            let mut arguments = FieldTable::default();
            arguments.insert("x-stream-offset".into(), AMQPValue::LongString("first".into()));
            let consumer =
                channel.basic_consume((&*self.name).into(), "".into(), BasicConsumeOptions::default(), arguments).await;
            let mut consumer = consumer.expect("a consumer");
            let mut read = Vec::new();
            // Reads until no message arrives, because a stream does not report its end.
            while let Ok(Some(delivery)) = timeout(Duration::from_secs(5), consumer.next()).await {
                let delivery = delivery.expect("a message");
                delivery.ack(BasicAckOptions::default()).await.expect("acknowledged");
                read.push(arrived(&delivery));
            }
            read
        })
    }

    fn write<'a>(&'a self, key: &'a str, bodies: Vec<String>) -> BoxFuture<'a, Vec<(String, bool)>> {
        Box::pin(async move {
            let confirmed = timeout(Duration::from_secs(20), self.confirmed(key, &bodies)).await;
            let confirmed = confirmed.ok().and_then(Result::ok).unwrap_or_else(|| vec![false; bodies.len()]);
            bodies.into_iter().zip(confirmed).collect()
        })
    }

    fn make_anew(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let (channel, _connection) = self.channel().await.expect("a channel");
            channel.queue_delete((&*self.name).into(), QueueDeleteOptions::default()).await.expect("deleted");
            self.declare().await;
        })
    }
}

/// A quorum queue, whose confirmations mean that the message is on disk. Reading removes messages,
/// so `read` stores them.
pub struct Quorum {
    queue: Stream,
    read: Mutex<Vec<Arrived>>,
}

impl Quorum {
    pub async fn make(broker: &Broker, name: &str) -> Self {
        let queue = Stream::of(broker, name, "quorum").await;
        // Waits until RabbitMQ has written the name of the quorum queue to the disk, which takes
        // some three seconds. A broker that is killed before that has lost the queue's contents.
        let (folder, called) = (broker.file("data"), format!("2F_{name}"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !files(&folder).iter().any(|file| file.ends_with("names.dets") && contains(file, &called)) {
            assert!(Instant::now() < deadline, "the name of the queue is not on disk");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Self { queue, read: Mutex::default() }
    }
}

/// Returns the files in a folder and in the folders within it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.flat_map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { vec![entry.path()] }).collect()
}

fn contains(file: &Path, text: &str) -> bool {
    fs::read(file).is_ok_and(|bytes| bytes.windows(text.len()).any(|some| some == text.as_bytes()))
}

impl Far for Quorum {
    fn address(&self, port: u16) -> String {
        self.queue.address(port)
    }

    fn read(&self) -> BoxFuture<'_, Vec<Arrived>> {
        Box::pin(async {
            let (channel, _connection) = self.queue.channel().await.expect("a channel");
            let mut read = self.read.lock().await;
            let gone = BasicGetOptions { no_ack: true };
            while let Some(message) =
                channel.basic_get((&*self.queue.name).into(), gone).await.expect("a message or none")
            {
                read.push(arrived(&message.delivery));
            }
            read.clone()
        })
    }

    fn write<'a>(&'a self, key: &'a str, bodies: Vec<String>) -> BoxFuture<'a, Vec<(String, bool)>> {
        self.queue.write(key, bodies)
    }

    fn make_anew(&self) -> BoxFuture<'_, ()> {
        self.queue.make_anew()
    }
}

fn arrived(delivery: &Delivery) -> Arrived {
    let body = String::from_utf8_lossy(&delivery.data).into_owned();
    Arrived { body, id: delivery.properties.message_id().as_ref().map(ToString::to_string) }
}
