//! What a worker promises: a function is run for every message, whatever it does and whatever happens to it.

mod outcomes;
mod panics;
mod leases;
mod endings;
mod several;
mod hooks;
pub mod outage;
mod processes;
mod transaction;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use trunkline::{Error, Message, Payload, Queue, Result, Summary, Worker, Workers};

use crate::{contract::SOON, fixture::eventually};

/// A worker that runs until it is told to stop.
pub struct Runs {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<Summary>>,
}

impl Runs {
    pub fn start<T: Payload>(worker: Worker<T>) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, ended: tokio::spawn(worker.run(async { stopped.await.unwrap_or(()) })) }
    }

    /// Several queues in one worker.
    pub fn start_all(workers: Workers) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, ended: tokio::spawn(workers.run(async { stopped.await.unwrap_or(()) })) }
    }

    /// Stops it, and waits for its end.
    pub async fn stop(self) -> Summary {
        self.stop.send(()).expect("it runs still");
        timeout(SOON * 2, self.ended).await.expect("in time").expect("no panic").expect("no error")
    }

    /// Waits for the end that it comes to by itself.
    pub async fn fails(self) -> Error {
        timeout(SOON * 2, self.ended).await.expect("in time").expect("no panic").expect_err("an error")
    }
}

/// How often each payload was handled.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<BTreeMap<i64, usize>>>);

impl Seen {
    pub fn add(&self, message: &Message<i64>) -> usize {
        let mut seen = self.0.lock().expect("no panic");
        let times = seen.entry(message.payload).or_default();
        *times += 1;
        *times
    }

    pub fn all(&self) -> BTreeMap<i64, usize> {
        self.0.lock().expect("no panic").clone()
    }
}

/// Waits until nothing is left in the queue but dead letters, as long as it becomes less.
pub async fn drained(queue: &Queue<i64>) {
    let left = || async { queue.stats().await.expect("counted").messages };
    let mut least = left().await;
    while least > 0 {
        eventually("the queue becomes emptier", || async { left().await < least }).await;
        least = left().await;
    }
}
