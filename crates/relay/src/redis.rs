//! Redis streams.

mod sink;
mod source;

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use ::redis::{
    Client, RedisError, TlsCertificates,
    aio::{ConnectionManager, ConnectionManagerConfig},
};

pub use self::{sink::RedisSink, source::RedisSource};
use crate::{
    address::Address,
    error::{Error, Result},
};

/// From one connection that a server has sent away to the next.
const PAUSE: Duration = Duration::from_millis(500);

/// A connection, and another one where the server says that it is not the one to ask: behind the
/// name may be another by now.
struct Held {
    address: Address,
    patience: Duration,
    current: Mutex<ConnectionManager>,
    /// When the last one was made again; locked while one is.
    renewed: tokio::sync::Mutex<Option<Instant>>,
}

impl Held {
    async fn connect(address: &Address, patience: Duration) -> Result<Self> {
        let current = Mutex::new(connect(address, patience).await?);
        Ok(Self { address: address.clone(), patience, current, renewed: tokio::sync::Mutex::default() })
    }

    fn get(&self) -> ConnectionManager {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another connection to the same address. Those who come while one is made leave it at that.
    async fn renew(&self, error: &RedisError) {
        let Ok(mut renewed) = self.renewed.try_lock() else { return };
        if renewed.is_some_and(|renewed| renewed.elapsed() < PAUSE) {
            return;
        }
        let broker = self.address.shown();
        tracing::warn!(broker, %error, "connects again: the server is not the one to ask, or not yet");
        match connect(&self.address, self.patience).await {
            Ok(new) => *self.current.lock().unwrap_or_else(PoisonError::into_inner) = new,
            Err(error) => tracing::warn!(broker, %error, "did not connect again"),
        }
        *renewed = Some(Instant::now());
    }
}

/// Whether a server has sent us away: it is a replica, has lost its master, or is about to read
/// what it has.
fn points_elsewhere(error: &RedisError) -> bool {
    matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "LOADING"))
}

/// A connection that is made again by itself.
async fn connect(address: &Address, patience: Duration) -> Result<ConnectionManager> {
    let said = |cause: ::redis::RedisError| Error::broker(address.shown(), cause);
    let database: u16 = address.option("db")?.unwrap_or(0);
    let url = format!("{}://{}/{database}", address.scheme, address.servers);
    let root_cert = address.authorities()?.map(String::into_bytes);
    let certificates = TlsCertificates { client_tls: None, root_cert };
    let client = match &*address.scheme {
        "rediss" => Client::build_with_tls(url, certificates).map_err(said)?,
        _ => Client::open(url).map_err(said)?,
    };
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(Duration::from_secs(5)))
        .set_response_timeout(Some(patience))
        .set_number_of_retries(1)
        .set_max_delay(Duration::from_millis(500));
    ConnectionManager::new_with_config(client, config).await.map_err(said)
}
