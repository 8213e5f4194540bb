//! The callers of a contender, and the payloads that each caller sends.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{
    Contender, Failure, Settings, Timed,
    payload::{keyed, now, payload},
    payloads,
    tally::BACKLOG,
};

/// The callers of a contender. If messages have keys, each caller cycles through its own keys. So
/// the messages of each key have the order of its caller's calls.
pub(crate) struct Callers<C> {
    contender: Arc<C>,
    settings: Settings,
    /// The number of keyed messages that each caller has sent.
    sent: Vec<AtomicU64>,
}

pub(crate) enum Next {
    Batch(Vec<String>),
    Keyed(String, String),
}

impl<C: Contender> Callers<C> {
    pub fn of(contender: &Arc<C>, settings: &Settings) -> Arc<Self> {
        let sent = (0..settings.producers).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { contender: contender.clone(), settings: settings.clone(), sent })
    }

    /// Sends the backlog in calls of 1,000 messages, with up to 16 calls at the same time. A keyed
    /// backlog is sent one call after another, because its order matters.
    pub async fn seed(&self) -> Result<(), Failure> {
        let Settings { backlog, payload: bytes, keys, .. } = self.settings;
        if keys > 0 {
            for first in (0..backlog).step_by(1000) {
                let (at, last) = (now(), backlog.min(first + 1000));
                let payloads = (first..last).map(|nr| keyed(at, BACKLOG, nr as u64, bytes)).collect();
                self.contender.seed_keyed(key(BACKLOG), payloads).await?;
            }
            return Ok(());
        }
        let (mut calls, mut left) = (tokio::task::JoinSet::new(), backlog);
        while left > 0 || !calls.is_empty() {
            while left > 0 && calls.len() < 16 {
                let (contender, n) = (self.contender.clone(), left.min(1000));
                calls.spawn(async move { contender.seed(payloads(n, bytes)).await });
                left -= n;
            }
            if let Some(call) = calls.join_next().await {
                call??;
            }
        }
        Ok(())
    }

    /// Sends one message before the clock starts.
    pub async fn send_one(&self) -> Result<(), Failure> {
        match self.settings.keys {
            0 => self.contender.send(0, payloads(1, self.settings.payload)).await,
            _ => self.send(0, self.next(0, now())).await,
        }
    }

    /// Returns the payloads of a caller's next call. `at` is the time at which they were due.
    pub fn next(&self, caller: usize, at: u64) -> Next {
        let Settings { batch, payload: bytes, keys, producers, .. } = self.settings;
        if keys == 0 {
            return Next::Batch((0..batch).map(|_| payload(at, bytes)).collect());
        }
        let own = (keys - caller).div_ceil(producers) as u64;
        let turn = self.sent[caller].fetch_add(1, Ordering::Relaxed);
        let number = BACKLOG + 1 + caller + producers * (turn % own) as usize;
        Next::Keyed(key(number), keyed(at, number, turn / own, bytes))
    }

    pub async fn send(&self, caller: usize, next: Next) -> Result<(), Failure> {
        match next {
            Next::Batch(payloads) => self.contender.send(caller, payloads).await,
            Next::Keyed(key, payload) => self.contender.send_keyed(caller, key, payload).await,
        }
    }
}

/// Returns one flag per key: true if the latencies of the key's messages count. An empty
/// list means that the latencies of all keys count.
pub(crate) async fn timed<C: Contender>(contender: &C, settings: &Settings) -> Result<Vec<bool>, Failure> {
    if settings.timed == Timed::All {
        return Ok(Vec::new());
    }
    let lanes = contender.lanes((0..=settings.keys).map(key).collect()).await?;
    let its = lanes.get(BACKLOG).copied().ok_or("the backlog's key has no lane")?;
    Ok(lanes.into_iter().map(|lane| (lane == its) == (settings.timed == Timed::ItsLane)).collect())
}

fn key(number: usize) -> String {
    format!("key {number}")
}
