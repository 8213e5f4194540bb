//! Runs `graphile_worker` (Rust) as a contender. `lab/peers/README.md` describes the protocol, and
//! `README.md` the sources of the settings.

use std::{
    pin::pin,
    process::ExitCode,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, Worker, WorkerContext, WorkerOptions, WorkerUtils,
};
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use trunkline_contender::{Contender, Failure, NO_MEASURE, Ready, Settings, Tally, Wait};

const JOBS_AT_A_TIME: usize = 500;
const LOCAL_QUEUE_SIZE: usize = 5000;
const COMPLETION_DELAY: Duration = Duration::from_millis(5);
const POLL_BESIDE_NOTIFY: Duration = Duration::from_millis(500);
const POLL_ALONE: Duration = Duration::from_millis(5);

/// The payload. The crate requires a type for it.
#[derive(Clone, Serialize, Deserialize)]
struct Message {
    at: u64,
    pad: String,
}

/// The tally of the handler. It is set later, because the worker is built before the tally exists.
#[derive(Clone, Debug, Default)]
struct Counter(Arc<OnceLock<Arc<Tally>>>);

impl TaskHandler for Message {
    const IDENTIFIER: &'static str = "message";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        if let Some(tally) = context.get_ext::<Counter>().and_then(|counter| counter.0.get()) {
            tally.received(format!(r#"{{"at":{}}}"#, self.at));
        }
    }
}

struct Peer {
    senders: WorkerUtils,
    worker: Worker,
    counter: Counter,
    pool: PgPool,
    unseeded: AtomicUsize,
}

impl Contender for Peer {
    type Handle = ();

    async fn install(settings: &Settings) -> Result<(Self, Ready), Failure> {
        let concurrency = settings.consumers_or(JOBS_AT_A_TIME);
        let (notify, poll) = match settings.wait {
            Wait::Best | Wait::Notify => (true, POLL_BESIDE_NOTIFY),
            Wait::Poll => (false, POLL_ALONE),
        };
        let counter = Counter::default();
        let worker = WorkerOptions::default()
            // The worker has its own pool, so that it never waits for the senders. 20 is the
            // crate's default.
            .pg_pool(pool(20).await?)
            .concurrency(concurrency)
            .use_notification_delivery(notify)
            .poll_interval(poll)
            .local_queue(LocalQueueConfig::default().with_size(LOCAL_QUEUE_SIZE))
            .complete_job_batch_delay(COMPLETION_DELAY)
            .fail_job_batch_delay(COMPLETION_DELAY)
            .listen_os_shutdown_signals(false)
            .add_extension(counter.clone())
            .define_job::<Message>()
            .init()
            .await?;
        let pool = pool(settings.producers.try_into()?).await?;
        let senders = WorkerUtils::new(pool.clone(), "graphile_worker");
        let ready = Ready {
            version: "graphile_worker 0.14.1".into(),
            settings: format!(
                "concurrency {concurrency}, a local queue of {LOCAL_QUEUE_SIZE}, completions batched for \
                 {COMPLETION_DELAY:?}, {}poll every {poll:?}",
                if notify { "notify, " } else { "" },
            ),
        };
        Ok((Self { senders, worker, counter, pool, unseeded: settings.backlog.into() }, ready))
    }

    async fn send(&self, _caller: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let spec = JobSpec::default();
        if let [payload] = payloads.as_slice() {
            self.senders.add_job::<Message>(serde_json::from_str(payload)?, spec).await?;
            return Ok(());
        }
        let jobs: Vec<(Message, &JobSpec)> = payloads
            .iter()
            .map(|payload| Ok((serde_json::from_str(payload)?, &spec)))
            .collect::<Result<_, serde_json::Error>>()?;
        self.senders.add_jobs(&jobs).await?;
        Ok(())
    }

    async fn seed(&self, payloads: Vec<String>) -> Result<(), Failure> {
        let n = payloads.len();
        self.send(0, payloads).await?;
        // The crate also analyzes the table after a call with 10,000 jobs. Without statistics, a
        // new backlog drains several times more slowly.
        if self.unseeded.fetch_sub(n, Ordering::Relaxed) == n {
            sqlx::query("ANALYZE graphile_worker._private_jobs").execute(&self.pool).await?;
        }
        Ok(())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        self.counter.0.get_or_init(|| tally.clone());
        let mut running = pin!(self.worker.run());
        tokio::select! {
            ended = &mut running => ended?,
            () = tally.over() => {
                self.worker.request_shutdown();
                running.await?;
            }
        }
        Ok(())
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
