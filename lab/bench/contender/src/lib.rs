//! What a contender of the benchmark suite is made of, in Rust; the protocol is in
//! `lab/peers/README.md`.
//!
//! A contender says how to install itself, send and consume; [`run`] does the rest: reads what it
//! is told, keeps the clock, counts and speaks.

mod settings;
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

use std::{future::Future, process::ExitCode, sync::Arc, time::Duration};

pub use crate::{
    payload::payloads,
    settings::{Settings, Timed, Wait},
    step::{Measure, NO_MEASURE},
    tally::Tally,
};

/// Whatever goes wrong: it is printed, and ends the contender.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a contender tells of itself.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Its name and version.
    pub version: String,
    /// The settings that it chose, in a few words.
    pub settings: String,
}

/// What keeps a contender from running here, as an error of [`Contender::install`]: told in its row
/// instead of figures.
#[derive(Debug)]
pub struct Missing(pub String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// A queue that is measured. Payloads are JSON texts.
pub trait Contender: Sized + Send + Sync + 'static {
    /// A message that [`read`](Contender::read) gave, to delete or archive.
    type Handle: Send;

    /// Installs the schema in the empty database and connects.
    fn install(settings: &Settings) -> impl Future<Output = Result<(Self, Ready), Failure>> + Send;

    /// Sends the payloads by the call for one or for many, and returns when they are durable.
    /// Caller 0 to producers - 1.
    fn send(&self, caller: usize, payloads: Vec<String>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Sends a message with a key, whose messages are to be handled one after another.
    fn send_keyed(
        &self,
        _caller: usize,
        _key: String,
        _payload: String,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Err("its messages have no keys".into()) }
    }

    /// As [`seed`](Contender::seed), all of one key, in their order.
    fn seed_keyed(&self, _key: String, _payloads: Vec<String>) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Err("its messages have no keys".into()) }
    }

    /// The lane of each key, where keys have lanes.
    fn lanes(&self, _keys: Vec<String>) -> impl Future<Output = Result<Vec<i16>, Failure>> + Send {
        async { Err("its keys have no lanes".into()) }
    }

    /// The fastest way to put many messages in before the clock starts.
    fn seed(&self, payloads: Vec<String>) -> impl Future<Output = Result<(), Failure>> + Send {
        self.send(0, payloads)
    }

    /// Consumes with all its consumers until [`Tally::over`], telling the tally of every message.
    fn consume(self: Arc<Self>, tally: Arc<Tally>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// As [`consume`](Contender::consume), but takes each batch and writes it to the table `ledger
    /// (id bigint, body jsonb)`, in the same transaction, so that each message is there once
    /// whatever breaks.
    fn record(self: Arc<Self>, _tally: Arc<Tally>) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Err("it has no call to take messages inside a transaction of the caller's".into()) }
    }

    /// Reads so many messages under a lease (waits for none).
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

    /// Takes so many messages out in one call; how many there were.
    fn pop(&self, _caller: usize, _n: usize) -> impl Future<Output = Result<usize, Failure>> + Send {
        async { Err("it has no call to take messages out".into()) }
    }

    /// Waits until there are messages, for so long at most, and reads so many; none where none
    /// came.
    fn read_with_poll(
        &self,
        _caller: usize,
        _n: usize,
        _patience: Duration,
    ) -> impl Future<Output = Result<Vec<Self::Handle>, Failure>> + Send {
        async { Err("it has no call to wait for messages".into()) }
    }
}

/// With as many threads as were told.
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

/// The whole life of a contender: its `main` returns this.
#[must_use]
pub fn run<C: Contender>(measure: Measure) -> ExitCode {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(failure) => return say::failure(&failure),
    };
    // Spawned: work on the thread that blocks would cost twice as much.
    let race = runtime.spawn(async move {
        let settings = Settings::from_environment()?;
        match settings.case.as_str() {
            "send" => send::run::<C>(settings).await,
            "drain" | "ledger" => drain::run::<C>(settings).await,
            "cycle" => cycle::run::<C>(settings).await,
            _ => step::run::<C>(settings, measure).await,
        }
    });
    let outcome = runtime.block_on(race).unwrap_or_else(|panic| Err(panic.into()));
    // Connections that are still busy are not waited for.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => say::failure(&failure),
    }
}
