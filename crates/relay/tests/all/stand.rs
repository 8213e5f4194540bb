//! A broker, a database with a queue, and a proxy in front of each, for all tests of a relay.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use trunkline::{Db, Draft, Queue, Settings};
use trunkline_embedded::{Cluster, DelayProxy};
use trunkline_relay::{Raw, Sink, Source, Template};

use crate::{
    brokers::{Broker, Kind},
    ends::{Arrived, Sent},
};

/// The maximum wait of a test. The machine may be busy with other tests.
pub const DEADLINE: Duration = Duration::from_secs(120);

pub struct Stand {
    pub kind: Kind,
    pub broker: Broker,
    pub proxy: Arc<DelayProxy>,
    pub cluster: Cluster,
    pub db: Db,
    pub queue: Queue<Raw>,
}

impl Stand {
    /// Creates a queue `q` of text, with or without keys.
    pub async fn of(kind: Kind, lanes: u32) -> Self {
        let mut proxy = None;
        let broker = Broker::behind(kind, |port| {
            let to = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            let started = DelayProxy::start("127.0.0.1:0", to, Duration::ZERO).expect("a proxy");
            let at = started.addr().port();
            proxy = Some(started);
            at
        });
        let cluster = Cluster::temporary().setting("fsync", "off").start().expect("a server");
        let db = Db::connect(&cluster.url("postgres")).await.expect("connected");
        db.migrate().await.expect("migrated");
        let mut settings = Settings::of::<String>().lease(Duration::from_secs(3));
        if lanes > 0 {
            settings = settings.partitions(lanes);
        }
        db.create_queue("q", &settings).await.expect("created");
        let queue = db.queue("q").await.expect("opened");
        let stand = Self { kind, broker, proxy: Arc::new(proxy.expect("it was started")), cluster, db, queue };
        #[cfg(feature = "nats")]
        if kind == Kind::Nats {
            make_stream(&format!("nats://{}", stand.broker.addr())).await;
        }
        stand
    }

    /// Returns the relay's address, for one of the two directions.
    pub fn address(&self, out: bool) -> String {
        let server = self.broker.addr();
        match self.kind {
            Kind::Nats if out => format!("nats://{server}/s.{{queue}}"),
            Kind::Nats => format!("nats://{server}/s"),
            Kind::Redis => format!("redis://{server}/s"),
            kind => unreachable!("{kind:?} has tests of its own"),
        }
    }

    pub async fn sink(&self) -> (Arc<dyn Sink>, Template) {
        trunkline_relay::sink(&self.address(true)).await.expect("a sink")
    }

    pub async fn source(&self) -> Box<dyn Source> {
        trunkline_relay::source(&self.address(false)).await.expect("a source")
    }

    /// Enqueues `each` messages for each of `keys` keys, alternating between the keys.
    pub async fn enqueue(&self, sent: &mut Sent, keys: usize, each: usize) {
        for _ in 0..each {
            let bodies: Vec<_> = (0..keys).map(|key| (format!("k{key}"), sent.next(&format!("k{key}")))).collect();
            let keyed = self.queue.description().partitions > 0;
            let draft = |(key, body): &(String, String)| {
                let draft = Draft::new(Raw(body.clone().into())).with("tenant", "acme");
                if keyed { draft.key(&**key) } else { draft }
            };
            let drafts: Vec<_> = bodies.iter().map(draft).collect();
            let stored = self.queue.enqueue_many(drafts).await;
            for (_, body) in bodies {
                if stored.is_ok() { sent.is_in(body) } else { sent.may_be_in(body) }
            }
        }
    }

    /// Waits until the queue is empty.
    pub async fn drained(&self) {
        until("the queue is empty", async || self.queue.stats().await.is_ok_and(|stats| stats.messages == 0)).await;
    }

    /// Returns all messages of the broker.
    pub async fn arrived(&self) -> Vec<Arrived> {
        let (mut source, mut all, mut after) = (self.source().await, Vec::new(), None::<String>);
        let mut nothing = 0;
        while nothing < 2 {
            let read = source.read(after.as_deref(), 1000).await.expect("read");
            nothing = if read.is_empty() { nothing + 1 } else { 0 };
            after = read.last().map(|last| last.position.clone()).or(after);
            let arrived = |message: trunkline_relay::Incoming| Arrived {
                body: String::from_utf8(message.body.to_vec()).expect("text"),
                id: message.metadata.get(trunkline_relay::ID).map(str::to_owned),
            };
            all.extend(read.into_iter().map(arrived));
        }
        all
    }
}

/// Creates the stream `s` for all subjects below it.
#[cfg(feature = "nats")]
pub async fn make_stream(address: &str) {
    make_stream_as(async_nats::ConnectOptions::new(), address).await;
}

/// Creates a stream like [`make_stream`], with the login in the options.
#[cfg(feature = "nats")]
pub async fn make_stream_as(options: async_nats::ConnectOptions, address: &str) {
    use async_nats::jetstream::{self, stream::Config};
    let client = options.connect(address).await.expect("connected");
    let config = Config { name: "s".to_owned(), subjects: vec!["s.>".to_owned()], ..Config::default() };
    let jetstream = jetstream::new(client);
    until("JetStream is there", async || jetstream.create_stream(config.clone()).await.is_ok()).await;
}

/// Waits until a condition holds.
pub async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !holds().await {
        assert!(Instant::now() < end, "not within {DEADLINE:?}: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
