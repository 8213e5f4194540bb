//! Reads a Redis stream behind an entry's id.

use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::{Value, aio::ConnectionManager, from_redis_value};
use trunkline::Metadata;

use super::{BODY, connect};
use crate::{
    address::Address,
    error::{Error, Result},
    outgoing::KEY,
    source::{Incoming, Source},
};

/// How long a read waits for the first entry, in milliseconds.
const BLOCK: usize = 1000;
/// How long Redis has to answer beyond that.
const PATIENCE: Duration = Duration::from_secs(6);

/// A Redis stream, `redis://HOST/STREAM`, from its beginning on. The position is an entry's id. Entries that were trimmed or deleted before they were read are left out in silence: Redis does not
/// tell. The field `body` is the payload; an entry without one is read as a JSON object of its fields.
pub struct RedisSource {
    connection: ConnectionManager,
    stream: String,
    broker: String,
}

impl RedisSource {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached now, or does not let us in.
    pub async fn open(address: &Address) -> Result<Self> {
        address.only(&["db", "ca"])?;
        let connection = connect(address, PATIENCE).await?;
        Ok(Self { connection, stream: address.path.clone(), broker: address.shown() })
    }

    async fn entries(&mut self, after: &str, most: usize) -> Result<Vec<Incoming>> {
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(most).arg("BLOCK").arg(BLOCK).arg("STREAMS").arg(&self.stream).arg(after);
        let said = |cause: redis::RedisError| Error::broker(&self.broker, cause);
        let answer: Value = read.query_async(&mut self.connection).await.map_err(said)?;
        if answer == Value::Nil {
            return Ok(Vec::new());
        }
        let streams: Vec<(String, Vec<(String, Fields)>)> =
            from_redis_value(answer).map_err(|cause| Error::broker(&self.broker, cause))?;
        let entries = streams.into_iter().flat_map(|(_, entries)| entries);
        Ok(entries.map(|(id, fields)| incoming(id, fields)).collect())
    }
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

impl Source for RedisSource {
    fn broker(&self) -> &str {
        &self.broker
    }

    fn read<'a>(&'a mut self, after: Option<&'a str>, most: usize) -> BoxFuture<'a, Result<Vec<Incoming>>> {
        Box::pin(self.entries(after.unwrap_or("0-0"), most))
    }
}

fn incoming(position: String, fields: Fields) -> Incoming {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let has_body = fields.iter().any(|(name, _)| name == BODY.as_bytes());
    if !has_body {
        let whole: serde_json::Map<_, _> =
            fields.iter().map(|(name, value)| (text(name), text(value).into())).collect();
        let body = serde_json::Value::Object(whole).to_string().into();
        return Incoming { position, body, ..Incoming::default() };
    }
    let (mut metadata, mut body, mut key) = (Metadata::new(), bytes::Bytes::new(), None);
    for (name, value) in fields {
        match &*name {
            name if name == BODY.as_bytes() => body = value.into(),
            name if name == KEY.as_bytes() => key = Some(text(&value)),
            name => metadata.insert(text(name), text(&value)),
        }
    }
    Incoming { position, key, metadata, body }
}
