//! The framework for contenders of the benchmark suite, in Rust. `lab/peers/README.md` describes
//! the protocol.
//!
//! A contender implements how to install itself, send and consume. [`run`] does the rest: it reads
//! the settings, keeps the clock, counts, and reports to the runner.

mod settings;
mod measure;
mod payload;
mod say;
mod order;
mod tally;
mod callers;
mod produce;
mod send;
mod drain;
mod cycle;
mod step;
mod processes;

use std::{future::Future, process::ExitCode, sync::Arc, time::Duration};

pub use crate::{
    measure::{Measure, NO_MEASURE},
    payload::payloads,
    settings::{Settings, Timed, Wait},
    tally::Tally,
};

/// Any error. The contender prints it and exits.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A contender's description of itself for the runner.
#[derive(Debug, Clone)]
pub struct Ready {
    /// The contender's name and version.
    pub version: String,
    /// The settings that the contender chose, in a few words.
    pub settings: String,
}

/// The reason why a contender cannot run here, returned as an error by [`Contender::install`]. The
/// contender's row shows the reason instead of figures.
#[derive(Debug)]
pub struct Missing(pub String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// A queue to measure. Its payloads are JSON texts.
pub trait Contender: Sized + Send + Sync + 'static {
    /// A message that [`read`](Contender::read) returned, to delete or archive.
    type Handle: Send;

    /// Installs the schema in the empty database and connects.
    fn install(settings: &Settings) -> impl Future<Output = Result<(Self, Ready), Failure>> + Send;

    /// Sends the payloads with the queue's call for one message or for many. Returns when the
    /// messages are durable. Callers are numbered from 0.
    fn send(&self, caller: usize, payloads: Vec<String>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Sends a message with a key. Messages with the same key are handled one after another.
    fn send_keyed(
        &self,
        _caller: usize,
        _key: String,
        _payload: String,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Err("its messages have no keys".into()) }
    }

    /// Sends the payloads before the clock starts, like [`seed`](Contender::seed), but in the given
    /// order and all with the same key.
    fn seed_keyed(&self, _key: String, _payloads: Vec<String>) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Err("its messages have no keys".into()) }
    }

    /// Returns the partition of each key, if the contender's keys have partitions.
    fn lanes(&self, _keys: Vec<String>) -> impl Future<Output = Result<Vec<i16>, Failure>> + Send {
        async { Err("its keys have no lanes".into()) }
    }

    /// Sends many messages before the clock starts, in the fastest way.
    fn seed(&self, payloads: Vec<String>) -> impl Future<Output = Result<(), Failure>> + Send {
        self.send(0, payloads)
    }

    /// Runs all of the contender's consumers until [`Tally::over`] returns, and counts every
    /// message in the tally.
    fn consume(self: Arc<Self>, tally: Arc<Tally>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Consumes like [`consume`](Contender::consume), but takes each batch and writes it to the
    /// table `ledger (id bigint, body jsonb)` in one transaction. So the table contains each
    /// message once, even after a failure.
    fn record(self: Arc<Self>, _tally: Arc<Tally>) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Err("it has no call to take messages inside a transaction of the caller's".into()) }
    }

    /// Reads `n` messages under a lease, without waiting for messages.
    fn read(&self, _caller: usize, _n: usize) -> impl Future<Output = Result<Vec<Self::Handle>, Failure>> + Send {
        async { Err("it has no call to read under a lease".into()) }
    }

    /// Deletes messages that were read.
    fn delete(&self, _caller: usize, _read: Vec<Self::Handle>) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Err("it has no call to delete what was read".into()) }
    }

    /// Archives messages that were read.
    fn archive(&self, _caller: usize, _read: Vec<Self::Handle>) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Err("it has no call to archive".into()) }
    }

    /// Takes `n` messages in one call. Returns the number of messages that the call took.
    fn pop(&self, _caller: usize, _n: usize) -> impl Future<Output = Result<usize, Failure>> + Send {
        async { Err("it has no call to take messages out".into()) }
    }

    /// Waits at most `patience` for messages, and reads up to `n` of them. Returns an empty list if
    /// none arrived.
    fn read_with_poll(
        &self,
        _caller: usize,
        _n: usize,
        _patience: Duration,
    ) -> impl Future<Output = Result<Vec<Self::Handle>, Failure>> + Send {
        async { Err("it has no call to wait for messages".into()) }
    }
}

/// Builds a runtime with `BENCH_THREADS` threads, or with one per processor.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    match settings::told_or("BENCH_THREADS", 0)? {
        0 => {}
        threads => {
            runtime.worker_threads(threads);
        }
    }
    Ok(runtime.enable_all().build()?)
}

/// Runs a contender from start to end. The contender's `main` returns the result.
#[must_use]
pub fn run<C: Contender>(measure: Measure) -> ExitCode {
    race(move |settings: Settings| async move {
        say::count(measure);
        match settings.case.as_str() {
            "send" => send::run::<C>(settings).await,
            "drain" | "ledger" => drain::run::<C>(settings).await,
            "cycle" => cycle::run::<C>(settings).await,
            _ => step::run::<C>(settings, measure).await,
        }
    })
}

/// Runs `program` in a process per caller, on a database that the contender `C` prepares. The
/// program is a contender that sends as one caller. In a cycle, `C` consumes.
#[must_use]
pub fn run_processes<C: Contender>(program: Vec<String>) -> ExitCode {
    race(move |settings| async move { processes::run::<C>(settings, &program).await })
}

fn race<F>(measure: impl FnOnce(Settings) -> F + Send + 'static) -> ExitCode
where
    F: Future<Output = Result<(), Failure>> + Send,
{
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(failure) => return say::failure(&failure),
    };
    // The measurement runs in a spawned task. Running it on the thread of `block_on` would cost
    // twice as much.
    let race = runtime.spawn(async move { measure(Settings::from_environment()?).await });
    let outcome = runtime.block_on(race).unwrap_or_else(|panic| Err(panic.into()));
    // The shutdown does not wait for connections that are still busy.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => say::failure(&failure),
    }
}
