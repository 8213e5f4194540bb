//! Runs `apalis` with `apalis-postgres` as a contender. `lab/peers/README.md` describes the
//! protocol, and `README.md` the sources of the settings.

use std::{
    pin::pin,
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use apalis::prelude::*;
use apalis_postgres::{Config, PostgresStorage, Pubsub};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use tokio::task::JoinSet;
use trunkline_contender::{Contender, Failure, Missing, NO_MEASURE, Ready, Settings, Tally, Wait};

const QUEUE: &str = "bench";
/// The number of jobs per fetch, and the concurrency of each worker. The number is high because
/// apalis' own benchmark sets no limit.
const BATCH: usize = 1000;
/// The number of workers. A worker fetches, runs and acknowledges in sequence, so several workers
/// are faster. But every worker polls, so a low rate uses only one worker.
const WORKERS: usize = 4;
const ENOUGH_FOR_ONE: f64 = 1000.0;
const POLL: Duration = Duration::from_millis(100);

/// The payload. The crate requires a type for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Message {
    at: u64,
    pad: String,
}

async fn handle(message: Message, tally: Data<Arc<Tally>>) -> Result<(), BoxDynError> {
    tally.received(format!(r#"{{"at":{}}}"#, message.at));
    Ok(())
}

struct Peer {
    /// The storage of the callers, whose pool has one connection per caller.
    senders: PostgresStorage<Message>,
    /// The storage of the workers, which has its own pool.
    source: PostgresStorage<Message>,
    notify: bool,
    /// The concurrency of each worker.
    workers: Vec<usize>,
    unseeded: AtomicUsize,
}

impl Contender for Peer {
    type Handle = ();

    async fn install(settings: &Settings) -> Result<(Self, Ready), Failure> {
        let (sending, working) = (pool(settings.producers.try_into()?).await?, pool(20).await?);
        let hstore = "SELECT count(*) FROM pg_available_extensions WHERE name = 'hstore'";
        if sqlx::query_scalar::<_, i64>(hstore).fetch_one(&sending).await? == 0 {
            return Err(Missing("the extension hstore is not installed".into()).into());
        }
        PostgresStorage::setup(&sending).await?;
        let notify = settings.wait != Wait::Poll;
        let count = if settings.rate.is_some_and(|rate| rate <= ENOUGH_FOR_ONE) { 1 } else { WORKERS };
        let workers = match settings.consumers {
            0 => vec![BATCH; count],
            jobs => (0..count.min(jobs)).map(|worker| (jobs + worker) / count.min(jobs)).collect(),
        };
        let config = Config::default().queue(QUEUE).batch_size(BATCH);
        let ready = Ready {
            version: "apalis 1.0.0, apalis-postgres 1.0.0".into(),
            settings: format!(
                "concurrency {workers:?}, batch_size {BATCH}, {}poll every {POLL:?}",
                if notify { "notify, " } else { "" },
            ),
        };
        let peer = Self {
            senders: PostgresStorage::new(&sending).with_config(config.clone()),
            source: PostgresStorage::new(&working).with_config(config),
            notify,
            workers,
            unseeded: settings.backlog.into(),
        };
        Ok((peer, ready))
    }

    async fn send(&self, _caller: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let mut storage = self.senders.clone();
        if let [payload] = payloads.as_slice() {
            storage.push(serde_json::from_str(payload)?).await?;
            return Ok(());
        }
        let messages = payloads.iter().map(|payload| serde_json::from_str(payload)).collect::<Result<_, _>>()?;
        storage.push_bulk(messages).await?;
        Ok(())
    }

    async fn seed(&self, payloads: Vec<String>) -> Result<(), Failure> {
        let n = payloads.len();
        self.send(0, payloads).await?;
        // Analyzes the table at once. Autovacuum would do the same a little later.
        if self.unseeded.fetch_sub(n, Ordering::Relaxed) == n {
            sqlx::query("ANALYZE apalis.jobs").execute(self.senders.pool()).await?;
        }
        Ok(())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let mut workers = JoinSet::new();
        for (worker, jobs) in self.workers.iter().enumerate() {
            workers.spawn(self.clone().work(format!("bench-{worker}"), *jobs, tally.clone()));
        }
        while let Some(ended) = workers.join_next().await {
            ended??;
        }
        Ok(())
    }
}

impl Peer {
    /// Runs one worker of apalis until the round is over.
    async fn work(self: Arc<Self>, name: String, jobs: usize, tally: Arc<Tally>) -> Result<(), Failure> {
        let mut strategy = Strategy::new();
        if self.notify {
            strategy = strategy.stream(Pubsub::new(self.source.pool().clone(), QUEUE.into()));
        }
        // The worker polls in addition to listening, because with notifications alone it does not
        // wake up (README.md).
        strategy = strategy.interval(POLL);
        // Remembers the error of a handler. For the worker it is only an event, after which it
        // would continue with the next job.
        let failed: Arc<Mutex<Option<Failure>>> = Arc::default();
        let (events, context) = (failed.clone(), WorkerContext::new(&name));
        let running = WorkerBuilder::new(&context)
            .backend(self.source.clone().poll_with_strategy(strategy))
            .data(tally.clone())
            .concurrency(jobs)
            .on_event(move |worker, event| {
                if let Event::Error(error) = event {
                    *events.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string().into());
                    let _ = worker.stop();
                }
            })
            .build(handle)
            .run();
        let mut running = pin!(running);
        tokio::select! {
            ended = &mut running => ended?,
            () = tally.over() => {
                context.stop()?;
                running.await?;
            }
        }
        failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// Connects before the clock starts. Disables the ping that sqlx sends before each use of a
/// connection.
async fn pool(connections: u32) -> Result<PgPool, sqlx::Error> {
    PgPoolOptions::new()
        .max_connections(connections)
        .min_connections(connections)
        .test_before_acquire(false)
        .connect_with(PgConnectOptions::new())
        .await
}

fn main() -> ExitCode {
    trunkline_contender::run::<Peer>(NO_MEASURE)
}
