//! Reads a Redis stream after an entry's id.

use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::from_redis_value;
use trunkline::Metadata;

use super::{Reconnecting, last_id::LastId, points_elsewhere};
use crate::{
    address::Address,
    error::{Error, Result},
    header::{self, BODY, Broker, Header, Headers, Value},
    outgoing::KEY,
    source::{Incoming, Source},
};

/// The maximum time that a read waits for its first entry, in milliseconds.
const BLOCK: usize = 1000;
/// The number of entries in the first read.
const FIRST: usize = 16;
/// The maximum number of entries per read.
const MOST: usize = 10_000;
/// The approximate maximum size of an answer, in bytes.
const BYTES: usize = 8 << 20;
/// The time limit for an answer from Redis, `BLOCK` included.
const PATIENCE: Duration = Duration::from_secs(6);

/// A Redis stream, `redis://HOST/STREAM`, read from its beginning. The position is an entry's id.
/// The relay cannot notice entries that were trimmed or deleted before it read them, because Redis
/// does not report them. The field `body` is the payload; an entry without it becomes a JSON object
/// of its fields.
///
/// If the last id of the stream is lower than the position, the stream was deleted and begins again
/// with lower ids, or has lost its last entries. Then reading ends with a gap. With
/// `accept-gap=true` the source warns, and continues after the last entry.
pub struct RedisSource {
    connection: Reconnecting,
    stream: String,
    broker: String,
    accepts_gap: bool,
    last: LastId,
    /// A position that the stream does not reach, and the id after which to read instead.
    behind: Option<(String, String)>,
    /// The number of entries per read.
    count: usize,
}

impl RedisSource {
    /// Connects.
    ///
    /// # Errors
    /// If the server cannot be reached now, or does not accept the login.
    pub async fn open(address: &Address) -> Result<Self> {
        address.only(&["accept-gap", "db", "ca"])?;
        let connection = Reconnecting::connect(address, PATIENCE).await?;
        Ok(Self {
            connection,
            stream: address.path.clone(),
            broker: address.shown(),
            accepts_gap: address.option("accept-gap")?.unwrap_or_default(),
            last: LastId::default(),
            behind: None,
            count: FIRST,
        })
    }

    /// Returns the id after which to read.
    fn read_after(&self, after: &str) -> String {
        let behind = self.behind.as_ref().filter(|(position, _)| position == after);
        behind.map_or(after, |(_, last)| last).to_owned()
    }

    /// Handles a read that returned no entries. Fails because of a gap if the stream ends before
    /// the position, or warns if the caller accepts gaps.
    async fn stands_still(&mut self, after: &str) -> Result<()> {
        let from = self.read_after(after);
        let Some(last) = self.last.lower_than(&from, self.connection.get(), &self.stream).await else { return Ok(()) };
        let said = format!(
            "the stream ends at {last}, before {from}, which was read: it is another stream by that name, or has lost entries"
        );
        if !self.accepts_gap {
            return Err(Error::gap(
                &self.broker,
                format!("{said}; with accept-gap=true the relay continues after {last}"),
            ));
        }
        tracing::warn!(broker = self.broker, said, "continuing behind a gap");
        self.last.goes_on();
        self.behind = Some((after.to_owned(), last));
        Ok(())
    }

    async fn entries(&mut self, after: &str, most: usize) -> Result<Vec<Incoming>> {
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(self.count.min(most)).arg("BLOCK").arg(BLOCK);
        read.arg("STREAMS").arg(&self.stream).arg(self.read_after(after));
        let answer: redis::RedisResult<redis::Value> = read.query_async(&mut self.connection.get()).await;
        if answer.as_ref().is_err_and(redis::RedisError::is_timeout) {
            self.count = (self.count / 4).max(1);
        }
        if let Some(error) = answer.as_ref().err().filter(|error| points_elsewhere(error) || error.is_timeout()) {
            self.connection.renew(error).await;
        }
        let answer = answer.map_err(|cause| Error::broker(&self.broker, cause))?;
        if answer == redis::Value::Nil {
            self.stands_still(after).await?;
            return Ok(Vec::new());
        }
        self.last.goes_on();
        let streams: Vec<(String, Vec<(String, Pairs)>)> =
            from_redis_value(answer).map_err(|cause| Error::broker(&self.broker, cause))?;
        let entries = streams.into_iter().flat_map(|(_, entries)| entries);
        let entries: Vec<_> = entries.map(|(id, fields)| incoming(id, fields)).collect();
        self.count = next_count(self.count, &entries);
        Ok(entries)
    }
}

/// Returns the number of entries for the next read, based on their average size. An answer arrives
/// whole or not at all, and must arrive in time.
fn next_count(count: usize, entries: &[Incoming]) -> usize {
    let bytes: usize = entries.iter().map(Incoming::size).sum();
    let average = (bytes / entries.len().max(1)).max(1);
    (BYTES / average).clamp(1, count.saturating_mul(4).min(MOST))
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

impl Source for RedisSource {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn read<'a>(&'a mut self, after: Option<&'a str>, most: usize) -> BoxFuture<'a, Result<Vec<Incoming>>> {
        Box::pin(self.entries(after.unwrap_or("0-0"), most))
    }
}

fn incoming(position: String, mut fields: Pairs) -> Incoming {
    let body = fields.iter().rposition(|(name, _)| name == BODY.as_bytes()).map(|at| fields.remove(at).1);
    let headers = fields.iter().map(|(name, value)| Header { name: (&**name).into(), value: Value::of(value) });
    let Headers { metadata, key } = header::metadata(&Broker::REDIS, headers);
    match body {
        Some(body) => Incoming { position, key, metadata, body: body.into() },
        None => Incoming { position, body: whole(metadata, key).into(), ..Incoming::default() },
    }
}

/// Returns all fields as one JSON object.
fn whole(mut metadata: Metadata, key: Option<String>) -> String {
    if let Some(key) = key {
        metadata.insert(KEY, key);
    }
    serde_json::json!(metadata).to_string()
}
