//! Adds to Redis streams: for each batch a pipeline of `XADD`s, followed by one `WAIT`.

use std::{
    io,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::future::BoxFuture;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::time::timeout;

use super::{Reconnecting, points_elsewhere};
use crate::{
    address::Address,
    error::Result,
    gather::transfer,
    header::{self, BODY, Broker},
    outgoing::Outgoing,
    sink::{ENOUGH, Outcome, Sink},
};

/// The time limit for an answer from Redis. A batch gets the time of its transfer, too, because
/// Redis answers a batch when all of it has arrived.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time limit for confirmations from replicas, in milliseconds.
const REPLICAS: u64 = 2000;
/// The default maximum number of bytes per value.
const LONGEST: usize = 512 << 20;
/// The number of connections. There are several because a `WAIT` blocks later commands of its
/// connection.
const CONNECTIONS: usize = 4;

/// Redis streams, `redis://HOST/STREAM`; the scheme `rediss` uses TLS, and `ca=FILE` names the
/// certificates that verify the server. Options: `wait=N` confirms after `N` replicas (`WAIT`; 0 by
/// default); `maxlen=N` trims each stream to about `N` entries; `db=N`.
///
/// A message is an entry with the fields `trunkline-id`, `trunkline-attempt`, its metadata,
/// `trunkline-key` and `body`. If a message is sent twice, Redis stores it twice. A confirmed
/// message is in Redis' memory; `appendfsync` determines when it is on disk.
pub struct RedisSink {
    links: Vec<Link>,
    /// The maximum number of bytes per value.
    longest: usize,
    next: AtomicUsize,
    wait: u32,
    maxlen: Option<u64>,
    broker: String,
}

struct Link {
    connection: Reconnecting,
    /// True after a timeout, until the server answers again over this connection.
    unanswered: AtomicBool,
}

impl RedisSink {
    /// Connects.
    ///
    /// # Errors
    /// If the server cannot be reached now, or does not accept the login.
    pub async fn open(address: &Address) -> Result<Self> {
        address.only(&["wait", "maxlen", "db", "ca"])?;
        let mut links = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            let connection = Reconnecting::connect(address, ENOUGH).await?;
            links.push(Link { connection, unanswered: AtomicBool::new(false) });
        }
        let wait = address.option("wait")?.unwrap_or(0);
        let longest = match links.first() {
            Some(link) => longest(&link.connection).await,
            None => LONGEST,
        };
        Ok(Self {
            links,
            longest,
            next: AtomicUsize::new(0),
            wait,
            maxlen: address.option("maxlen")?,
            broker: address.shown(),
        })
    }

    fn xadd(&self, message: &Outgoing) -> std::result::Result<Cmd, String> {
        (Broker::REDIS.destination)(&message.to)?;
        let mut xadd = redis::cmd("XADD");
        xadd.arg(&*message.to);
        if let Some(maxlen) = self.maxlen {
            xadd.arg("MAXLEN").arg("~").arg(maxlen);
        }
        xadd.arg("*");
        let mut largest = message.body.len().max(message.to.len());
        for header in header::headers(&Broker::REDIS, message)? {
            let value = header.value.bytes().unwrap_or_default();
            largest = largest.max(header.name.len()).max(value.len());
            xadd.arg(&*header.name).arg(value);
        }
        xadd.arg(BODY).arg(&*message.body);
        if largest > self.longest {
            // Refuses the message here. The server would close the connection, which other callers
            // share.
            return Err(format!("it has a value of {largest} bytes; proto-max-bulk-len is {}", self.longest));
        }
        Ok(xadd)
    }

    async fn add(&self, batch: &[Outgoing]) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(batch.len());
        let mut pipeline = Pipeline::with_capacity(batch.len() + 1);
        for message in batch {
            outcomes.push(match self.xadd(message) {
                Ok(xadd) => {
                    pipeline.add_command(xadd);
                    None
                }
                Err(why) => Some(Outcome::RefusedForGood(why)),
            });
        }
        let bytes = batch.iter().map(Outgoing::size).sum();
        let mut answered = self.answers(pipeline, bytes).await.into_iter();
        let missing = || Outcome::RefusedForNow("Redis did not answer for it".to_owned());
        outcomes.into_iter().map(|outcome| outcome.or_else(|| answered.next()).unwrap_or_else(missing)).collect()
    }

    /// Sends commands and waits for their answers. After a timeout on any connection, each
    /// connection sends only a `PING` until the server answers: a stopped server that is resumed
    /// runs every command that it received, including repeated ones. Without an answer to the
    /// `PING`, connects again.
    async fn ask(&self, link: &Link, commands: &Pipeline, bytes: usize) -> RedisResult<Vec<Value>> {
        let mut connection = link.connection.get();
        if self.links.iter().any(|link| link.unanswered.load(Ordering::Acquire)) {
            // Accepts any reply, even an error, as a sign that the server answers.
            let ping = redis::cmd("PING");
            let answer: RedisResult<Value> = within(PATIENCE, ping.query_async(&mut connection)).await;
            if let Err(error) = answer
                && error.code().is_none()
            {
                if error.is_timeout() {
                    link.unanswered.store(true, Ordering::Release);
                    link.connection.renew(&error).await;
                }
                return Err(error);
            }
            link.unanswered.store(false, Ordering::Release);
        }
        let answers = within(limit(bytes), connection.send_packed_commands(commands, 0, commands.len())).await;
        if answers.as_ref().is_err_and(RedisError::is_timeout) {
            link.unanswered.store(true, Ordering::Release);
        }
        answers
    }

    /// Returns the outcome of each command.
    async fn answers(&self, mut pipeline: Pipeline, bytes: usize) -> Vec<Outcome> {
        let commands = pipeline.len();
        if commands == 0 {
            return Vec::new();
        }
        if self.wait > 0 {
            pipeline.cmd("WAIT").arg(self.wait).arg(REPLICAS);
        }
        let link = &self.links[self.next.fetch_add(1, Ordering::Relaxed) % self.links.len()];
        let mut answers = match self.ask(link, &pipeline, bytes).await {
            Ok(answers) => answers,
            Err(error) => {
                if points_elsewhere(&error) {
                    link.connection.renew(&error).await;
                }
                return vec![Outcome::RefusedForNow(error.to_string()); commands];
            }
        };
        let short = match (self.wait, answers.get(commands)) {
            (0, _) => None,
            (wait, Some(Value::Int(have))) if *have >= i64::from(wait) => None,
            (wait, Some(Value::Int(have))) => {
                Some(format!("{have} of {wait} replicas confirmed the message within {REPLICAS} ms"))
            }
            (wait, _) => Some(format!(
                "{wait} replicas had to confirm the message within {REPLICAS} ms, and Redis did not count them"
            )),
        };
        answers.truncate(commands);
        let mut elsewhere = None;
        let outcome = |answer: Value| match answer.extract_error() {
            Err(error) => {
                let outcome = refused(&error);
                elsewhere = Some(error).filter(points_elsewhere).or(elsewhere.take());
                outcome
            }
            Ok(_) => short.clone().map_or(Outcome::Confirmed, Outcome::RefusedForNow),
        };
        let outcomes = answers.into_iter().map(outcome).collect();
        if let Some(error) = elsewhere {
            link.connection.renew(&error).await;
        }
        outcomes
    }
}

/// Returns the server's maximum number of bytes per value, or the default if this user may not read
/// it.
async fn longest(connection: &Reconnecting) -> usize {
    let mut asked = redis::cmd("CONFIG");
    asked.arg("GET").arg("proto-max-bulk-len");
    let mut connection = connection.get();
    let said: RedisResult<Vec<String>> = within(PATIENCE, asked.query_async(&mut connection)).await;
    said.ok().and_then(|said| said.get(1)?.parse().ok()).unwrap_or(LONGEST)
}

/// Returns the time limit for the answers to a batch.
fn limit(bytes: usize) -> Duration {
    (PATIENCE + transfer(bytes)).min(ENOUGH)
}

/// Waits for an answer. Fails after the limit like a connection whose own limit is exceeded.
async fn within<T>(limit: Duration, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    timeout(limit, answer).await.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

impl Sink for RedisSink {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Outcome>> {
        Box::pin(self.add(batch))
    }
}

/// Returns the outcome for an error. Errors that concern the message or permissions are permanent
/// refusals. All other errors are temporary refusals.
fn refused(error: &RedisError) -> Outcome {
    let said = error.to_string();
    match (error.kind(), error.code()) {
        (ErrorKind::Server(ServerErrorKind::NoPerm), _) | (_, Some("WRONGTYPE" | "NOPERM")) => {
            Outcome::RefusedForGood(said)
        }
        _ => Outcome::RefusedForNow(said),
    }
}
