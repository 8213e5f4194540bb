//! A queue, a broker behind a proxy, and a relay between them that can be killed.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{runtime::Runtime, sync::oneshot};
use trunkline::{Db, Draft, Queue, Settings};
use trunkline_embedded::{Cluster, DelayProxy};
use trunkline_relay::{Inward, Progress, Raw, Relay, sink, source};

use crate::{
    brokers::{Broker, Kind},
    ends::Sent,
    far::{Far, far},
};

pub struct Stage {
    pub cluster: Cluster,
    pub queue: Queue<Raw>,
    pub broker: Broker,
    pub proxy: DelayProxy,
    pub far: Box<dyn Far>,
    pub sent: Sent,
}

impl Stage {
    pub async fn set(kind: Kind, keys: bool) -> Self {
        let mut proxy = None;
        let behind = |port: u16| {
            let started =
                DelayProxy::start("127.0.0.1:0", std::net::SocketAddr::from(([127, 0, 0, 1], port)), Duration::ZERO);
            proxy.insert(started.expect("a proxy")).addr().port()
        };
        let broker = tokio::task::block_in_place(|| Broker::behind(kind, behind));
        let cluster =
            tokio::task::block_in_place(|| Cluster::temporary().setting("fsync", "off").start()).expect("a PostgreSQL");
        let db = Db::connect(&cluster.url("postgres")).await.expect("connected");
        db.migrate().await.expect("migrated");
        let settings = Settings::new("bytea").max_attempts(1_000_000);
        let settings = if keys { settings.partitions(16) } else { settings };
        db.create_queue("orders", &settings).await.expect("created");
        let queue = db.queue("orders").await.expect("opened");
        let far = far(kind, &broker, "orders").await;
        Self { cluster, queue, broker, proxy: proxy.expect("it was started"), far, sent: Sent::default() }
    }

    pub fn address(&self) -> String {
        self.far.address(self.proxy.addr().port())
    }

    /// Starts a relay from the queue to the broker.
    pub fn out(&self) -> Running {
        self.out_to(self.address())
    }

    /// Starts a relay from the queue to an address.
    pub fn out_to(&self, address: String) -> Running {
        let url = self.cluster.url("postgres");
        Running::start(|progress, shutdown| async move {
            let db = Db::connect(&url).await.expect("connected");
            let (sink, route) = opened(|| sink(&address)).await;
            let relay =
                Relay::new(db.queue("orders").await.expect("opened"), sink).route(route).lease(Duration::from_secs(3));
            let _ = progress.send(relay.progress());
            relay.run(shutdown).await.map(drop)
        })
    }

    /// Starts a relay from the broker into the queue.
    pub fn inward(&self) -> Running {
        let (url, address) = (self.cluster.url("postgres"), self.address());
        Running::start(|progress, shutdown| async move {
            let db = Db::connect(&url).await.expect("connected");
            let source = opened(|| source(&address)).await;
            let relay = Inward::new(source, db.queue("orders").await.expect("opened"));
            let _ = progress.send(relay.progress());
            relay.run(shutdown).await.map(drop)
        })
    }

    /// Enqueues `each` messages for each of ten keys.
    pub async fn enqueue(&mut self, each: usize) {
        let mut drafts = Vec::new();
        for _ in 0..each {
            for key in 0..10 {
                let key = format!("key-{key}");
                let body = self.sent.next(&key);
                drafts.push(Draft::new(Raw(body.clone().into())).key(key.clone()));
                self.sent.is_in(body);
            }
        }
        self.queue.enqueue_many(drafts).await.expect("enqueued");
    }

    /// Writes `each` messages for each of ten keys to the broker.
    pub async fn write(&mut self, each: usize) {
        for key in 0..10 {
            let key = format!("key-{key}");
            let bodies = (0..each).map(|_| self.sent.next(&key)).collect();
            for (body, confirmed) in self.far.write(&key, bodies).await {
                if confirmed { self.sent.is_in(body) } else { self.sent.may_be_in(body) }
            }
        }
    }

    /// Waits until the queue is empty.
    pub async fn empty(&self) {
        within(Duration::from_secs(90), "the queue is empty", async || {
            self.queue.stats().await.is_ok_and(|stats| stats.messages == 0)
        })
        .await;
    }

    pub async fn filled(&self, messages: usize) {
        let has = async || self.queue.stats().await.is_ok_and(|stats| stats.messages >= messages as u64);
        within(Duration::from_secs(90), "the queue has what was written", has).await;
    }
}

/// Opens a broker. Tries again while the broker is unavailable, as a supervisor would restart the
/// relay.
async fn opened<T, F: Future<Output = trunkline_relay::Result<T>>>(open: impl Fn() -> F) -> T {
    loop {
        match open().await {
            Ok(opened) => return opened,
            Err(error) => assert!(!error.is_usage(), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A relay in a runtime of its own, which can end as abruptly as a process.
pub struct Running {
    runtime: Option<Runtime>,
    progress: oneshot::Receiver<Arc<Progress>>,
    shutdown: Option<oneshot::Sender<()>>,
    outcome: tokio::task::JoinHandle<trunkline_relay::Result<()>>,
}

impl Running {
    fn start<F>(
        run: impl FnOnce(oneshot::Sender<Arc<Progress>>, Box<dyn Future<Output = ()> + Send + Unpin>) -> F,
    ) -> Self
    where
        F: Future<Output = trunkline_relay::Result<()>> + Send + 'static,
    {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let ((told, progress), (shutdown, asked)) = (oneshot::channel(), oneshot::channel());
        let asked = Box::pin(async { drop(asked.await) });
        let outcome = runtime.spawn(run(told, Box::new(asked)));
        Self { runtime: Some(runtime), progress, shutdown: Some(shutdown), outcome }
    }

    /// Returns the relay's counts, once the relay has started.
    pub async fn begun(&mut self) -> Arc<Progress> {
        (&mut self.progress).await.expect("it begins")
    }

    /// Stops the runtime without a shutdown.
    pub fn kill(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Shuts down the relay, and returns its outcome.
    pub async fn end(mut self) -> trunkline_relay::Result<()> {
        drop(self.shutdown.take());
        let outcome = (&mut self.outcome).await.expect("no panic");
        self.kill();
        outcome
    }

    /// Waits until the relay ends by itself, and returns its outcome.
    pub async fn ended(mut self) -> trunkline_relay::Result<()> {
        let outcome =
            tokio::time::timeout(Duration::from_secs(60), &mut self.outcome).await.expect("in time").expect("no panic");
        self.kill();
        outcome
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Waits until a condition holds. Fails after `time`.
pub async fn within(time: Duration, what: &str, is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + time;
    while !is_so().await {
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
