//! Adds to Redis streams: a pipeline of `XADD`s for a batch, and one `WAIT` behind them.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::future::BoxFuture;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value, aio::ConnectionManager};

use super::{BODY, connect};
use crate::{
    address::Address,
    error::Result,
    outgoing::{KEY, Outgoing},
    sink::{Outcome, Sink},
};

/// How long Redis has to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long replicas have, in milliseconds.
const REPLICAS: u64 = 2000;
/// Connections: a `WAIT` holds up what comes behind it on its own.
const CONNECTIONS: usize = 4;

/// Redis streams, `redis://HOST/STREAM`; with `rediss` over TLS, where `ca=FILE` names the certificates that the server is known by. Options: `wait=N`, confirmed by so many replicas (`WAIT`; 0 if not set); `maxlen=N`, trims each stream to about so many entries; `db=N`.
///
/// A message is an entry with the fields `trunkline-id`, `trunkline-attempt`, its metadata, `trunkline-key` and `body`. Redis keeps what is sent twice twice. What Redis confirms is in its memory; whether it is
/// on disk, `appendfsync` says.
pub struct RedisSink {
    connections: Vec<ConnectionManager>,
    next: AtomicUsize,
    wait: u32,
    maxlen: Option<u64>,
    broker: String,
}

impl RedisSink {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached now, or does not let us in.
    pub async fn open(address: &Address) -> Result<Self> {
        address.only(&["wait", "maxlen", "db", "ca"])?;
        let mut connections = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            connections.push(connect(address, PATIENCE).await?);
        }
        let wait = address.option("wait")?.unwrap_or(0);
        Ok(Self {
            connections,
            next: AtomicUsize::new(0),
            wait,
            maxlen: address.option("maxlen")?,
            broker: address.shown(),
        })
    }

    fn xadd(&self, message: &Outgoing) -> Cmd {
        let mut xadd = redis::cmd("XADD");
        xadd.arg(&*message.to);
        if let Some(maxlen) = self.maxlen {
            xadd.arg("MAXLEN").arg("~").arg(maxlen);
        }
        xadd.arg("*");
        for (name, text) in message.headers() {
            xadd.arg(name).arg(&*text);
        }
        if let Some(key) = &message.key {
            xadd.arg(KEY).arg(&**key);
        }
        xadd.arg(BODY).arg(&*message.body);
        xadd
    }

    async fn add(&self, batch: &[Outgoing]) -> std::result::Result<Vec<Outcome>, RedisError> {
        let mut pipeline = Pipeline::with_capacity(batch.len() + 1);
        for message in batch {
            pipeline.add_command(self.xadd(message));
        }
        if self.wait > 0 {
            pipeline.cmd("WAIT").arg(self.wait).arg(REPLICAS);
        }
        let nr = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let mut answers = self.connections[nr].clone().send_packed_commands(&pipeline, 0, pipeline.len()).await?;
        let short = match (self.wait, answers.get(batch.len())) {
            (0, _) => None,
            (wait, Some(Value::Int(have))) if *have >= i64::from(wait) => None,
            (wait, have) => Some(format!("{wait} replicas were to have it within {REPLICAS} ms: {have:?}")),
        };
        answers.truncate(batch.len());
        let outcome = |answer: Value| match answer.extract_error() {
            Err(error) => refused(&error),
            Ok(_) => short.clone().map_or(Outcome::Confirmed, Outcome::RefusedForNow),
        };
        Ok(answers.into_iter().map(outcome).collect())
    }
}

impl Sink for RedisSink {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(async move {
            match self.add(batch).await {
                Ok(outcomes) => outcomes,
                Err(error) => vec![Outcome::RefusedForNow(error.to_string()); batch.len()],
            }
        })
    }
}

/// What a message is, or may not do, no later try mends; what the server lacks at the moment it may.
fn refused(error: &RedisError) -> Outcome {
    let said = error.to_string();
    match (error.kind(), error.code()) {
        (ErrorKind::Server(ServerErrorKind::NoPerm), _) | (_, Some("WRONGTYPE" | "NOPERM")) => {
            Outcome::RefusedForGood(said)
        }
        _ => Outcome::RefusedForNow(said),
    }
}
