//! The loop of a program without a relay: a table, `delete … returning`, the client library, and a
//! commit.

use std::time::Instant;

use futures_util::future::{join_all, try_join_all};
use tokio_postgres::NoTls;

use crate::{Outcome, brokers::Kind, place::Place};

/// The number of messages per round.
const TURN: i64 = 1000;

pub async fn rate(url: &str, place: &Place, name: &str, messages: usize) -> Outcome<f64> {
    let mut client = Client::connect(place, name).await?;
    let (mut sql, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    sql.batch_execute(&format!(
        "create table {name} (id bigint generated always as identity primary key, body bytea not null);
         insert into {name} (body) select decode(repeat('78', 100), 'hex') from generate_series(1, {messages});
         analyze {name}"
    ))
    .await?;
    let took = format!(
        "delete from {name} where id in (select id from {name} order by id limit {TURN} for update skip locked) returning body"
    );
    let took = sql.prepare(&took).await?;
    let began = Instant::now();
    loop {
        let turn = sql.transaction().await?;
        let rows = turn.query(&took, &[]).await?;
        if rows.is_empty() {
            break;
        }
        client.produce(rows.iter().map(|row| row.get(0)).collect()).await?;
        turn.commit().await?;
    }
    Ok(messages as f64 / began.elapsed().as_secs_f64())
}

enum Client {
    Kafka(rdkafka::producer::FutureProducer, String),
    /// The channel works only while its connection exists.
    Rabbitmq {
        channel: lapin::Channel,
        _connection: lapin::Connection,
        queue: String,
    },
    Nats(async_nats::jetstream::Context, String),
    Redis(redis::aio::MultiplexedConnection, String),
}

impl Client {
    async fn connect(place: &Place, name: &str) -> Outcome<Self> {
        place.make(name).await?;
        let (addr, name) = (place.addr, name.to_owned());
        Ok(match place.kind {
            Kind::Kafka => {
                let mut config = rdkafka::ClientConfig::new();
                config.set("bootstrap.servers", addr.to_string()).set("acks", "all").set("enable.idempotence", "true");
                Self::Kafka(config.create()?, name)
            }
            Kind::Rabbitmq => {
                let connection =
                    lapin::Connection::connect(&format!("amqp://{addr}"), lapin::ConnectionProperties::default())
                        .await?;
                let channel = connection.create_channel().await?;
                channel.confirm_select(lapin::options::ConfirmSelectOptions::default()).await?;
                Self::Rabbitmq { channel, _connection: connection, queue: name }
            }
            Kind::Nats => Self::Nats(async_nats::jetstream::new(async_nats::connect(addr.to_string()).await?), name),
            Kind::Redis => {
                let client = redis::Client::open(format!("redis://{addr}"))?;
                Self::Redis(client.get_multiplexed_async_connection().await?, name)
            }
        })
    }

    /// Sends one batch and waits for its confirmations.
    async fn produce(&mut self, bodies: Vec<Vec<u8>>) -> Outcome<()> {
        match self {
            Self::Kafka(producer, topic) => {
                let send = |body: &Vec<u8>| {
                    producer
                        .send_result(rdkafka::producer::FutureRecord::<(), _>::to(topic).payload(body))
                        .map_err(|(error, _)| error)
                };
                let answers = bodies.iter().map(send).collect::<Result<Vec<_>, _>>()?;
                for sent in try_join_all(answers).await? {
                    sent.map_err(|(error, _)| error)?;
                }
            }
            Self::Rabbitmq { channel, queue, .. } => {
                let mut sent = Vec::new();
                for body in &bodies {
                    let options = lapin::options::BasicPublishOptions { mandatory: true, ..Default::default() };
                    let properties = lapin::BasicProperties::default().with_delivery_mode(2);
                    sent.push(channel.basic_publish("".into(), (&**queue).into(), options, body, properties).await?);
                }
                try_join_all(sent).await?;
            }
            Self::Nats(context, subject) => {
                let mut sent = Vec::new();
                for body in bodies {
                    sent.push(context.publish(subject.clone(), body.into()).await?);
                }
                for answer in join_all(sent.into_iter().map(IntoFuture::into_future)).await {
                    answer?;
                }
            }
            Self::Redis(connection, stream) => {
                let mut pipeline = redis::pipe();
                for body in &bodies {
                    pipeline.cmd("XADD").arg(&*stream).arg("*").arg("body").arg(body).ignore();
                }
                let () = pipeline.query_async(connection).await?;
            }
        }
        Ok(())
    }
}
