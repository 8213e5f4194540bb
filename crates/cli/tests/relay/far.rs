//! The broker's side: a stream that the tests read after a relay from a queue, and fill before a
//! relay into a queue.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use trunkline_relay::{ID, Incoming, Outcome, Outgoing, Sink};

use crate::{
    brokers::{Broker, Kind, Setup},
    ends::{Arrived, Sent},
    place::{LONGEST, within},
};

/// A RabbitMQ stream that every user may use.
const DEFINITIONS: &str = r#"{
    "vhosts": [{"name": "/"}],
    "users": [{"name": "guest", "password_hash": "kI3GCrswBLNZQzHJJ95QLoyfAVooYhnvf7jbqiW9BjOYUloe",
               "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": "administrator"}],
    "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
    "queues": [{"name": "s", "vhost": "/", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": "stream"}}]
}"#;

/// Starts a broker that has a stream `s`, or creates it on the first write.
#[track_caller]
pub fn broker(kind: Kind) -> Broker {
    let (files, lines): (&[_], &[_]) = match kind {
        Kind::Rabbitmq => (&[("definitions.json", DEFINITIONS)], &["load_definitions = FOLDER/definitions.json"]),
        Kind::Kafka => (&[], &["auto.create.topics.enable=true", "num.partitions=3"]),
        Kind::Nats | Kind::Redis => (&[], &[]),
    };
    Broker::with(kind, &Setup { files, lines })
}

/// A stream or topic with the name `s`.
#[derive(Debug, Clone, Copy)]
pub struct Far {
    kind: Kind,
    server: SocketAddr,
}

impl Far {
    pub fn make(kind: Kind, broker: &Broker) -> Self {
        let server = broker.addr();
        if kind == Kind::Nats {
            within("JetStream makes a stream", || make_stream(server).is_ok_and(|said| said.contains("\"config\"")));
        }
        Self { kind, server }
    }

    /// Returns the stream's address for the relay.
    pub fn address(&self, out: bool) -> String {
        match self.kind {
            Kind::Nats if out => format!("nats://{}/s.{{queue}}", self.server),
            Kind::Nats => format!("nats://{}/s", self.server),
            Kind::Redis => format!("redis://{}/s", self.server),
            Kind::Kafka => format!("kafka://{}/s", self.server),
            Kind::Rabbitmq => format!("rabbitmq://{}/s", self.server),
        }
    }

    pub async fn sink(&self) -> Arc<dyn Sink> {
        trunkline_relay::sink(&self.address(true)).await.expect("a sink").0
    }

    /// Writes one message for each key.
    pub async fn write(&self, sink: &dyn Sink, sent: &mut Sent, keys: usize) {
        let to = if self.kind == Kind::Nats { "s.q" } else { "s" };
        let keys: Vec<_> = (0..keys).map(|key| format!("k{key}")).collect();
        let bodies: Vec<_> = keys.iter().map(|key| sent.next(key)).collect();
        let message = |(key, body): (&String, &String)| {
            let mut message = Outgoing::new(body.clone(), to, body.clone());
            message.key = Some(key.as_str().into());
            message
        };
        let batch: Vec<_> = keys.iter().zip(&bodies).map(message).collect();
        for (body, outcome) in bodies.into_iter().zip(sink.produce(&batch).await) {
            if outcome == Outcome::Confirmed { sent.is_in(body) } else { sent.may_be_in(body) }
        }
    }

    /// Returns all messages, once there are at least `most`.
    pub async fn read(&self, most: usize) -> Vec<Arrived> {
        let mut source = trunkline_relay::source(&self.address(false)).await.expect("a source");
        let (mut all, mut after, mut nothing) = (Vec::new(), None::<String>, 0);
        // The first message may take the broker some time, and the broker does not report the end
        // of the stream.
        let end = Instant::now() + LONGEST;
        while nothing < 2 || all.len() < most && Instant::now() < end {
            let read = source.read(after.as_deref(), 10_000).await.expect("read");
            nothing = if read.is_empty() { nothing + 1 } else { 0 };
            after = read.last().map(|last| last.position.clone()).or(after);
            all.extend(read.into_iter().map(arrived));
        }
        all
    }
}

fn arrived(message: Incoming) -> Arrived {
    let id = message.metadata.get(ID).map(str::to_owned);
    Arrived { body: String::from_utf8(message.body.into()).expect("text"), id }
}

/// Asks the server to create a stream of all subjects below `s`. Returns its answer.
fn make_stream(server: SocketAddr) -> std::io::Result<String> {
    let mut socket = TcpStream::connect(server)?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    let config = r#"{"name": "s", "subjects": ["s.>"]}"#;
    write!(
        socket,
        "CONNECT {{\"verbose\": false}}\r\nSUB answers 1\r\nPUB $JS.API.STREAM.CREATE.s answers {}\r\n{config}\r\n",
        config.len()
    )?;
    let mut lines = BufReader::new(socket).lines();
    for line in &mut lines {
        if line?.starts_with("MSG answers") {
            break;
        }
    }
    lines.next().unwrap_or_else(|| Ok(String::new()))
}
